"""Folders for one process at a time: locked folders and temporary folders."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ethosu_sdk.errors import BuildError
from ethosu_sdk.files import opening, writing


@contextlib.contextmanager
def temporary_directory(prefix: str, parent: Path) -> Iterator[Path]:
    """A folder below `parent` for the time of a `with` block. Those that killed commands left there are removed.

    Each is locked while it is in use: the system lets go of a dead process's locks. Raises OSError.
    """
    _remove_abandoned(prefix, parent)
    with contextlib.ExitStack() as stack:
        while True:
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            lock = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.is_dir():  # nobody took it for an abandoned one before it was locked
                break
        yield folder


def _remove_abandoned(prefix: str, parent: Path) -> None:
    for folder in parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep `directory` for this process while the block runs; others wait for it.

    BuildError when the folder takes no lock: it is read-only, or its disk is full.
    """
    writing.make_directory(directory)
    with contextlib.ExitStack() as stack:
        try:
            stream = stack.enter_context(opening.locking(directory / ".lock"))
            fcntl.flock(stream, fcntl.LOCK_EX)
        except OSError as error:
            raise BuildError(
                f"cannot lock the folder {directory}: {error.strerror}",
                "make it writable, free some space, or choose another with -o (the cache's: ETHOSU_SDK_CACHE)",
            ) from error
        try:
            yield
        finally:
            fcntl.flock(stream, fcntl.LOCK_UN)
