"""A command stream as lists of operations, how far into its regions it writes, and what it may reach.

What does not depend on data is worked out once and kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.npu.accesses import accesses, result_writes
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import BusError, CommandError, UnsupportedCommand
from ethosu_sdk.npu.operation import Bytes, Operation, Wait
from ethosu_sdk.npu.stream.descriptor import describe
from ethosu_sdk.npu.stream.registers import Command, RegisterFile, Values, commands
from ethosu_sdk.npu.vela_blocks import (
    REGION_FAST_SCRATCH,
    REGION_SCRATCH,
    REGION_WEIGHTS,
    TensorSlot,
    VelaBlocks,
)

# Operations are carried out one after the other, so waits matter to the estimate of cycles alone. PMU_MASK hides
# operations from counters that ask for it (PMCR.mask_en), which the PMU of this model refuses to be asked.
_WAITS = {"OP_DMA_WAIT": "k", "OP_KERNEL_WAIT": "n"}  # with the field that says for how many
_MOST_OPERATIONS = 1 << 16  # of a segment: each takes some kilobytes
_MOST_KEPT = 1 << 16  # operations of all segments that are kept
_MOST_FAST_SCRATCH_BYTES = 1 << 26  # more than any SRAM has
_Key = tuple[bytes, NpuConfig, int, Values]
_WITHOUT_EFFECT = frozenset({*_WAITS, "OP_PMU_MASK"})

Step = tuple[Command, Operation | None]


@dataclass(frozen=True)
class Branch:
    """NPU_OP_BRANCH at byte `offset`: goes on at byte `target`, always or only when the last result was not 0."""

    offset: int
    target: int
    conditional: bool


@dataclass(frozen=True, eq=False)
class Segment:
    """The operations from one place of a stream to its NPU_OP_STOP or next branch, and the waits between them.

    `steps` are all its commands that start something, each with its operation; waits and the like have none. `end` is
    the byte offset behind the last command, `irq_mask` the union of the masks of NPU_OP_IRQ and NPU_OP_STOP,
    `registers` what the registers hold at the end. `branch` None means the end of the stream's run.
    """

    steps: tuple[Step, ...]
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
    """What a segment counts for, in steps: a word of the stream has a thousandth of an operation's size."""
    return 1 + len(made.steps) + len(key[0]) // 4096


_KEPT = _Kept()


def segment(stream: bytes, config: NpuConfig, start: int = 0, values: Values = ()) -> Segment:
    """The operations of `stream` from byte `start` on, where the registers hold `values`.

    The same segment is the same object for as long as it is kept.

    Raises CommandError for a stream that hardware would refuse, UnsupportedCommand for what this model does
    not execute.
    """
    key = (stream, config, start, values)
    return _KEPT.get(key) or _KEPT.add(key, _read(stream, RegisterFile(config, values), config, start))


def described(stream: bytes, config: NpuConfig) -> Segment:
    """The operations of `stream` up to its NPU_OP_STOP or its first branch; none of them has to be executable."""
    return _read(stream, RegisterFile(config, executable=False), config, 0)


def _read(stream: bytes, registers: RegisterFile, config: NpuConfig, start: int) -> Segment:
    found: list[Step] = []
    operations: list[Operation] = []
    waits: list[Wait] = []
    irq_mask = 0
    for command in commands(stream, config.generation, start):
        name, operation = command.type.name, None
        if not command.type.is_operation:
            registers.set(command)
            continue
        _check_count(len(found), command)
        if name in ("OP_IRQ", "OP_STOP"):
            irq_mask |= command.field("mask")
        elif name in _WAITS:
            waits.append(Wait(len(operations), name, command.field(_WAITS[name])))
        elif name not in _WITHOUT_EFFECT and name != "OP_BRANCH":
            operation = describe(registers, command)
            operations.append(operation)
        found.append((command, operation))
        if name in ("OP_STOP", "OP_BRANCH"):
            branch = None
            if name == "OP_BRANCH":
                target = command.field("branch_target")
                branch = Branch(command.offset, target, bool(command.field("branch_cond")))
            end = command.offset + 4 * command.type.words
            return Segment(
                tuple(found), tuple(operations), tuple(waits), end, irq_mask, branch, registers.values
            )
    raise CommandError("the stream has no NPU_OP_STOP and ends", len(stream))


