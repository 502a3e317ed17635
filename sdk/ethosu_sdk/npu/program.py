"""A command stream as lists of operations. What does not depend on data is worked out once and kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import CommandError, UnsupportedCommand
from ethosu_sdk.npu.operation import Operation, Wait
from ethosu_sdk.npu.stream.decode import Command, commands
from ethosu_sdk.npu.stream.descriptor import describe
from ethosu_sdk.npu.stream.register_file import RegisterFile, Values

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


def steps(stream: bytes, config: NpuConfig) -> Iterator[tuple[Command, Operation | None]]:
    """The stream's operations in the order of their places, with what each does; None for waits and the like.

    Branches are not followed. Raises CommandError and UnsupportedCommand as :func:`segment` does.
    """
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
