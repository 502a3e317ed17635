"""A command stream as lists of operations, how far into its regions it writes, and what it may reach."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.npu.config import BRICK, NpuConfig
from ethosu_sdk.npu.errors import BusError, CommandError, UnsupportedCommand
from ethosu_sdk.npu.operation import Bytes, DmaOp, FeatureMap, Operation, Shape, Wait
from ethosu_sdk.npu.stream.descriptor import describe
from ethosu_sdk.npu.stream.registers import Command, RegisterFile, Values, commands
from ethosu_sdk.npu.vela_blocks import (
    REGION_FAST_SCRATCH,
    REGION_SCRATCH,
    REGION_WEIGHTS,
    TensorSlot,
    VelaBlocks,
)

# ---- npu.program
# A command stream as lists of operations. What does not depend on data is worked out once and kept.

# Operations are carried out one after the other, so waits matter to the estimate of cycles alone. PMU_MASK hides
# operations from counters that ask for it (PMCR.mask_en), which the PMU of this model refuses to be asked.
_WAITS = {"OP_DMA_WAIT": "k", "OP_KERNEL_WAIT": "n"}  # with the field that says for how many
_MOST_OPERATIONS = 1 << 16  # of a segment: each takes some kilobytes
_MOST_KEPT = 1 << 16  # operations of all segments that are kept
_Key = tuple[bytes, NpuConfig, int, Values]
_WITHOUT_EFFECT = frozenset({*_WAITS, "OP_PMU_MASK"})


@dataclass(frozen=True)
class Branch:
    """NPU_OP_BRANCH at byte `offset`: goes on at byte `target`, always or only when the last result was not 0."""

    offset: int
    target: int
    conditional: bool


@dataclass(frozen=True, eq=False)
class Segment:
    """The operations from one place of a stream to its NPU_OP_STOP or next branch, and the waits between them.

    `end` is the byte offset behind the last command, `irq_mask` the union of the masks of NPU_OP_IRQ and
    NPU_OP_STOP, `registers` what the registers hold at the end. `branch` None means the end of the stream's run.
    """

    operations: tuple[Operation, ...]
    waits: tuple[Wait, ...]
    end: int
    irq_mask: int
    branch: Branch | None
    registers: Values


class _Kept:
    """Segments by what they were made of; the oldest leave first. Shared by all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._segments: OrderedDict[_Key, Segment] = OrderedDict()
        self._weight = 0

    def get(self, key: _Key) -> Segment | None:
        """The segment, if it is kept."""
        with self._lock:
            if key in self._segments:
                self._segments.move_to_end(key)
            return self._segments.get(key)

    def add(self, key: _Key, made: Segment) -> Segment:
        """Keep `made`, or give what another thread has kept meanwhile."""
        with self._lock:
            if key in self._segments:
                return self._segments[key]
            self._segments[key] = made
            self._weight += _weight(key, made)
            while self._weight > _MOST_KEPT and len(self._segments) > 1:
                self._weight -= _weight(*self._segments.popitem(last=False))
            return made


def _weight(key: _Key, made: Segment) -> int:
    """What a segment counts for, in operations: a word of the stream has a thousandth of an operation's size."""
    return 1 + len(made.operations) + len(key[0]) // 4096


_KEPT = _Kept()


def segment(
    stream: bytes,
    config: NpuConfig,
    start: int = 0,
    values: Values = (),
) -> Segment:
    """The operations of `stream` from byte `start` on, where the registers hold `values`.

    The same segment is the same object for as long as it is kept.

    Raises CommandError for a stream that hardware would refuse, UnsupportedCommand for what this model does
    not execute.
    """
    key = (stream, config, start, values)
    return _KEPT.get(key) or _KEPT.add(key, _segment(*key))


def _segment(stream: bytes, config: NpuConfig, start: int, values: Values) -> Segment:
    return _whole(stream, _read(stream, RegisterFile(config, values), config, start))


def _whole(stream: bytes, read: _Commands) -> Segment:
    if read.last is None:
        raise CommandError("the stream has no NPU_OP_STOP and ends", len(stream))
    return Segment(
        operations=tuple(read.operations),
        waits=tuple(read.waits),
        end=read.last.offset + 4 * read.last.type.words,
        irq_mask=read.irq_mask,
        branch=_branch(read.last),
        registers=read.registers.values,
    )


