"""The payload of one Ethos-U delegate: command stream, weights and I/O layout as ExecuTorch packs them.

A payload is a chain of blocks. Each block is a 32-byte header (16-byte name, u32 length, u8 external flag, 11
reserved bytes) and its data, padded to 16 bytes; all numbers are little-endian (ExecuTorch 1.5.1,
backends/arm). The data of an external block is a key of named data: the SHA-256 of what it stands for, in hexadecimal
digits. The block `cmd_data` holds the driver actions of the `COP1` format: a fourcc, then tagged words
of which one carries the expected CONFIG and ID registers and one the command stream (Vela 5.1.0).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ethosu_sdk.base.errors import InputError

REGION_WEIGHTS = 0
REGION_SCRATCH = 1
REGION_FAST_SCRATCH = 2

FIRST_BLOCK = "vela_bin_stream"
LAST_BLOCK = "vela_end_stream"
EXTERNAL_BLOCKS = ("cmd_data", "weight_data")  # those that may lie in named data
CONTENT_BLOCKS = ("cmd_data", "weight_data", "scratch_size", "inputs", "outputs")

_BLOCK_HEADER = struct.Struct("<16sIB11s")
_BLOCK_ALIGNMENT = 16
_KEY = re.compile(rb"[0-9a-f]{64}")
_TENSOR_SLOT = struct.Struct("<9i")
_SLOT_DIMENSIONS = 6
_MAX_TENSOR_BYTES = 1 << 32

_FOURCC = b"COP1"
_ACTION_CONFIG = 1
_ACTION_COMMAND_STREAM = 2
_HINT = "compile the model again: the file is damaged or was made by an unsupported version of ExecuTorch"


@dataclass(frozen=True)
class Block:
    """One block of the chain; `offset` is where its data starts, in bytes from the start of the payload."""

    name: str
    offset: int
    length: int
    is_external: bool = False  # the data is a key


@dataclass(frozen=True)
class TensorSlot:
    """Where the NPU reads an input or writes an output.

    `shape` has six dimensions (leading ones), `offset` is in bytes from the base of `region`.
    """

    shape: tuple[int, ...]
    element_bytes: int
    offset: int
    region: int

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        size = self.element_bytes
        for dimension in self.shape:
            size *= dimension
        return size


@dataclass(frozen=True)
class VelaBlocks:
    """A checked payload. `weights` is region 0, `scratch_bytes` the size of region 1.

    The views share memory with the payload that was parsed. The size of region 2 (fast scratch) is not
    part of the payload.
    """

    blocks: tuple[Block, ...]
    command_data: memoryview
    weights: memoryview
    scratch_bytes: int
    inputs: tuple[TensorSlot, ...]
    outputs: tuple[TensorSlot, ...]
    config_word: int  # the CONFIG register of the NPU that the stream was compiled for
    arch_word: int  # its ID register
    command_stream: memoryview  # bytes of the stream itself: a multiple of four


def parse(payload: bytes | bytearray | memoryview) -> VelaBlocks:
    """Decode and check the payload of an `EthosUBackend` delegate.

    Raises InputError that names the block and the reason when anything is malformed, when a block is stored
    outside of the payload (external), or when the driver actions are not of the COP1 format.
    """
    view = memoryview(payload).toreadonly().cast("B")
    blocks = _blocks(view)
    external = next((row.name for row in blocks if row.is_external), None)
    if external is not None:
        raise _bad(f"block '{external}' is stored outside of the payload")
    data = {block.name: view[block.offset : block.offset + block.length] for block in blocks}
    config_word, arch_word, command_stream = driver_actions(data["cmd_data"])
    scratch = data["scratch_size"]
    if len(scratch) != 4:
        raise _bad(f"block 'scratch_size' has {len(scratch)} bytes, expected 4")
    scratch_bytes = int.from_bytes(scratch, "little")
    return VelaBlocks(
        blocks=blocks,
        command_data=data["cmd_data"],
        weights=data["weight_data"],
        scratch_bytes=scratch_bytes,
        inputs=_slots("inputs", data["inputs"], scratch_bytes),
        outputs=_slots("outputs", data["outputs"], scratch_bytes),
        config_word=config_word,
        arch_word=arch_word,
        command_stream=command_stream,
    )


def inlined(payload: memoryview, fetch: Callable[[str, str], memoryview]) -> memoryview:
    """The payload with all blocks in it: `fetch` gives an external one, by its name and its key.

    Raises InputError for a malformed chain of blocks or key.
    """
    blocks = _blocks(payload)
    if not any(row.is_external for row in blocks):
        return payload
    out = bytearray()
    for row in blocks:
        data = payload[row.offset : row.offset + row.length]
        if row.is_external:
            key = bytes(data)
            if not _KEY.fullmatch(key):
                raise _bad(f"block '{row.name}' is external, but has no SHA-256 as its key")
            data = fetch(row.name, key.decode("ascii"))
        out += _BLOCK_HEADER.pack(row.name.encode("ascii"), len(data), 0, bytes(11))
        out += data
        out += bytes(-len(data) % _BLOCK_ALIGNMENT)
    return memoryview(bytes(out))


def _bad(reason: str, hint: str = _HINT) -> InputError:
    return InputError(f"Ethos-U delegate payload: {reason}", hint)


def _blocks(view: memoryview) -> tuple[Block, ...]:
    """All blocks, in order, each name once, from the first marker to the last and nothing after it."""
    blocks: list[Block] = []
    seen: set[str] = set()
    for block in _walk(view):
        if block.name in seen:
            raise _bad(f"block '{block.name}' appears twice")
        if (block.name == FIRST_BLOCK) != (not blocks):
            raise _bad(f"does not start with block '{FIRST_BLOCK}'")
        seen.add(block.name)
        blocks.append(block)
    missing = [name for name in (*CONTENT_BLOCKS, LAST_BLOCK) if name not in seen]
    if missing:
        raise _bad("has no block " + ", ".join(f"'{name}'" for name in missing))
    return tuple(blocks)


def _walk(view: memoryview) -> Iterator[Block]:
    offset = 0
    while offset < len(view):
        block = _block_at(view, offset)
        yield block
        offset = block.offset + block.length + -block.length % _BLOCK_ALIGNMENT
        if block.name == LAST_BLOCK:
            if offset < len(view):
                raise _bad(f"{len(view) - offset} bytes follow block '{LAST_BLOCK}'")
            return


def _block_at(view: memoryview, offset: int) -> Block:
    """The block whose header starts at `offset`, with its name, flags and extent checked."""
    if len(view) - offset < _BLOCK_HEADER.size:
        raise _bad(f"ends inside a block header at byte {offset} of {len(view)}")
    raw_name, length, external, reserved = _BLOCK_HEADER.unpack_from(view, offset)
    name_bytes, _, padding = raw_name.partition(b"\0")
    name = name_bytes.decode("ascii", "replace")
    if any(padding) or name not in (FIRST_BLOCK, *CONTENT_BLOCKS, LAST_BLOCK):
        raise _bad(f"unknown block {name!r} at byte {offset}")
    start = offset + _BLOCK_HEADER.size
    if external > (name in EXTERNAL_BLOCKS) or any(reserved):
        raise _bad(f"block '{name}' uses flags of a newer format")
    if length + -length % _BLOCK_ALIGNMENT > len(view) - start:
        raise _bad(f"block '{name}' needs {length} bytes, {len(view) - start} are left")
    if name in (FIRST_BLOCK, LAST_BLOCK) and length:
        raise _bad(f"marker block '{name}' holds {length} bytes, expected none")
    return Block(name, start, length, external == 1)


def driver_actions(data: memoryview) -> tuple[int, int, memoryview]:
    """The words CONFIG and ID, and the command stream: the one of each among the driver actions of `cmd_data`."""
    if bytes(data[:4]) != _FOURCC:
        raise _bad(
            f"block 'cmd_data' starts with {bytes(data[:4])!r}, expected {_FOURCC!r}",
            "compile without --cop-format: only Vela's COP1 driver actions are supported",
        )
    if len(data) % 4:
        raise _bad(f"block 'cmd_data' has {len(data)} bytes, not a multiple of 4")
    names = {_ACTION_CONFIG: "configuration action", _ACTION_COMMAND_STREAM: "command stream"}
    found: dict[int, tuple[int, int]] = {}
    for action, offset, size in _walk_actions(data):
        if action in found:
            raise _bad(f"block 'cmd_data' has two {names[action]}s")
        if action in names:
            found[action] = offset, size
    for action, name in names.items():
        if action not in found:
            raise _bad(f"block 'cmd_data' has no {name}")
    config_word, arch_word = struct.unpack_from("<II", data, found[_ACTION_CONFIG][0])
    offset, size = found[_ACTION_COMMAND_STREAM]
    # The NPU fetches the stream with 16-byte alignment (QBASE); block data is 16-byte aligned in the payload.
    if offset % _BLOCK_ALIGNMENT:
        raise _bad(f"the command stream starts at byte {offset} of 'cmd_data', not a multiple of 16")
    if size == 0:
        raise _bad("the command stream is empty")
    return config_word, arch_word, data[offset : offset + size]


def _walk_actions(data: memoryview) -> Iterator[tuple[int, int, int]]:
    """(action, offset of its words, their size in bytes) for each driver action after the fourcc."""
    offset = len(_FOURCC)
    while offset < len(data):
        (tag,) = struct.unpack_from("<I", data, offset)
        action, reserved, parameter = tag & 0xFF, tag >> 8 & 0xFF, tag >> 16
        if action == _ACTION_CONFIG:
            size = 8
        elif action == _ACTION_COMMAND_STREAM:
            size = (reserved << 16 | parameter) * 4
        elif action == 5:  # no operation
            size = 0
        else:
            raise _bad(f"block 'cmd_data' has the unknown driver action {tag:#010x} at byte {offset}")
        offset += 4
        if size > len(data) - offset:
            raise _bad(
                f"driver action {tag:#010x} at byte {offset - 4} of 'cmd_data' needs {size} bytes, "
                f"{len(data) - offset} are left"
            )
        yield action, offset, size
        offset += size


def _slots(name: str, data: memoryview, scratch_bytes: int) -> tuple[TensorSlot, ...]:
    """The tensors that block `name` ('inputs' or 'outputs') lists, each inside of its region."""
    if len(data) < 4:
        raise _bad(f"block '{name}' has {len(data)} bytes, too few for its count")
    (count,) = struct.unpack_from("<i", data)
    expected = 4 + count * _TENSOR_SLOT.size
    if count < 0 or len(data) != expected:
        raise _bad(f"block '{name}' counts {count} tensors in {len(data)} bytes")
    return tuple(
        _slot(f"{name}[{index}]", fields, scratch_bytes)
        for index, fields in enumerate(_TENSOR_SLOT.iter_unpack(data[4:]))
    )


def _slot(where: str, fields: tuple[int, ...], scratch_bytes: int) -> TensorSlot:
    shape = fields[:_SLOT_DIMENSIONS]
    slot = TensorSlot(shape, *fields[_SLOT_DIMENSIONS:])
    if min(shape) < 1:
        raise _bad(f"{where} has the shape {list(shape)}")
    if slot.element_bytes not in (1, 2, 4, 8):
        raise _bad(f"{where} has elements of {slot.element_bytes} bytes")
    if slot.nbytes > _MAX_TENSOR_BYTES:
        raise _bad(f"{where} with the shape {list(shape)} is larger than 4 GiB")
    if slot.region not in (REGION_SCRATCH, REGION_FAST_SCRATCH):
        raise _bad(
            f"{where} lies in region {slot.region}, expected {REGION_SCRATCH} or {REGION_FAST_SCRATCH}"
        )
    if slot.offset < 0:
        raise _bad(f"{where} has the negative offset {slot.offset}")
    if slot.region == REGION_SCRATCH and slot.offset + slot.nbytes > scratch_bytes:
        raise _bad(
            f"{where} ends at byte {slot.offset + slot.nbytes} of scratch memory that has {scratch_bytes}"
        )
    return slot
