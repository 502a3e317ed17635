"""Decides when a finished firmware may be used again, and where objects that all models share are compiled.

Keys are over content, never over times or paths.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ethosu_sdk import cache, records
from ethosu_sdk.errors import BuildError, InputError
from ethosu_sdk.files import hashing, json_text
from ethosu_sdk.firmware_build import build_tree, generate

_NOT_FIRMWARE = ("tests", "README.md")  # names of folders and files that no firmware is built from


def work_directory(identity: Mapping[str, object]) -> Path | None:
    """A folder for the objects that all models share. Each `identity` has its own; its user takes its lock.

    None where the cache cannot be written, or CMake cannot build.
    """
    part = f"firmware/{build_key(identity)[:16]}"
    if build_tree.unfit(cache.place(part)):
        return None
    try:
        return cache.directory(part)
    except BuildError:
        return None


def sources(root: Path) -> dict[str, bytes]:
    """All files below `root` that a firmware is built from, and the generated ones, by their names relative to it.

    Raises InputError when one cannot be read.
    """
    found = generate.shared_sources()
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if path.is_file() and not set(relative.parts) & set(_NOT_FIRMWARE):
            try:
                found[relative.as_posix()] = path.read_bytes()
            except OSError as error:
                raise InputError(f"cannot read {path}: {error.strerror}") from error
    return found


def hashes(files: Mapping[str, bytes]) -> dict[str, str]:
    """SHA-256 of each file by its name."""
    return {name: hashing.sha256_bytes(content) for name, content in files.items()}


def build_key(parts: Mapping[str, object]) -> str:
    """SHA-256 over everything that shapes a firmware: content hashes, generated texts, versions."""
    return hashing.sha256_bytes(json.dumps(parts, sort_keys=True).encode())


def is_current(stamp: Path, key: str, products: Mapping[str, Path]) -> bool:
    """Whether `products` are those that `remember` noted in `stamp` under the same `key`."""
    try:
        noted = json_text.read_json(stamp)
        return noted == _note(key, products)
    except InputError:  # no stamp, a damaged one, or a product that is gone
        return False


def remember(stamp: Path, key: str, products: Mapping[str, Path]) -> None:
    """Note that `products` are what `key` gives."""
    json_text.write_json(stamp, _note(key, products))


def _note(key: str, products: Mapping[str, Path]) -> records.Record:
    return {"key": key, "sha256": {name: hashing.sha256_file(path) for name, path in products.items()}}
