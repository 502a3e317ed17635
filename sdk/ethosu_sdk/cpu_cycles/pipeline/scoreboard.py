"""In-order issue: when each instruction of a sequence starts, by its operands, its units and the issue width."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Sequence

from ethosu_sdk.cpu_cycles.pipeline.cores import Core
from ethosu_sdk.cpu_cycles.pipeline.figures import Instruction
from ethosu_sdk.cpu_cycles.pipeline.operands import Operands, operands_of

_PAIRED = {
    "M85UnitALU",
    "M85UnitLoad",
    "M85UnitStore",
    "M85UnitVFPA",
    "M85UnitVFPB",
    "M85UnitVFPC",
    "M85UnitVPort",
}
_SETTLED = (2, 6)  # turns of a loop between which it is measured
_operands = functools.lru_cache(maxsize=1 << 16)(operands_of)


class _Pipeline:
    """The state while a sequence issues. Cycles count from 0."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._cycle = 0  # of the last issue
        self._issued = 0  # in that cycle
        self._is_closed = False  # nothing else may issue in that cycle
        self._ready: defaultdict[int, int] = defaultdict(int)
        self._is_vector: set[int] = set()  # registers whose newest value a vector instruction makes
        self._free: dict[str, list[int]] = {}

    @property
    def next_cycle(self) -> int:
        """The first cycle after the last issue."""
        return self._cycle + 1 if self._issued else self._cycle

    def issue(self, instruction: Instruction) -> None:
        operands = _operands(instruction.text)
        cycle = max(
            self._earliest(instruction), self._wanted(instruction, operands), self._units_free(instruction)
        )
        self._issued = self._issued + 1 if cycle == self._cycle else 1
        self._cycle, self._is_closed = cycle, instruction.is_single
        self._occupy(instruction, cycle)
        self._write(instruction, operands, cycle)
        if instruction.occupies > 1:
            self._cycle, self._issued, self._is_closed = cycle + instruction.occupies - 1, 1, True

    def _earliest(self, instruction: Instruction) -> int:
        fits = self._issued < self._core.issue_width and not self._is_closed
        if not self._issued or (fits and not instruction.is_single):
            return self._cycle
        return self._cycle + 1

    def _wanted(self, instruction: Instruction, operands: Operands) -> int:
        core = self._core
        advance = core.stored_advance if instruction.is_vector else 0
        cycles = [self._ready[number] for number in operands.values]
        cycles += [self._ready[number] - core.accumulator_advance for number in operands.accumulators]
        cycles += [
            self._ready[number] + core.shift_delay for number in operands.shifted if self._ready[number]
        ]
        for number in operands.addresses:
            delay = core.gather_delay if number >= 32 else core.address_delay
            cycles.append(self._ready[number] + (delay if self._ready[number] else 0))
        for number in operands.stored:
            cycles.append(self._ready[number] - (advance if number in self._is_vector else 0))
        return max(cycles, default=0)

    def _units_free(self, instruction: Instruction) -> int:
        return max(
            (sorted(self._instances(name))[count - 1] for name, count, _ in instruction.units), default=0
        )

    def _instances(self, name: str) -> list[int]:
        return self._free.setdefault(name, [0, 0] if name in _PAIRED else [0])

    def _occupy(self, instruction: Instruction, cycle: int) -> None:
        for name, count, cycles in instruction.units:
            free = self._instances(name)
            free.sort()
            free[:count] = [cycle + cycles] * count

    def _write(self, instruction: Instruction, operands: Operands, cycle: int) -> None:
        for number in operands.bases:
            self._ready[number] = cycle + self._core.base_latency
        for number in operands.written:
            self._ready[number] = cycle + instruction.latency
            (self._is_vector.add if instruction.is_vector else self._is_vector.discard)(number)


def straight_cycles(instructions: Sequence[Instruction], core: Core) -> float:
    """Cycles from the first issue to the first that a following instruction can have, with all operands there."""
    pipeline = _Pipeline(core)
    for instruction in instructions:
        if instruction.kind != "loop end":
            pipeline.issue(instruction)
    return float(pipeline.next_cycle)


def repeated_cycles(instructions: Sequence[Instruction], core: Core) -> float:
    """Cycles of one turn when the sequence repeats itself, after the first turns."""
    pipeline, ends = _Pipeline(core), []
    for _ in range(_SETTLED[1] + 1):
        for instruction in instructions:
            if instruction.kind != "loop end":
                pipeline.issue(instruction)
        ends.append(pipeline.next_cycle)
    return (ends[_SETTLED[1]] - ends[_SETTLED[0]]) / (_SETTLED[1] - _SETTLED[0])
