"""The cache: folders for results that can be created again."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import BuildError, InputError

CACHE_VARIABLE = "ETHOSU_SDK_CACHE"
PREBUILT_VARIABLE = "ETHOSU_SDK_PREBUILT"
_MOST_NOTE_BYTES = 1 << 10
_GIVEN = "given"
_ELSEWHERE: ContextVar[Path | None] = ContextVar("cache folder", default=None)
_NOTES: list[str] = []


def note(sentence: str) -> None:
    """Keep `sentence`, about something in the cache that was not as it was stored, for :func:`take_notes`."""
    _NOTES.append(sentence)


def take_notes() -> list[str]:
    """What was noted since the last call, to be shown to the user."""
    taken = _NOTES.copy()
    _NOTES.clear()
    return taken


def kept(path: Path, make: Callable[[Path], None]) -> Path:
    """`path` as it was stored, made by `make(path)` when it is missing or not what was stored then.

    The digest of what was stored lies beside it. The caller has locked the folder.
    """
    digest = path.with_name(f"{path.name}.sha256")
    if path.is_file():
        stored = None
        with contextlib.suppress(InputError):
            stored = filesystem.file_content(digest, _MOST_NOTE_BYTES).decode(errors="replace").strip()
        if stored == filesystem.sha256_file(path):
            return path
        if stored is not None:  # else it was interrupted
            note(f"{path} was changed since it was stored: it is created again")
        path.unlink()
    make(path)
    filesystem.write_bytes(digest, filesystem.sha256_file(path).encode())
    return path


def keep_given(name: str, write: Callable[[Path], None]) -> Path:
    """A file `name` of what was given in Python, made by `write(path)`; equal content is one file."""
    root = directory_or_own(_GIVEN)
    with filesystem.temporary_directory(".new-", root) as work:
        write(work / name)
        path = root / filesystem.sha256_file(work / name) / name
        filesystem.make_directory(path.parent)
        (work / name).replace(path)
    return path


def given_file(name: str, sha256: str) -> Path:
    """Where :func:`keep_given` put the file with this digest, if it did."""
    return place(_GIVEN) / sha256 / name


@contextlib.contextmanager
def elsewhere(folder: Path) -> Iterator[None]:
    """Keep the cache in `folder` while the block runs: nothing that was made before is found."""
    token = _ELSEWHERE.set(folder)
    try:
        yield
    finally:
        _ELSEWHERE.reset(token)


def directory(part: str) -> Path:
    """The cache folder for `part`, created: below $ETHOSU_SDK_CACHE, else the user's cache (XDG base
    directory specification). It starts as a copy of what :func:`prebuilt` has. BuildError when it cannot be
    made or written."""
    folder, source = place(part), prebuilt(part)
    hint = f"set {CACHE_VARIABLE} to a folder that you can write to"
    try:
        filesystem.make_directory(folder.parent.parent)
        with contextlib.suppress(OSError):  # an error with it is reported when a folder in it is created
            folder.parent.mkdir(mode=0o700)  # for this user alone; one that is there keeps its mode
        if source is not None and not folder.exists():
            _copy(source, folder)
        filesystem.make_directory(folder)
    except BuildError as error:
        raise BuildError(error.message, hint) from error
    if not os.access(folder, os.W_OK):
        raise BuildError(f"the cache folder {folder} cannot be written", hint)
    return folder


def directory_or_own(part: str) -> Path:
    """:func:`directory`; where it cannot be written, a folder of this process alone, which goes with it."""
    try:
        return directory(part)
    except BuildError as error:
        note(f"{error.message}: results are not cached")
        return filesystem.make_directory(_own_folder() / part)


@functools.cache
def _own_folder() -> Path:
    stack = contextlib.ExitStack()
    folder = filesystem.temporary_directory("ethosu-sdk-cache-", Path(tempfile.gettempdir()))
    atexit.register(_leave, stack, os.getpid())
    return stack.enter_context(folder)


def _leave(stack: contextlib.ExitStack, owner: int) -> None:
    if os.getpid() == owner:  # and no fork of it
        stack.close()


def place(part: str) -> Path:
    """Where the cache folder for `part` is, or would be."""
    return _root(_ELSEWHERE.get()) / part


def installed(part: str) -> Path:
    """Where a part of the installation is that scripts of the SDK build in the cache, :func:`elsewhere` or not."""
    return _root(None) / part


def prebuilt(part: str) -> Path | None:
    """What came with the installation for `part` of this cache, never to be written; None when nothing did.

    A container image carries it below $ETHOSU_SDK_PREBUILT, at the full path of the cache that it was made in:
    CMake's trees hold absolute paths and are of no use in another place.
    """
    root = os.environ.get(PREBUILT_VARIABLE)
    folder = Path(root) / place(part).relative_to("/") if root else None
    return folder if folder is not None and folder.is_dir() else None


def _root(chosen: Path | None) -> Path:
    root = str(chosen) if chosen is not None else os.environ.get(CACHE_VARIABLE)
    if root is None:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        root = str(Path(base) / "ethosu-sdk")
    return Path(root).absolute()


def _copy(source: Path, folder: Path) -> None:
    """Copy `source` so that `folder` appears at once: another process may do the same."""
    filesystem.make_directory(folder.parent)
    with filesystem.locked_folder(folder.parent):
        if folder.exists():
            return
        temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
        try:
            shutil.copytree(source, temporary, symlinks=True)  # as build trees record them
            temporary.rename(folder)
        except OSError as error:
            raise BuildError(f"cannot copy {source} to {folder}: {error.strerror}") from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
