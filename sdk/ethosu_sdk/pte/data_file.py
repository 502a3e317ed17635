"""Data files (`.ptd`): tensors and other named data outside of the program, in ExecuTorch's FlatTensor format.

The file starts as every FlatBuffers file; a header (FH01) follows with the extents of the tables and of the segments
behind them (ExecuTorch 1.5.1, extension/flat_tensor/serialize/flat_tensor_header.h).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from ethosu_sdk.errors import InputError
from ethosu_sdk.files import opening
from ethosu_sdk.pte import schema
from ethosu_sdk.pte.flatbuffer import FlatBuffer, Table, make_schema
from ethosu_sdk.pte.scalar_types import SCALAR_TYPES

SUFFIX = ".ptd"
_MAX_FILE_BYTES = 1 << 30
_SCHEMA = make_schema(schema.DATA_TABLES, {}, {"ScalarType": schema.ENUMS["ScalarType"]})
_DTYPES = {row.number: row.dtype for row in SCALAR_TYPES}
_HINT = "give the .ptd file that ExecuTorch 1.5 wrote with the program"
_CUT = "the file was cut off or is damaged; write it again, with its program"
_MAX_SHOWN = 100  # characters of a key; those of blocks have 64
_MAGIC = b"FH01"
_MAGIC_OFFSET = 8
_HEADER_BYTES = 40  # magic, u32 length, u64 start and size of the tables, u64 start and size of the segments

_Segment = TypeVar("_Segment")


@dataclass(frozen=True)
class Layout:
    """The form of a tensor; `dim_order` lists the dimensions from the outermost in memory to the innermost."""

    dtype: str
    sizes: tuple[int, ...]
    dim_order: tuple[int, ...]

    def __str__(self) -> str:
        shape = f"{self.dtype}{list(self.sizes)}"
        is_plain = self.dim_order == tuple(range(len(self.sizes)))
        return shape if is_plain else f"{shape} in the order {list(self.dim_order)}"


@dataclass(frozen=True)
class Blob:
    """Named data: its bytes, where they start in their file, and the layout of a tensor."""

    offset: int
    data: memoryview = field(repr=False)
    layout: Layout | None = None


@dataclass(frozen=True, eq=False)
class DataFile:
    """A checked data file. Views share memory with `data`, the whole file.

    `is_found` says that nobody named it: it lay beside the program.
    """

    path: Path
    sha256: str
    blobs: Mapping[str, Blob] = field(repr=False)
    data: memoryview = field(repr=False)
    is_found: bool = False

    @property
    def size(self) -> int:
        """Size in bytes."""
        return len(self.data)


def read(path: Path) -> DataFile:
    """Read and check the data file at `path`. Raises InputError that says what is wrong and where."""
    with opening.regular(path) as stream:
        try:
            size_bytes = os.fstat(stream.fileno()).st_size
            if size_bytes > _MAX_FILE_BYTES:
                raise InputError(f"{path} is too large for a .ptd file ({size_bytes:,} bytes)", _HINT)
            data = stream.read(size_bytes)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}", _HINT) from error
    if data[4:8] != schema.DATA_FILE_IDENTIFIER:
        from ethosu_sdk.files import file_kinds  # here, because reading a good file must stay quick

        raise file_kinds.not_a(path, "a .ptd file", _HINT)
    try:
        return replace(parse(data), path=path)
    except InputError as error:
        raise InputError(f"{path}: {error.message}", error.hint) from error


def parse(data: bytes | bytearray | memoryview) -> DataFile:
    """Check the content of a data file; InputError for anything that is malformed or contradicts itself."""
    file = memoryview(data).toreadonly().cast("B")
    tables_end, segment_base, segment_bytes = _header(file)
    root = FlatBuffer(file[:tables_end], _SCHEMA, SUFFIX).root(schema.DATA_ROOT_TABLE)
    if root.integer("version") != 0:
        raise root.error(f"is {root.integer('version')}, the SDK reads version 0", field="version")
    segments = []
    for table in root.tables("segments"):
        offset, size = table.integer("offset"), table.integer("size")
        if offset + size > segment_bytes:
            raise table.error(f"ends at byte {offset + size} of segments of {segment_bytes} bytes")
        segments.append((segment_base + offset, size))
    blobs: dict[str, Blob] = {}
    for table, key, (start, size) in named_segments(root, segments):
        blobs[key] = Blob(start, file[start : start + size], _layout(table))
    return DataFile(Path(), hashlib.sha256(file).hexdigest(), blobs, file)


def named_segments(root: Table, segments: Sequence[_Segment]) -> Iterator[tuple[Table, str, _Segment]]:
    """The rows of `named_data` in a data file or a program, each with its key and the segment that it names.

    Raises:
        InputError: A key is empty or stands twice, or there is no such segment.
    """
    keys: set[str] = set()
    for table in root.tables("named_data"):
        key, index = table.string("key"), table.integer("segment_index")
        if not key or key in keys:
            raise table.error(f"is {shortened(key)!r}, which is empty or not unique", field="key")
        if index >= len(segments):
            raise table.error(f"is {index}, there are {len(segments)} segments", field="segment_index")
        keys.add(key)
        yield table, key, segments[index]


def shortened(key: str) -> str:
    """The key as messages give it: a file can hold one of any length."""
    return key if len(key) <= _MAX_SHOWN else f"{key[:_MAX_SHOWN]}…"


def _layout(table: Table) -> Layout | None:
    layout = table.table("tensor_layout")
    if layout is None:
        return None
    sizes, order = layout.integers("sizes"), tuple(layout.octets("dim_order"))
    if any(size < 0 for size in sizes):
        raise layout.error(f"is {list(sizes)}", field="sizes")
    if sorted(order) != list(range(len(sizes))):
        raise layout.error(f"is {list(order)} for {len(sizes)} dimensions", field="dim_order")
    return Layout(_DTYPES[layout.integer("scalar_type")], sizes, order)


def _header(file: memoryview) -> tuple[int, int, int]:
    """Where the tables end, where the segments start, and how many bytes those have: all within the file."""
    least = _MAGIC_OFFSET + _HEADER_BYTES
    if bytes(file[4:8]) != schema.DATA_FILE_IDENTIFIER or len(file) < least:
        raise InputError("not a .ptd file: its head is missing or is another one", _HINT)
    magic = bytes(file[_MAGIC_OFFSET : _MAGIC_OFFSET + 4])
    length = int.from_bytes(file[12:16], "little")
    if magic != _MAGIC or length < _HEADER_BYTES:
        raise InputError(f"damaged .ptd file: its header is {magic!r} of {length} bytes", _HINT)
    words = (int.from_bytes(file[at : at + 8], "little") for at in range(16, least, 8))
    tables, tables_bytes, base, segment_bytes = words
    end = tables + tables_bytes
    if tables < least or end > len(file) or (segment_bytes and base < end):
        raise InputError(
            f"damaged .ptd file: its tables are bytes {tables:,} to {end:,}, its segments start at {base:,}, and the "
            f"file has {len(file):,} bytes",
            _CUT,
        )
    if base + segment_bytes > len(file):
        raise InputError(
            f"damaged .ptd file: its segments end at byte {base + segment_bytes:,}, but the file ends at "
            f"{len(file):,}",
            _CUT,
        )
    return end, base, segment_bytes