@dataclass
class _Commands:
    """What a stream does up to its `last` command, which is None where it ends without one."""

    registers: RegisterFile
    operations: list[Operation] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    irq_mask: int = 0
    last: Command | None = None


def _read(stream: bytes, registers: RegisterFile, config: NpuConfig, start: int = 0) -> _Commands:
    """The commands of `stream` from byte `start` up to its NPU_OP_STOP or next branch."""
    found = _Commands(registers)
    for command in commands(stream, config.generation, start):
        name = command.type.name
        if not command.type.is_operation:
            registers.set(command)
        elif name in ("OP_IRQ", "OP_STOP"):
            found.irq_mask |= command.field("mask")
        elif name in _WAITS:
            found.waits.append(Wait(len(found.operations), name, command.field(_WAITS[name])))
        elif name not in _WITHOUT_EFFECT and name != "OP_BRANCH":
            _check_count(len(found.operations), command)
            found.operations.append(describe(registers, command))
        if name in ("OP_STOP", "OP_BRANCH"):
            found.last = command
            break
    return found


def described(stream: bytes, config: NpuConfig) -> Segment:
    """The operations of `stream` up to its NPU_OP_STOP or its first branch; none of them has to be executable."""
    return _whole(stream, _read(stream, RegisterFile(config, executable=False), config))


@functools.lru_cache(maxsize=2)  # whoever runs a stream asks for its extent and its hazards, too
def steps(stream: bytes, config: NpuConfig) -> tuple[tuple[Command, Operation | None], ...]:
    """The stream's operations in the order of their places, with what each does; None for waits and the like.

    Branches are not followed. Raises CommandError and UnsupportedCommand as :func:`segment` does.
    """
    return tuple(_steps(stream, config))


def _steps(stream: bytes, config: NpuConfig) -> Iterator[tuple[Command, Operation | None]]:
    registers = RegisterFile(config)
    count = 0
    for command in commands(stream, config.generation):
        name = command.type.name
        if not command.type.is_operation:
            registers.set(command)
            continue
        _check_count(count, command)
        count += 1
        acts = name not in _WITHOUT_EFFECT and name not in ("OP_IRQ", "OP_STOP", "OP_BRANCH")
        yield command, describe(registers, command) if acts else None
        if name == "OP_STOP":
            return


def _check_count(count: int, command: Command) -> None:
    """Refuse `command` behind so many operations that no model needs more."""
    if count >= _MOST_OPERATIONS:
        raise UnsupportedCommand(
            f"NPU_{command.type.name}", command.offset, 0, f"more than {_MOST_OPERATIONS:,} operations"
        )


def _branch(command: Command) -> Branch | None:
    if command.type.name != "OP_BRANCH":
        return None
    return Branch(command.offset, command.field("branch_target"), bool(command.field("branch_cond")))


# ---- npu.extent
# How far into its regions a command stream writes, because a payload does not state the size of its fast scratch
# memory.


def written_bytes(stream: bytes, config: NpuConfig) -> dict[int, int]:
    """Region → bytes from its base to behind the last one that `stream` writes. Branches count, taken or not.

    An indexed DMA that scatters writes where data says, which nobody knows beforehand: all rows that its largest
    index allows count. Raises CommandError and UnsupportedCommand as :func:`ethosu_sdk.npu.program.steps` does.
    """
    ends: dict[int, int] = {}
    for _, op in steps(stream, config):
        for region, end in _writes(op):
            ends[region] = max(ends.get(region, 0), end)
    return ends


def _writes(op: Operation | None) -> Iterator[tuple[int, int]]:
    if op is None:
        return
    if not isinstance(op, DmaOp):
        if op.ofm.chain is None:
            yield op.ofm.region, _end(op.ofm, op.stored_shape)
    elif op.target_region is not None:
        planes, rows = op.counts
        if op.index is not None and op.index.scatters:
            rows = op.index.maximum + 1
        steps_taken = zip((planes - 1, rows - 1), op.target_strides, strict=True)
        yield op.target_region, op.target + sum(max(0, n * stride) for n, stride in steps_taken) + op.length


