"""A command stream as a list of operations. What does not depend on data is worked out once and kept."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ethosu_sdk.npu import cycles
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
_WAITS = frozenset({"OP_DMA_WAIT", "OP_KERNEL_WAIT"})


@dataclass(frozen=True)
class OperationTrace:
    """One operation as it is carried out: place in the stream, name, estimated cycles, multiply-accumulates."""

    offset: int
    name: str
    total_cycles: int
    mac_cycles: int
    macs: int


@dataclass(frozen=True)
class OperationList:
    """The operations of one command stream and the trace of each, up to its NPU_OP_STOP at byte `stop_offset`.

    `irq_mask` is the union of the masks of NPU_OP_IRQ and NPU_OP_STOP.
    """

    operations: tuple[Operation, ...]
    traces: tuple[OperationTrace, ...]
    stop_offset: int
    irq_mask: int


@functools.lru_cache(maxsize=32)
def operations(stream: bytes, config: NpuConfig) -> OperationList:
    """The operations of `stream`.

    Raises CommandError for a stream that hardware would refuse, UnsupportedCommand for what this model does
    not execute.
    """
    registers = Registers()
    found: list[Operation] = []
    irq_mask = 0
    for command in commands(stream, config.generation):
        name = command.type.name
        if not command.type.is_operation:
            registers.set(command)
        elif name in ("OP_IRQ", "OP_STOP"):
            irq_mask |= command.field("mask")
            if name == "OP_STOP":
                traces = tuple(_trace(op, config) for op in found)
                return OperationList(tuple(found), traces, command.offset, irq_mask)
        elif name not in _WAITS:
            found.append(_operation(registers, command))
    raise CommandError("the stream has no NPU_OP_STOP and ends", len(stream))


def _operation(registers: Registers, command: Command) -> Operation:
    name = command.type.name
    if name in _BLOCK_KINDS:
        return block_operation(registers, command, _BLOCK_KINDS[name])
    if name == "OP_DMA_START":
        return dma_operation(registers, command)
    raise UnsupportedCommand(f"NPU_{name}", command.offset, command.bits >> 16)


def _trace(op: Operation, config: NpuConfig) -> OperationTrace:
    estimate = cycles.estimate(op, config)
    return OperationTrace(op.offset, op.name, estimate.total_cycles, estimate.mac_cycles, estimate.macs)
