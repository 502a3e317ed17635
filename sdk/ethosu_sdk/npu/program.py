"""A command stream as a list of operations. What does not depend on data is worked out once and kept."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.decode import Command, commands
from ethosu_sdk.npu.errors import CommandError, UnsupportedCommand
from ethosu_sdk.npu.operation import Kind, Operation
from ethosu_sdk.npu.state import Registers, block_operation, dma_operation

_BLOCK_KINDS = {
    "OP_CONV": Kind.CONV,
    "OP_DEPTHWISE": Kind.DEPTHWISE,
    "OP_POOL": Kind.POOL,
    "OP_ELEMENTWISE": Kind.ELEMENTWISE,
}
# Operations are carried out one after the other, so there is nothing to wait for.
_NOTHING_TO_DO = frozenset({"OP_DMA_WAIT", "OP_KERNEL_WAIT", "OP_PMU_MASK"})


@dataclass(frozen=True)
class OperationList:
    """The operations of one command stream, up to its NPU_OP_STOP at byte `stop_offset`."""

    operations: tuple[Operation, ...]
    stop_offset: int


@functools.lru_cache(maxsize=32)
def operations(stream: bytes, config: NpuConfig) -> OperationList:
    """The operations of `stream`.

    Raises CommandError for a stream that hardware would refuse, UnsupportedCommand for what this model does
    not execute.
    """
    registers = Registers()
    found: list[Operation] = []
    for command in commands(stream, config.generation):
        if not command.type.is_operation:
            registers.set(command)
        elif command.type.name == "OP_STOP":
            return OperationList(tuple(found), command.offset)
        elif command.type.name not in _NOTHING_TO_DO:
            found.append(_operation(registers, command))
    raise CommandError("the stream has no NPU_OP_STOP and ends", len(stream))


def _operation(registers: Registers, command: Command) -> Operation:
    name = command.type.name
    if name in _BLOCK_KINDS:
        return block_operation(registers, command, _BLOCK_KINDS[name])
    if name == "OP_DMA_START":
        return dma_operation(registers, command)
    raise UnsupportedCommand(f"NPU_{name}", command.offset, command.bits >> 16)