def steps(stream: bytes, config: NpuConfig) -> tuple[Step, ...]:
    """The stream's operations in the order of their places, with what each does; None for waits and the like.

    Branches are not followed. Raises CommandError and UnsupportedCommand as :func:`segment` does.
    """
    part = segment(stream, config)
    found = [*part.steps]
    while part.branch is not None and part.end < len(stream):
        part = segment(stream, config, part.end, part.registers)
        _check_count(len(found) + len(part.steps) - 1, part.steps[-1][0])
        found += part.steps
    return tuple(found)


def _check_count(count: int, command: Command) -> None:
    """Refuse `command` behind so many operations that no model needs more."""
    if count >= _MOST_OPERATIONS:
        raise UnsupportedCommand(
            f"NPU_{command.type.name}", command.offset, 0, f"more than {_MOST_OPERATIONS:,} operations"
        )


def written_bytes(stream: bytes, config: NpuConfig) -> dict[int, int]:
    """Region → bytes from its base to behind the last one that `stream` writes. Branches count, taken or not.

    An indexed DMA that scatters writes where data says, which nobody knows beforehand: all rows that its largest
    index allows count. Raises CommandError and UnsupportedCommand as :func:`ethosu_sdk.npu.program.steps` does.
    """
    ends: dict[int, int] = {}
    for _, op in steps(stream, config):
        for access in result_writes(op) if op is not None else ():
            if access.region is not None:
                ends[access.region] = max(ends.get(access.region, 0), access.runs.end)
    return ends


def reached_bytes(stream: bytes, config: NpuConfig) -> dict[int, int]:
    """Region → bytes from its base to behind the last one that `stream` reads or writes, up to its first branch.

    None of its operations has to be executable. Raises CommandError as :func:`ethosu_sdk.npu.program.segment` does.
    """
    ends: dict[int, int] = {}
    for op in described(stream, config).operations:
        for access in accesses(op, config):
            if access.region is not None:
                ends[access.region] = max(ends.get(access.region, 0), access.runs.end)
    return ends


@dataclass(frozen=True)
class Reach:
    """What a delegate's stream may reach: region → bytes, and the `inputs` in the scratch memory before the job.

    Hardware has no bounds for regions: it sees the memory of its system from each region's base on. Where the model
    knows the delegate, a region ends where the payload says so, and what nobody wrote before the job is zero. Vela's
    memory modes use no other regions. `begins` is False for a piece of a stream, which goes on with what the piece
    before it left.
    """

    sizes: Mapping[int, int]
    inputs: tuple[TensorSlot, ...]
    begins: bool = True

    def regions(self, window: Callable[[int], Bytes]) -> dict[int, Bytes]:
        """The regions of a job, of which `window` gives the memory from the base on: weights are read-only."""
        found = {}
        for number, size in self.sizes.items():
            memory = window(number) if size else np.zeros(0, np.uint8)
            if memory.size < size:
                raise BusError(
                    f"region {number} needs {size:#x} bytes, but its memory ends after {memory.size:#x}",
                    number,
                )
            found[number] = memory[:size]
        found[REGION_WEIGHTS].flags.writeable = False  # of this view alone
        if self.begins:  # zeros wherever the stream may write, but for the inputs
            found[REGION_FAST_SCRATCH][:] = 0
            scratch, end = found[REGION_SCRATCH], 0
            for slot in sorted(self.inputs, key=lambda slot: slot.offset):
                scratch[end : max(end, slot.offset)] = 0
                end = max(end, slot.offset + slot.nbytes)
            scratch[end:] = 0
        return found


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
