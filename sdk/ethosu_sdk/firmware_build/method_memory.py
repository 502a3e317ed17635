"""The memory of a program's methods: which planned buffers they share, and where each lies in the pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ethosu_sdk import pte
from ethosu_sdk.firmware_build.layout import aligned
from ethosu_sdk.firmware_build.method_pool import method_pool_bytes
from ethosu_sdk.pte.shared_state import SHARED_ID, WORK_ID


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


def of(plans: Sequence[pte.ExecutionPlan]) -> ProgramMemory:
    """The memory of the methods `plans`, which are all loaded. Where they share their state, they also share the
    memory that they compute in: one runs after the other."""
    shared = pte.shares_state(plans)
    parts: list[int] = []
    if shared:
        parts = [max(row.non_const_buffer_sizes[number] for row in plans) for number in (WORK_ID, SHARED_ID)]
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
