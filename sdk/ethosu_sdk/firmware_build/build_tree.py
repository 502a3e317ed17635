"""Digests of every file in a build tree, so that a tree that was changed between builds is noticed.

Ninja trusts times: it would link an object that somebody replaced, or that an interrupted build left, as its own.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from ethosu_sdk import cache
from ethosu_sdk.errors import BuildError, InputError
from ethosu_sdk.files import hashing, json_text

_NOTE = "objects.json"
_OBJECTS = "objects"  # below the tree; sources are compared with their contents each time
# When things were done, in what order, and under which temporary names: what they say is not part of an ELF.
_DIARIES = (".ninja_log", ".ninja_deps", "CMakeOutput.log", "CMakeError.log")
_SHOWN = 3
_TAKEN_APART = ';$"\\#%|<>,\n'  # each tried with CMake 3.25, Ninja 1.11 and GNU ld


def unfit(tree: Path) -> str:
    """The characters in the path of `tree` that keep CMake, Ninja or the linker from building there; mostly none."""
    return " ".join(map(repr, sorted(set(_TAKEN_APART) & set(str(tree.absolute())))))


def open_tree(tree: Path) -> None:
    """Make sure that all in `tree` is what :func:`close_tree` left there; else discard it, and note an altered file.

    Until the tree is closed again it counts as interrupted.
    """
    noted = _noted(tree)
    (tree / _NOTE).unlink(missing_ok=True)
    if noted is None:
        discard(tree)
        return
    found = _digests(tree)
    altered = sorted(name for name in {*noted, *found} if noted.get(name) != found.get(name))
    if altered:
        more = ", …" if len(altered) > _SHOWN else ""
        cache.note(
            f"the build tree {tree} was changed since the last build ({', '.join(altered[:_SHOWN])}{more}): it is "
            "created again"
        )
        discard(tree)


def close_tree(tree: Path) -> None:
    """Note the digests of everything in `tree`."""
    json_text.write_json(tree / _NOTE, _digests(tree))


def discard(tree: Path) -> None:
    """Remove `tree`, if it is there."""
    try:
        if tree.is_dir():
            shutil.rmtree(tree)
    except OSError as error:
        raise BuildError(f"cannot clear {tree}: {error.strerror}") from error


def _noted(tree: Path) -> dict[str, str] | None:
    try:
        return dict(json_text.read_json(tree / _NOTE))
    except InputError:  # no note, or a damaged one
        return None


def _digests(tree: Path) -> dict[str, str]:
    return {path.relative_to(tree).as_posix(): _digest(path) for path in _files(tree / _OBJECTS)}


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.name not in _DIARIES and (path.is_symlink() or not path.is_dir()):
            yield path


def _digest(path: Path) -> str:
    try:
        return f"link to {path.readlink()}" if path.is_symlink() else hashing.sha256_file(path)
    except (OSError, InputError):
        return "cannot be read"
