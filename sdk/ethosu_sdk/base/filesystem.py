"""Files and folders: opened and written safely, locked for one process at a time, and their SHA-256.

A file to read is a regular one: opening a named pipe waits for a writer, a device has no end. A file to write is a
new one or no link: whoever can write to the folder could let the link point to any file of the user's.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, cast

from ethosu_sdk.base.errors import BuildError, InputError

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_regular(path: Path) -> BufferedReader:
    """The file at `path`, opened for reading. InputError at once when it cannot be read or is not a regular file."""
    try:
        _refuse_others(path, os.stat(path).st_mode)  # opening a device can have an effect
        # O_NONBLOCK: it may have become a named pipe meanwhile, which waits for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise InputError(f"there is no file {path}") from error
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {_open_reason(error)}") from error
    try:
        _refuse_others(path, os.fstat(descriptor).st_mode)
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def file_content(path: Path, most_bytes: int) -> bytes:
    """The content of the regular file at `path`, or its first `most_bytes` + 1 bytes: the caller refuses those.

    InputError when it cannot be read.
    """
    with open_regular(path) as stream:
        try:
            # The size bounds it, too: for as many bytes as are asked for, Python takes memory at once.
            size_bytes = os.fstat(stream.fileno()).st_size
            data = stream.read(min(size_bytes, most_bytes) + 1)
        except OSError as error:
            raise InputError(f"cannot read {path}: {_open_reason(error)}") from error
    if len(data) != min(size_bytes, most_bytes + 1):
        raise InputError(f"{path} changed while it was read")
    return data


def _refuse_others(path: Path, mode: int) -> None:
    kind = _KINDS.get(stat.S_IFMT(mode))
    if kind is not None:
        raise InputError(
            f"{path} is {kind}, not a file", "" if kind == "a folder" else "save its output to a file first"
        )


def _open_reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def open_replacing(path: Path) -> BinaryIO:
    """A new file at `path`, opened for writing without a buffer, in place of the file or link that lay there.

    Neither a link nor another name of the same file leads to what is written. A device or a pipe is written to: the
    null device, above all, must stay what it is. Raises OSError; for a pipe that nobody reads, too.
    """
    if is_special(path):
        descriptor = _created(path, os.O_WRONLY | os.O_NONBLOCK)  # which does not wait for a reader
        os.set_blocking(descriptor, True)
        return cast(BinaryIO, open(descriptor, "wb", buffering=0))
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    return cast(BinaryIO, open(_created(path, os.O_WRONLY | os.O_EXCL), "wb", buffering=0))


def is_special(path: Path) -> bool:
    """Whether a device, a pipe or a socket lies at `path`, which no file may take the place of."""
    try:
        return stat.S_IFMT(path.lstat().st_mode) not in (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR)
    except OSError:
        return False


def open_appending(path: Path) -> BinaryIO:
    """The file at `path`, opened for writing at its end, made if there is none. Raises OSError; for a link, too."""
    return _written(path, os.O_WRONLY | os.O_APPEND, "ab")


def _written(path: Path, flags: int, mode: str) -> BinaryIO:
    """The regular file at `path`, made if there is none, else as it was. Raises OSError; for a link, too."""
    descriptor = _created(path, flags | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, f"{path.name} is not a regular file", str(path))
        return cast(BinaryIO, open(descriptor, mode))
    except BaseException:
        os.close(descriptor)
        raise


def _created(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(error.errno, f"{path.name} is a symbolic link", str(path)) from error
        raise


def file_text(path: Path, most_bytes: int) -> str:
    """The text in the regular file at `path`. InputError when it cannot be read, is larger, or is not UTF-8."""
    data = file_content(path, most_bytes)
    if len(data) > most_bytes:
        raise InputError(f"{path} is too large: it has more than {most_bytes:,} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read {path}: it is not text in UTF-8") from error


def sha256_bytes(data: bytes | bytearray | memoryview) -> str:
    """SHA-256 of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's content in hexadecimal. InputError when it cannot be read."""
    try:
        with open_regular(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


# Writing, so that no reader sees half a file.

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
    if is_special(path):
        raise BuildError(
            f"cannot write {path}: it is a device or a pipe, not a file", "give the name of a file"
        )
    with _refused(path):
        temporary = _temporary_beside(path)
    try:
        with _refused(path):
            write(temporary)
            with open_regular(temporary) as stream:
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


# Folders for one process at a time.


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
def locked_folder(directory: Path) -> Iterator[None]:
    """Keep `directory` for this process while the block runs; others wait for it.

    BuildError when the folder takes no lock: it is read-only, or its disk is full.
    """
    make_directory(directory)
    with contextlib.ExitStack() as stack:
        try:
            stream = stack.enter_context(_written(directory / ".lock", os.O_RDWR, "r+b"))
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
