"""When a finished firmware may be used again: keys over content, never over times or paths."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from ethosu_sdk import records
from ethosu_sdk.errors import InputError

_NOT_FIRMWARE = ("tests",)  # folders that no firmware is built from


def tree_hash(root: Path) -> str:
    """SHA-256 over the names and contents of all source files below `root`."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if path.is_file() and not set(relative.parts) & set(_NOT_FIRMWARE):
            digest.update(f"{relative.as_posix()}\0{records.sha256_file(path)}\n".encode())
    return digest.hexdigest()


def build_key(parts: Mapping[str, object]) -> str:
    """SHA-256 over everything that shapes a firmware: content hashes, generated texts, versions."""
    return records.sha256_bytes(json.dumps(parts, sort_keys=True).encode())


def is_current(stamp: Path, key: str, products: Mapping[str, Path]) -> bool:
    """Whether `products` are those that `remember` noted in `stamp` under the same `key`."""
    try:
        noted = records.read_json(stamp)
        return noted == _note(key, products)
    except InputError:  # no stamp, a damaged one, or a product that is gone
        return False


def remember(stamp: Path, key: str, products: Mapping[str, Path]) -> None:
    """Note that `products` are what `key` gives."""
    records.write_json(stamp, _note(key, products))


def _note(key: str, products: Mapping[str, Path]) -> records.Record:
    return {"key": key, "sha256": {name: records.sha256_file(path) for name, path in products.items()}}
