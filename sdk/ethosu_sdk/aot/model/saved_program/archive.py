"""Reads the members of a ZIP archive, and refuses archives that different readers could read differently.

torch reads a ``.pt2`` with miniz, a check in Python with :mod:`zipfile`: where an archive says a thing twice, the two
may believe different copies. So only what torch's writer makes is taken: whole members, stored as they are, one
behind the other from the file's first byte to the directory, which the file ends with.

Source: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
from collections.abc import Sequence

from ethosu_sdk.aot.model.saved_program.finding import UnsafeError, shown

_END, _LOCATOR, _END64 = struct.Struct("<4s4H2LH"), struct.Struct("<4sLQL"), struct.Struct("<4sQ2H2L4Q")
_LOCAL = struct.Struct("<4s5H3L2H")
_DESCRIPTORS = (struct.Struct("<4s3L"), struct.Struct("<4sL2Q"))
_DESCRIPTOR_FLAG, _UTF8_FLAG = 0x0008, 0x0800
_ZIP64_EXTRA = 1
_ALL_ONES = (0xFFFF, 0xFFFFFFFF)
_NAME = re.compile(r"(?:[A-Za-z0-9_.+@=, ()\[\]~-]+/)*[A-Za-z0-9_.+@=, ()\[\]~-]+")


def members(data: bytes) -> dict[str, memoryview]:
    """Each member's content, a view of `data`, by its name. UnsafeError when the archive is ambiguous."""
    directory_at, entries = _directory(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            rows = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
        raise UnsafeError(f"its directory is damaged ({error})") from error
    if len(rows) != entries:
        raise UnsafeError(f"its directory claims {entries} members but lists {len(rows)}")
    _check_names(rows)
    position = 0
    found = {}
    for row in sorted(rows, key=lambda row: row.header_offset):
        found[row.filename], position = _member(data, row, position)
    if position != directory_at:
        raise UnsafeError("there are bytes between its last member and its directory")
    return {row.filename: found[row.filename] for row in rows}


def _directory(data: bytes) -> tuple[int, int]:
    """Where the directory begins, and how many members it has."""
    at = len(data) - _END.size
    if at < 0 or data[at : at + 4] != b"PK\x05\x06":
        raise UnsafeError("it has no end record, or bytes follow it")
    _, disk, first_disk, here, total, size, offset, comment = _END.unpack_from(data, at)
    fields: tuple[int, ...] = (disk, first_disk, here, total, size, offset)
    locator_at = at - _LOCATOR.size
    if locator_at >= 0 and data[locator_at : locator_at + 4] == b"PK\x06\x07":
        at, fields = _directory64(data, locator_at, fields)
    disk, first_disk, here, total, size, offset = fields
    if comment or disk or first_disk or here != total:
        raise UnsafeError("it has a comment, or more than one part")
    if offset + size != at:
        raise UnsafeError(
            "its directory is not where its end record says: bytes were inserted before or after it"
        )
    return offset, total


def _directory64(data: bytes, locator_at: int, narrow: Sequence[int]) -> tuple[int, tuple[int, ...]]:
    at = locator_at - _END64.size
    _, disk, position, disks = _LOCATOR.unpack_from(data, locator_at)
    if at < 0 or position != at or disk or disks > 1 or data[at : at + 4] != b"PK\x06\x06":
        raise UnsafeError("its ZIP64 end record is not where its locator says")
    _, size, _, _, *fields = _END64.unpack_from(data, at)
    if size != _END64.size - 12:  # without the signature and the size itself
        raise UnsafeError("its ZIP64 end record has an unknown form")
    if any(old != new and old not in _ALL_ONES for old, new in zip(narrow, fields, strict=True)):
        raise UnsafeError("its two end records contradict each other")
    return at, tuple(fields)


def _check_names(rows: Sequence[zipfile.ZipInfo]) -> None:
    seen: set[str] = set()
    for row in rows:
        name = row.filename
        if row.orig_filename != name or not _NAME.fullmatch(name) or {"..", "."} & set(name.split("/")):
            raise UnsafeError(
                f"the name of member {shown(row.orig_filename)} has parts or characters that are not allowed"
            )
        if name.lower() in seen:  # miniz tells upper from lower case no more than Windows does
            raise UnsafeError(f"it has two members {shown(name)}")
        seen.add(name.lower())


def _member(data: bytes, row: zipfile.ZipInfo, position: int) -> tuple[memoryview, int]:
    """The content of a member whose local header must lie at `position`, and where the next one begins."""
    what = f"member {shown(row.filename)}"
    if row.compress_type != zipfile.ZIP_STORED or row.compress_size != row.file_size:
        raise UnsafeError(f"{what} is compressed, which torch.export.save does not do")
    if row.flag_bits & ~(_DESCRIPTOR_FLAG | _UTF8_FLAG):
        raise UnsafeError(f"{what} is encrypted or has unknown flags")
    if row.header_offset != position or position + _LOCAL.size > len(data):
        raise UnsafeError(f"{what} does not begin where the one before it ends")
    _check_extra(row, what)
    signature, _, flags, method, _, _, crc, packed, size, name_bytes, extra_bytes = _LOCAL.unpack_from(
        data, position
    )
    start = position + _LOCAL.size + name_bytes + extra_bytes
    end = start + row.file_size
    late = bool(flags & _DESCRIPTOR_FLAG)
    if (
        (signature, flags, method) != (b"PK\x03\x04", row.flag_bits, row.compress_type)
        or data[position + _LOCAL.size : start - extra_bytes] != row.filename.encode()
        or any(
            given != row.file_size and given not in _ALL_ONES and not (late and given == 0)
            for given in (packed, size)
        )
        or (crc != row.CRC and not (late and crc == 0))
    ):
        raise UnsafeError(f"{what} has a local header that contradicts the directory")
    return memoryview(data)[start:end], _behind(data, row, end, what) if late else end


def _check_extra(row: zipfile.ZipInfo, what: str) -> None:
    """Only one field with sizes of 64 bits may stand in the directory: readers differ in which of two they take."""
    extra = row.extra
    if not extra:
        return
    if len(extra) < 4 or int.from_bytes(extra[:2], "little") != _ZIP64_EXTRA:
        raise UnsafeError(f"{what} has extra fields in the directory")
    if int.from_bytes(extra[2:4], "little") != len(extra) - 4:
        raise UnsafeError(f"{what} has several extra fields in the directory")


def _behind(data: bytes, row: zipfile.ZipInfo, end: int, what: str) -> int:
    """Where the data descriptor at `end` ends."""
    wanted = (b"PK\x07\x08", row.CRC, row.compress_size, row.file_size)
    for layout in _DESCRIPTORS:
        if data[end : end + layout.size] == layout.pack(*wanted):
            return end + layout.size
    raise UnsafeError(f"{what} has a data descriptor that contradicts the directory")
