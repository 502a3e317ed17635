"""A command stream cut between its operations, into pieces that run one after the other as jobs of their own.

Each piece sets the registers as the operations before it left them. What hands over to the next operation inside of
the NPU stays together: chaining buffers, accumulators, and a look-up table with its first user. A later user's
piece loads the table again, since nothing says that the NPU's own memory outlives a job. Everything else is handed
over through memory, and NPU_OP_STOP waits for it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ethosu_sdk.npu import errors
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import CommandError, UnsupportedCommand
from ethosu_sdk.npu.operation import BlockOp, DmaOp, Operation
from ethosu_sdk.npu.stream.descriptor import describe
from ethosu_sdk.npu.stream.registers import RegisterFile, commands
from ethosu_sdk.npu.tables import CommandType, command_types

_ACTS = ("OP_DMA_START", "OP_CONV", "OP_DEPTHWISE", "OP_POOL", "OP_ELEMENTWISE", "OP_RESIZE")
_CONSTANTS = 0  # the region of weights and tables, which no operation writes


@dataclass(frozen=True)
class Piece:
    """Operations that run as one job: their byte `offsets` in the whole stream, and the `stream` of the job."""

    offsets: tuple[int, ...]
    stream: bytes


@dataclass(frozen=True)
class _Step:
    """An operation, the commands that set the registers as they are in front of it, and its place in the stream.

    From byte `start`, behind the operation before, to byte `end`, behind its own command.
    """

    operation: Operation
    settings: bytes
    start: int
    end: int


def cut(stream: bytes, config: NpuConfig) -> tuple[Piece, ...]:
    """`stream` in as many pieces as can run for themselves, in their order.

    Raises UnsupportedCommand for a stream that branches, CommandError for one that hardware would refuse.
    """
    steps, stop = _read(stream, config)
    if not steps:
        return (Piece((), stream),)
    together = _together(steps)
    tables = list(_tables(steps))
    # NPU_OP_DMA_WAIT until no transfer is at work.
    wait_type = next(row for row in command_types(config.generation).values() if row.name == "OP_DMA_WAIT")
    wait = _words(wait_type, wait_type.opcode)
    firsts = [index for index in range(len(steps)) if index - 1 not in together]
    pieces = []
    for first, behind in zip(firsts, [*firsts[1:], len(steps)], strict=True):
        part = steps[first:behind]
        looked_up = {loader for row in tables[first:behind] for loader in row if loader < first}
        loads = [steps[loader] for loader in sorted(looked_up)]
        again = b"".join(load.settings + stream[load.start : load.end] + wait for load in loads)
        own = part[0].settings + stream[part[0].start : part[-1].end]
        pieces.append(Piece(tuple(step.operation.offset for step in part), again + own + stop))
    return tuple(pieces)


def _read(stream: bytes, config: NpuConfig) -> tuple[list[_Step], bytes]:
    """The operations, and the NPU_OP_STOP behind them."""
    registers = RegisterFile(config, executable=False)
    steps: list[_Step] = []
    start, settings = 0, b""
    for command in commands(stream, config.generation):
        name = command.type.name
        end = command.offset + 4 * command.type.words
        if name == "OP_BRANCH":
            raise UnsupportedCommand("NPU_OP_BRANCH", command.offset, 1, "a stream that branches is not cut")
        if name == "OP_STOP":
            return steps, stream[command.offset : end]
        if not command.type.is_operation:
            registers.set(command)
        elif name in _ACTS:
            steps.append(_Step(describe(registers, command), settings, start, end))
            start = end
            settings = b"".join(_words(setting.type, setting.bits) for _, setting in registers.values)
    raise CommandError("the stream has no NPU_OP_STOP and ends", len(stream))


def _words(kind: CommandType, bits: int) -> bytes:
    return struct.pack("<I" if kind.words == 1 else "<Q", bits)


def _together(steps: Sequence[_Step]) -> set[int]:
    """The operations, by number, behind which no piece may end."""
    found: set[int] = set()
    writers: dict[int, int] = {}  # of chaining buffers
    for index, step in enumerate(steps):
        op = step.operation
        if isinstance(op, DmaOp):
            if op.target_region is None:
                found |= _until_user(steps, index, op)
            continue
        for source in (op.ifm, op.ifm2, *(operand.feature_map for operand in op.operands)):
            if source is not None and source.chain is not None:
                found |= set(range(writers.get(source.chain, index), index))
        if op.ofm.chain is not None:
            writers[op.ofm.chain] = index
        if op.is_partial:
            found.add(index)
    return found - {len(steps) - 1}


def _until_user(steps: Sequence[_Step], loader: int, table: DmaOp) -> set[int]:
    """Where no cut may be because of the table that operation `loader` loads.

    Up to its first user; up to the last one where the table could not be loaded again: from memory that may change.
    """
    users = []
    for index in range(loader + 1, len(steps)):
        errors.check()
        op = steps[index].operation
        if isinstance(op, BlockOp) and _uses(op, table):
            users.append(index)
        elif isinstance(op, DmaOp) and _replaces(op, table):
            break
    if not users:
        return set()
    return set(range(loader, users[0] if table.source_region == _CONSTANTS else users[-1]))


def _tables(steps: Sequence[_Step]) -> Iterator[tuple[int, ...]]:
    """For each operation the ones before it that loaded what it looks up, by number."""
    loaded: dict[int, DmaOp] = {}
    for index, step in enumerate(steps):
        errors.check()
        op = step.operation
        if isinstance(op, BlockOp):
            yield tuple(number for number, table in loaded.items() if _uses(op, table))
            continue
        if op.target_region is None:
            loaded = {number: old for number, old in loaded.items() if not _replaces(op, old)}
            loaded[index] = op
        yield ()


def _uses(op: BlockOp, table: DmaOp) -> bool:
    lut = op.output.lut
    if lut is None:
        return False
    return lut.address < table.target + _bytes(table) and table.target < lut.end


def _replaces(op: DmaOp, table: DmaOp) -> bool:
    if op.target_region is not None:
        return False
    return op.target <= table.target and op.target + _bytes(op) >= table.target + _bytes(table)


def _bytes(table: DmaOp) -> int:
    return table.counts[0] * table.counts[1] * table.length
