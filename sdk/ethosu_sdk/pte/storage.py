"""The data of a `.pte` outside of its tables: segments, constants, initial states and delegate payloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ethosu_sdk import vela_blocks
from ethosu_sdk.errors import InputError
from ethosu_sdk.pte.data_file import Blob, DataFile, named_segments
from ethosu_sdk.pte.flatbuffer import Table
from ethosu_sdk.pte.model import Header, Segment
from ethosu_sdk.pte.named_data import NamedData, check_block
from ethosu_sdk.vela_blocks import VelaBlocks

_SEGMENT = 1  # DataLocation.SEGMENT
_PAYLOAD_ALIGNMENT = 16  # the NPU reads command stream and weights in place
_MAX_INLINED_BYTES = 1 << 30  # of all payloads with blocks from outside


@dataclass(frozen=True)
class Piece:
    """Bytes of the file and where they start in it."""

    offset: int
    data: memoryview


@dataclass(frozen=True)
class Subsegment:
    """A segment and the offsets of the buffers in it, by buffer index."""

    segment: Piece
    offsets: tuple[int, ...]

    def buffer(self, index: int, nbytes: int, alignment: int, tensor: Table) -> memoryview:
        """The `nbytes` bytes of buffer number `index`, which `tensor` uses."""
        if index >= len(self.offsets):
            raise tensor.error(f"is {index}, there are {len(self.offsets)} buffers", field="data_buffer_idx")
        offset = self.offsets[index]
        if offset + nbytes > len(self.segment.data):
            raise tensor.error(
                f"needs bytes {offset} to {offset + nbytes} of a segment of {len(self.segment.data)} bytes"
            )
        if (self.segment.offset + offset) % alignment:
            raise tensor.error(
                f"has its data at byte {self.segment.offset + offset}, not on {alignment} bytes"
            )
        return self.segment.data[offset : offset + nbytes]


@dataclass(frozen=True)
class Storage:
    """Everything that plans refer to by index."""

    segments: tuple[Piece, ...]
    inline: tuple[Piece, ...]  # Program.backend_delegate_data
    constants: Subsegment | None
    mutable: tuple[Subsegment, ...]
    named: NamedData
    decoded: dict[tuple[int, int], tuple[memoryview, VelaBlocks]] = field(default_factory=dict)

    def vela(
        self, piece: Piece, delegate: Table, compile_specs: Mapping[str, bytes]
    ) -> tuple[memoryview, VelaBlocks]:
        """The Ethos-U payload in `piece`, which `delegate` refers to: with all of its blocks, and decoded."""
        key = piece.offset, len(piece.data)  # delegates may share a payload
        if key not in self.decoded:
            if piece.offset % _PAYLOAD_ALIGNMENT:
                raise delegate.error(
                    f"starts at byte {piece.offset}, not a multiple of 16", field="processed"
                )
            try:
                whole = vela_blocks.inlined(
                    piece.data, lambda name, key: self._block(name, key, compile_specs)
                )
                self.decoded[key] = whole, vela_blocks.parse(whole)
            except InputError as error:
                raise InputError(f"{delegate.where}: {error.message}", error.hint) from error
        return self.decoded[key]

    def _block(self, name: str, key: str, compile_specs: Mapping[str, bytes]) -> memoryview:
        """The block called `name` of an Ethos-U payload, which lies in the named data under `key`."""
        blob = self.named.require(key, f"the delegate's block '{name}' with the key")
        if blob.offset % _PAYLOAD_ALIGNMENT:
            raise InputError(
                f"the block '{name}' starts at byte {blob.offset} of its file, not a multiple of 16"
            )
        check_block(name, key, blob, compile_specs)
        copied = sum(len(payload) for payload, _ in self.decoded.values())
        if copied + len(blob.data) > _MAX_INLINED_BYTES:
            raise InputError(
                f"the delegates' data outside of the program is more than {_MAX_INLINED_BYTES:,} bytes"
            )
        return blob.data

    def delegate_payload(self, reference: Table) -> Piece:
        """What a BackendDelegateDataReference refers to."""
        pieces = self.segments if reference.integer("location") == _SEGMENT else self.inline
        index = reference.integer("index")
        if index >= len(pieces):
            raise reference.error(f"is {index}, there are {len(pieces)} payloads", field="index")
        return pieces[index]


def read_storage(
    root: Table, file: memoryview, header: Header, data_files: Sequence[DataFile], path: Path | None
) -> tuple[Storage, tuple[Segment, ...]]:
    """The storage of the program whose root table is `root`, and its segments; the rest as in `NamedData`."""
    segments = _segments(root, header, len(file))
    pieces = tuple(Piece(row.offset, file[row.offset : row.offset + row.size]) for row in segments)
    _check_no_constant_buffer(root)
    constants = root.table("constant_segment")
    storage = Storage(
        segments=pieces,
        inline=tuple(_inline(table, file) for table in root.tables("backend_delegate_data")),
        constants=None if constants is None else _subsegment(constants, pieces),
        mutable=tuple(_subsegment(table, pieces) for table in root.tables("mutable_data_segments")),
        named=NamedData(_named_data(root, pieces), data_files, path),
    )
    return storage, segments


def _segments(root: Table, header: Header, file_bytes: int) -> tuple[Segment, ...]:
    """All segments: in the order of their offsets and apart from each other, but for empty ones."""
    tables = root.tables("segments")
    segments = tuple(_segment(table, header, file_bytes) for table in tables)
    end = header.segment_base
    for table, segment in zip(tables, segments, strict=True):
        if segment.size and segment.offset < end:
            raise table.error(f"starts at byte {segment.offset}, before the one before it ends")
        end = max(end, segment.offset + segment.size)
    return segments


def _segment(table: Table, header: Header, file_bytes: int) -> Segment:
    offset, size = table.integer("offset"), table.integer("size")
    if size and not header.extended:
        raise table.error("holds data, but the file has no header with the start of the segments")
    end = header.segment_base + offset + size
    if end > file_bytes or (header.segment_bytes and offset + size > header.segment_bytes):
        raise table.error(f"ends at byte {end} of a file of {file_bytes} bytes")
    return Segment(header.segment_base + offset, size)


def _inline(table: Table, file: memoryview) -> Piece:
    start, size = table.extent("data")
    return Piece(start, file[start : start + size])


def _subsegment(table: Table, segments: tuple[Piece, ...]) -> Subsegment:
    offsets = table.integers("offsets")
    index = table.integer("segment_index")
    if index < len(segments):
        return Subsegment(segments[index], offsets)
    if any(offsets):
        raise table.error(f"is {index}, there are {len(segments)} segments", field="segment_index")
    return Subsegment(Piece(0, memoryview(b"")), offsets)


def _check_no_constant_buffer(root: Table) -> None:
    # Entry 0 stands for "no data" and may be there, empty.
    buffers = root.tables("constant_buffer")
    if len(buffers) > 1 or any(len(buffer.octets("storage")) for buffer in buffers):
        raise root.error(
            "holds constants within the program, a layout that ExecuTorch dropped in 2024",
            "compile the model again with ExecuTorch 1.5",
            field="constant_buffer",
        )


def _named_data(root: Table, segments: tuple[Piece, ...]) -> Mapping[str, Blob]:
    """Program.named_data: blobs by their names."""
    return {key: Blob(piece.offset, piece.data) for _, key, piece in named_segments(root, segments)}
