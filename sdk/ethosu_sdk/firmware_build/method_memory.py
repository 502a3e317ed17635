"""The memory of a program's methods: which planned buffers they share, and where each lies in the pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ethosu_sdk import pte
from ethosu_sdk.firmware_build.layout import aligned
from ethosu_sdk.firmware_build.method_pool import method_pool_bytes

# ExecuTorch 1.5.1 plans state that methods share into this buffer (exir/passes/memory_planning_pass.py,
# run_multimethod), and all else into the one before.
_SHARED_ID = 2
_WORK_ID = 1


@dataclass(frozen=True)
class Buffer:
    """A planned buffer: its offset in the pool and its size in bytes."""

    offset: int
    size_bytes: int


@dataclass(frozen=True)
class MethodMemory:
    """What a method has: the buffers by memory id from 1, room for the interpreter's tables, delegates."""

    name: str
    buffers: tuple[Buffer, ...]
    method_pool_bytes: int
    delegates: int


@dataclass(frozen=True)
class ProgramMemory:
    """The methods that are loaded, and the sizes of the pools' parts that they are given, in their order."""

    methods: tuple[MethodMemory, ...]
    planned_bytes: tuple[int, ...]

    @property
    def method_pool_bytes(self) -> int:
        """Room for the interpreter's tables of all methods."""
        return sum(row.method_pool_bytes for row in self.methods)


def shares_state(plans: Sequence[pte.ExecutionPlan]) -> bool:
    """Whether the methods were planned over one memory for their state: each has a second buffer, of one size, and
    nothing in the first that lasts."""
    sizes = [row.non_const_buffer_sizes for row in plans]
    return (
        len(plans) > 1
        and all(len(row) == _SHARED_ID + 1 for row in sizes)
        and len({row[_SHARED_ID] for row in sizes}) == 1
        and sizes[0][_SHARED_ID] > 0
        and not any(
            isinstance(value, pte.Tensor)
            and value.allocation is not None
            and value.allocation.memory_id == _WORK_ID
            and value.data is not None
            for row in plans
            for value in row.values
        )
    )


def of(plans: Sequence[pte.ExecutionPlan]) -> ProgramMemory:
    """The memory of the methods `plans`, which are all loaded. Where they share their state, they also share the
    memory that they compute in: one runs after the other."""
    shared = shares_state(plans)
    parts: list[int] = []
    if shared:
        parts = [max(row.non_const_buffer_sizes[number] for row in plans) for number in (_WORK_ID, _SHARED_ID)]
    methods = []
    for plan in plans:
        sizes = plan.non_const_buffer_sizes[1:]  # ExecuTorch reserves the first
        first = 0 if shared else len(parts)
        if not shared:
            parts.extend(sizes)
        offsets = _offsets(parts)[first:]
        buffers = tuple(Buffer(offset, size) for offset, size in zip(offsets, sizes, strict=True))
        methods.append(MethodMemory(plan.name, buffers, method_pool_bytes(plan), len(plan.delegates)))
    return ProgramMemory(tuple(methods), tuple(parts))


def _offsets(sizes: Sequence[int]) -> list[int]:
    found, end = [], 0
    for size in sizes:
        found.append(end)
        end += aligned(size)
    return found