def _end(feature_map: FeatureMap, shape: Shape) -> int:
    """The address behind the last byte of a feature map, in all of its tiles."""
    height, width, depth = shape
    size = feature_map.dtype.itemsize
    left = min(feature_map.width0, width)
    ends = []
    for column, columns in enumerate((left, width - left)):
        upper = min((feature_map.height1 if column else feature_map.height0), height)
        for row, rows in enumerate((upper, height - upper)):
            if rows > 0 and columns > 0:
                base = feature_map.bases[2 * row + column]
                ends.append(base + _reach(feature_map, rows, columns, depth) + size)
    return max(ends)


def _reach(feature_map: FeatureMap, rows: int, columns: int, depth: int) -> int:
    """From the first element of a tile to the one at the highest address, in bytes."""
    size = feature_map.dtype.itemsize
    if not feature_map.bricks:
        channels, along = (depth - 1) * size, feature_map.stride_x
    else:
        whole, rest = divmod(depth - 1, BRICK)
        last = whole * feature_map.stride_c + rest * size
        full = (whole - 1) * feature_map.stride_c + (BRICK - 1) * size if whole else 0
        channels, along = max(last, full), BRICK * size
    return max(0, (rows - 1) * feature_map.stride_y) + max(0, (columns - 1) * along) + channels


# ---- npu.reach
# What a delegate's command stream may reach: one rule, wherever it runs.
#
# Hardware has no bounds for regions: it sees the memory of its system from each region's base on. Where the model
# knows
# the delegate, a region ends where the payload says so, and what nobody wrote before the job is zero.

_MOST_FAST_SCRATCH_BYTES = 1 << 26  # more than any SRAM has


@dataclass(frozen=True)
class Reach:
    """Region → its bytes, and the `inputs` that stand in the scratch memory before the job.

    Vela's memory modes use no other regions. `begins` is False for a piece of a stream, which goes on with what the
    piece before it left.
    """

    sizes: Mapping[int, int]
    inputs: tuple[TensorSlot, ...]
    begins: bool = True

    def regions(self, window: Callable[[int], Bytes]) -> dict[int, Bytes]:
        """The regions of a job, of which `window` gives the memory from the base on: weights are read-only."""
        found = {number: self._region(number, window) for number in self.sizes}
        if self.begins:
            _clear(found, self.inputs)
        return found

    def _region(self, number: int, window: Callable[[int], Bytes]) -> Bytes:
        size = self.sizes[number]
        if not size:
            return np.zeros(0, np.uint8)
        memory = window(number)
        if memory.size < size:
            raise BusError(
                f"region {number} needs {size:#x} bytes, but its memory ends after {memory.size:#x}", number
            )
        region = memory[:size]
        if number == REGION_WEIGHTS:
            region.flags.writeable = False  # of this view alone
        return region


def _clear(regions: Mapping[int, Bytes], inputs: tuple[TensorSlot, ...]) -> None:
    """Zeros wherever the stream may write, but for the inputs."""
    regions[REGION_FAST_SCRATCH][:] = 0
    scratch, end = regions[REGION_SCRATCH], 0
    for slot in sorted(inputs, key=lambda slot: slot.offset):
        scratch[end : max(end, slot.offset)] = 0
        end = max(end, slot.offset + slot.nbytes)
    scratch[end:] = 0


def reach_of(blocks: VelaBlocks) -> Reach:
    """What the delegate may reach. Fast scratch memory is as large as the commands write, for no payload says it:
    none for a stream that cannot be decoded, which whoever runs it refuses."""
    try:
        config = NpuConfig.from_word(blocks.config_word)
        written = written_bytes(bytes(blocks.command_stream), config)
    except SdkError:
        written = {}
    fast = min(written.get(REGION_FAST_SCRATCH, 0), _MOST_FAST_SCRATCH_BYTES)
    sizes = {
        REGION_WEIGHTS: len(blocks.weights),
        REGION_SCRATCH: blocks.scratch_bytes,
        REGION_FAST_SCRATCH: fast,
    }
    return Reach(sizes, blocks.inputs)
