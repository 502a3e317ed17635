"""Opens files that a user names for reading, and files with fixed names for writing.

A file to read is a regular one: opening a named pipe waits for a writer, a device has no end. A file to write is a
new one or no link: whoever can write to the folder could let the link point to any file of the user's.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, cast

from ethosu_sdk.errors import InputError

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_SAVE_IT = "save its output to a file first"


def regular(path: Path) -> BufferedReader:
    """The file at `path`, opened for reading. InputError at once when it cannot be read or is not a regular file."""
    try:
        _refuse_others(path, os.stat(path).st_mode)  # opening a device can have an effect
        # O_NONBLOCK: it may have become a named pipe meanwhile, which waits for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise InputError(f"there is no file {path}") from error
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {_reason(error)}") from error
    try:
        _refuse_others(path, os.fstat(descriptor).st_mode)
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def content(path: Path, most_bytes: int) -> bytes:
    """The content of the regular file at `path`, or its first `most_bytes` + 1 bytes: the caller refuses those.

    InputError when it cannot be read.
    """
    with regular(path) as stream:
        try:
            # The size bounds it, too: for as many bytes as are asked for, Python takes memory at once.
            size_bytes = os.fstat(stream.fileno()).st_size
            data = stream.read(min(size_bytes, most_bytes) + 1)
        except OSError as error:
            raise InputError(f"cannot read {path}: {_reason(error)}") from error
    if len(data) != min(size_bytes, most_bytes + 1):
        raise InputError(f"{path} changed while it was read")
    return data


def _refuse_others(path: Path, mode: int) -> None:
    kind = _KINDS.get(stat.S_IFMT(mode))
    if kind is not None:
        raise InputError(f"{path} is {kind}, not a file", "" if kind == "a folder" else _SAVE_IT)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def replacing(path: Path) -> BinaryIO:
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


def appending(path: Path) -> BinaryIO:
    """The file at `path`, opened for writing at its end, made if there is none. Raises OSError; for a link, too."""
    return _written(path, os.O_WRONLY | os.O_APPEND, "ab")


def locking(path: Path) -> BinaryIO:
    """The file at `path`, to be locked; made if there is none, else as it was. Raises OSError; for a link, too."""
    return _written(path, os.O_RDWR, "r+b")


def _written(path: Path, flags: int, mode: str) -> BinaryIO:
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


def text(path: Path, most_bytes: int) -> str:
    """The text in the regular file at `path`. InputError when it cannot be read, is larger, or is not UTF-8."""
    data = content(path, most_bytes)
    if len(data) > most_bytes:
        raise InputError(f"{path} is too large: it has more than {most_bytes:,} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read {path}: it is not text in UTF-8") from error
