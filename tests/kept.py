"""What tests make once and keep between runs: below $ETHOSU_SDK_TEST_CACHE, else build/test-cache in the repository.

``sdk`` there is the cache of the SDK itself, whose keys are contents. ``made`` holds folders that tests made, each
named after a digest of everything it was made from. Entries that were not used for two weeks are removed.
"""

import functools
import hashlib
import importlib.metadata
import inspect
import json
import os
import pickle
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from ethosu_sdk.base import filesystem
from tests.places import ROOT

T = TypeVar("T")
VARIABLE = "ETHOSU_SDK_TEST_CACHE"
_KEPT_S = 14 * 24 * 3600
_PROGRAMS = ("arm-none-eabi-gcc", "qemu-system-arm", "cmake", "ninja", "gcc", "g++", "llvm-mca-19")
# The rooms that a compiler imports nothing of: tests/contract/test_layers.py.
_NOT_COMPILER = {
    *("analysis", "api.py", "cli", "firmware_build", "installation", "reporting", "run", "simulate", "sweep"),
}


def root() -> Path:
    """The cache, made."""
    return filesystem.make_directory(
        Path(os.environ.get(VARIABLE) or ROOT / "build" / "test-cache").absolute()
    )


@functools.cache
def compiler() -> str:
    """A digest of all that shapes a compiled program beside its model and options."""
    package = ROOT / "sdk" / "ethosu_sdk"
    found = (path for path in _files(package) if path.relative_to(package).parts[0] not in _NOT_COMPILER)
    return _digest(*found, *_files(ROOT / "firmware" / "kernels"), _installed())


@functools.cache
def sources() -> str:
    """A digest of all that shapes a result beside its model and options."""
    folders = ("sdk/ethosu_sdk", "firmware", "qemu", "schemas")
    programs = [Path(found) for name in _PROGRAMS if (found := shutil.which(name))]
    tools = [f"{path.resolve()} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in programs]
    settings = [
        f"{name}={value}"
        for name, value in sorted(os.environ.items())
        if name.startswith("ETHOSU_SDK_") and not name.endswith(("CACHE", "PLUGIN"))
    ]
    files = (path for folder in folders for path in _files(ROOT / folder))
    return _digest(*files, _installed(), *tools, *settings)


def folder(place: Path, make: Callable[[Path], object], *parts: str | Path, basis: str | None = None) -> Path:
    """`place` as ``make(place)`` left it, now or in an earlier run with the same `basis`, else :func:`sources`.

    `parts` are texts and files that it depends on beside the module of `make`. Where `place` is there it stays: it is
    this session's own, a copy of what is kept.
    """
    key = _digest(basis or sources(), Path(inspect.getfile(make)), *parts)
    entry = root() / "made" / place.name / key[:24]
    with filesystem.locked_folder(place.with_name(f".{place.name}.lock")):
        if place.exists():
            return place
        with filesystem.locked_folder(entry):
            kept = entry / "folder"
            if not (entry / "place").is_file():
                shutil.rmtree(kept, ignore_errors=True)
                try:
                    make(filesystem.make_directory(place))
                    shutil.copytree(place, kept, symlinks=True)
                except BaseException:
                    shutil.rmtree(place, ignore_errors=True)
                    raise
                (entry / "place").write_text(str(place), encoding="utf-8")
                return place
            os.utime(entry / "place")
            temporary = place.with_name(f".{place.name}.copy")
            shutil.rmtree(temporary, ignore_errors=True)
            shutil.copytree(kept, temporary, symlinks=True)
            _move((entry / "place").read_text(encoding="utf-8"), temporary, place)
    return place


def shared(name: str, sources: Iterable[Path], *words: str) -> Path:
    """A folder that workers fill together with what `sources`, files of this repository, `words` and the installed
    packages shape."""
    parts = [part for path in sorted(sources) for part in (str(path.relative_to(ROOT)), path)]
    entry = filesystem.make_directory(root() / "made" / name / _digest(*words, *parts, _installed())[:24])
    (entry / "place").touch()
    return entry


def made_once(place: Path, make: Callable[[], T]) -> T:
    """What `make` gives, made by one process and kept in the folder `place`."""
    file = place / "made.pickle"
    with filesystem.locked_folder(filesystem.make_directory(place)):
        if not file.is_file():
            filesystem.write_bytes(file, pickle.dumps(make()))
    made: T = pickle.loads(file.read_bytes())
    return made


def _move(old: str, temporary: Path, place: Path) -> None:
    """Rename `temporary` to `place`, and the folder `old` in facts of compilations, which hold whole paths."""
    for path in temporary.rglob("facts.json"):
        path.write_bytes(path.read_bytes().replace(old.encode(), str(place).encode()))
    temporary.rename(place)


def drop_unused() -> None:
    """Remove what was not used for long."""
    with filesystem.locked_folder(root()):
        oldest = time.time() - _KEPT_S
        for entry in (*root().glob("made/*/*"), *root().glob("sdk/*/*")):
            if entry.is_file() and not entry.name.startswith(".") and _used(entry) < oldest:
                entry.unlink()
            elif entry.is_dir() and _used(entry) < oldest:
                shutil.rmtree(entry, ignore_errors=True)


def _used(entry: Path) -> float:
    paths = (entry, entry / "place") if entry.parts[-3] == "made" else (entry, *entry.rglob("*"))
    return max(path.lstat().st_mtime for path in paths if path.exists())


def _files(place: Path) -> Iterator[Path]:
    for path in sorted(place.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


@functools.cache
def _installed() -> str:
    found = {row.name: row.version for row in importlib.metadata.distributions()}
    return json.dumps([sys.version, sorted(found.items())])


def _digest(*parts: str | Path) -> str:
    found = hashlib.sha256()
    for part in parts:
        content = part.read_bytes() if isinstance(part, Path) else part.encode()
        name = str(part.name) if isinstance(part, Path) else ""
        found.update(f"{name} {len(content)} ".encode() + content)
    return found.hexdigest()
