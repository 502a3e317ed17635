"""Unpack an untrusted archive: each member is checked while it is read.

The tarfile module's "data" filter does not suffice: it sets no limits, and before Python 3.11.13 a chain of links
leads out of the folder (CVE-2025-4330, CVE-2025-4517).
"""

from __future__ import annotations

import gzip
import io
import itertools
import posixpath
import stat
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import InputError

_HINT = "nothing was installed; get the archive from Arm again"


@dataclass(frozen=True)
class Limits:
    """What an archive may hold. Arm's are below 2 GB and have some thousands of members."""

    members: int = 50_000
    member_bytes: int = 4 << 30
    total_bytes: int = 8 << 30
    header_bytes: int = 1 << 20  # of one read: tarfile takes long names and extended headers in one piece


class _BoundedReader(io.RawIOBase):
    """The unpacked bytes of a .tgz, which refuses to grow past a limit or to be read in one large piece."""

    def __init__(self, stream: gzip.GzipFile, limits: Limits) -> None:
        super().__init__()
        self._stream = stream
        self._limits = limits
        # Headers, padding and the end of the archive come on top of what the members hold.
        self._most = limits.total_bytes + limits.members * 4 * tarfile.BLOCKSIZE

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._stream.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._check(offset)
        return self._stream.seek(offset, whence)

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or not 0 <= size <= self._limits.header_bytes:
            raise InputError("the archive has an unreasonably large header", _HINT)
        data = self._stream.read(size)
        self._check(self._stream.tell())
        return data

    def _check(self, position: int) -> None:
        if position > self._most:
            raise InputError(f"the archive unpacks to more than {self._most:,} bytes", _HINT)


def unpack(archive: Path, folder: Path, limits: Limits | None = None) -> int:
    """Unpack the .tgz `archive` into the empty `folder`; the number of bytes that came out.

    Files, folders, and links that stay within `folder` are taken; an absolute path, one with ``..``, any other link,
    a device, a pipe, a set-user-ID bit, a member twice, or more than `limits` allow is an InputError, as is a damaged
    or cut archive.
    `folder` may then hold a part: the caller throws it away.
    """
    bounds = limits or Limits()
    total = 0
    try:
        with (
            filesystem.open_regular(archive) as packed,
            gzip.open(packed, "rb") as stream,
            tarfile.open(fileobj=_BoundedReader(stream, bounds), mode="r:") as members,
        ):
            for member in _checked(members, bounds):
                # The filter checks again what the file system makes of it, links that are there already included.
                members.extract(member, folder, filter="data")
                total += member.size
            # What follows the last member: only at its end does gzip check the sum over everything.
            rest = 0
            while piece := stream.read(1 << 16):
                rest += len(piece)
                if rest > bounds.header_bytes:
                    raise InputError("the archive has data after its end", _HINT)
    except tarfile.FilterError as error:
        raise InputError(f"the archive is refused: {error}", _HINT) from error
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{archive.name} is damaged or cut: {error}", _HINT) from error
    except OSError as error:
        raise InputError(f"cannot unpack {archive.name}: {error.strerror or error}", _HINT) from error
    except (ValueError, OverflowError, RecursionError) as error:  # a number in a header that is none
        raise InputError(f"{archive.name} is damaged: {error}", _HINT) from error
    return total


def _checked(members: tarfile.TarFile, limits: Limits) -> Iterator[tarfile.TarInfo]:
    judge = _Judge()
    total = 0
    for count, member in enumerate(members, 1):
        total += member.size
        problem = judge.problem(member)
        if problem:
            raise InputError(f"the archive is refused: {member.name[:200]!r} {problem}", _HINT)
        if count > limits.members or member.size > limits.member_bytes or total > limits.total_bytes:
            raise InputError(
                f"the archive is refused: it holds more than {limits.members:,} members, "
                f"{limits.member_bytes:,} bytes in one, or {limits.total_bytes:,} in all",
                _HINT,
            )
        yield member


class _Judge:
    """Judges members by name and kind alone, so that nothing depends on what the file system makes of them.

    No path goes through a link of the archive, and no link's target climbs (``..``) after it has gone down: then a
    path means what it says, and a link that does not leave by its text does not leave at all.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._links: set[str] = set()

    def problem(self, member: tarfile.TarInfo) -> str:
        """What is wrong with the next member, or nothing."""
        if kind := _refused_kind(member):
            return kind
        name = posixpath.normpath(member.name)
        if not _stays(member.name) or ".." in member.name.split("/"):
            return "leads out of the archive"
        if any(str(parent) in self._links for parent in PurePosixPath(name).parents):
            return "goes through a link of the archive"
        if not self._good_target(member):
            return f"is a link out of the archive, to {member.linkname[:200]!r}"
        if name in self._links or (name in self._seen and not member.isdir()):
            return "is in the archive twice"
        self._seen.add(name)
        if member.issym():
            self._links.add(name)
        return ""

    def _good_target(self, member: tarfile.TarInfo) -> bool:
        if member.issym():
            down = itertools.dropwhile(lambda part: part in ("", ".", ".."), member.linkname.split("/"))
            target = posixpath.join(posixpath.dirname(member.name), member.linkname)
            return ".." not in down and _stays(target)
        if member.islnk():  # to a file that came before
            name = posixpath.normpath(member.linkname)
            return _stays(member.linkname) and name in self._seen and name not in self._links
        return True


def _refused_kind(member: tarfile.TarInfo) -> str:
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        return "is a device, a pipe or of an unknown kind"
    if member.isreg() and member.mode & (stat.S_ISUID | stat.S_ISGID):
        return "would run as another user (set-user-ID)"
    return ""


def _stays(name: str) -> bool:
    """Whether a path, relative to the archive's root, stays below it by its text."""
    first = posixpath.normpath(name).split("/")[0]
    return not name.startswith("/") and first not in ("", "..") and "\0" not in name
