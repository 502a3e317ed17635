"""Writing files and folders: atomically, so that no reader sees half a file."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from ethosu_sdk.errors import BuildError
from ethosu_sdk.files import opening

_SHOWN_NAME = 40  # characters of a file name in that of its temporary file


def working_folder_is_gone() -> bool:
    """Whether the folder was deleted in which this process works: relative paths then lead nowhere."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def make_directory(path: Path) -> Path:
    """Create `path` with its parents; BuildError that names the reason when that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "choose another with -o"
        if not path.is_absolute() and working_folder_is_gone():
            hint = "the working folder no longer exists: change to one that does"
        if isinstance(error, PermissionError):
            hint += '; in a container, run as the folder\'s owner: docker run --user "$(id -u):$(id -g)"'
        raise BuildError(f"cannot create the folder {path}: {error.strerror}", hint) from error
    return path


def write_atomic(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then give it the final name.

    A reader sees the old content or the whole new one. Raises BuildError when the disk refuses.
    """
    with staged(path, write) as publish:
        publish()


@contextlib.contextmanager
def staged(path: Path, write: Callable[[Path], object]) -> Iterator[Callable[[], None]]:
    """The first half of :func:`write_atomic`: the block gets the function that gives the file its final name.

    Without that, nothing is left of the file when the block ends.
    """
    if opening.is_special(path):
        raise BuildError(
            f"cannot write {path}: it is a device or a pipe, not a file", "give the name of a file"
        )
    with _refused(path):
        temporary = _temporary_beside(path)
    try:
        with _refused(path):
            write(temporary)
            with opening.regular(temporary) as stream:
                os.fsync(stream.fileno())
        yield lambda: _publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _publish(temporary: Path, path: Path) -> None:
    with _refused(path):
        temporary.replace(path)


@contextlib.contextmanager
def _refused(path: Path) -> Iterator[None]:
    """BuildError for what the disk says of `path` in the block."""
    try:
        yield
    except OSError as error:
        hint = "free some space or choose another folder with -o" if error.errno == errno.ENOSPC else ""
        raise BuildError(f"cannot write {path}: {error.strerror}", hint) from error


def _temporary_beside(path: Path) -> Path:
    """A new empty file beside `path`, for whom the user's mask says: tempfile's would be for the user alone."""
    while True:
        # A part of the name, which may be as long as the file system takes.
        candidate = path.with_name(f".{path.name[:_SHOWN_NAME]}.{secrets.token_hex(4)}.part")
        with contextlib.suppress(FileExistsError):
            os.close(os.open(candidate, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
            return candidate


def make_executable(path: Path) -> None:
    """Let everybody execute `path` who may read it."""
    mode = path.stat().st_mode
    path.chmod(mode | (mode & 0o444) >> 2)


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` atomically."""
    write_atomic(path, lambda temporary: temporary.write_bytes(data))


def copy_file(source: Path, path: Path) -> None:
    """Copy the file `source` to `path`, atomically."""
    write_atomic(path, lambda temporary: shutil.copyfile(source, temporary))
