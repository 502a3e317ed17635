"""What the processor did in the first inference, part by part, in the order of time.

The firmware's marks divide a run into segments (:data:`ethosu_sdk.protocol.MARKS`). Work of an interrupt is a span of
its own between two spans of the part that it interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ethosu_sdk.cpu_cycles.counts import BlockCounts
from ethosu_sdk.cpu_cycles.waits import LINE_BYTES

START_UP, AFTER = "start_up", "after"  # before the first mark, after the last
INTERRUPTS = ("interrupt", "clock")
WAIT, CLOCK, REPORT = "wait", "clock", "report"
_RENAMED = {"": START_UP, "end": AFTER, "operator": "runtime"}


@dataclass(frozen=True)
class Span:
    """Instructions of one part that ran one after another.

    `operator` counts the instructions of the program that the inference executed, from 0; it is None outside of them:
    before the inference, after the last, and while the firmware reports. `code_bytes` is the size of the cache lines
    of code of which no earlier span of an operator executed anything; waits and the clock's interrupts have none.
    """

    operator: int | None
    part: str
    instructions: int
    cycles: float
    code_bytes: int = 0


def spans(counts: BlockCounts, prices: Sequence[float]) -> list[Span]:
    """The spans of a run whose blocks take `prices` cycles each, from reset to the end.

    Blocks that wait cost nothing. Operators are complete only where no mark was lost.
    """
    works = counts.works()
    each_instructions = np.where(works, counts.instructions(), 0)
    each_cycles = np.where(works, np.asarray(prices, float), 0.0)
    lines = [range(block.start // LINE_BYTES, -(-block.end // LINE_BYTES)) for block in counts.blocks]
    fetched: set[int] = set()
    found = []
    for (operator, part), segment in zip(
        _places(row.name for row in counts.segments), counts.segments, strict=True
    ):
        instructions = int((each_instructions[segment.blocks] * segment.executions).sum())
        cycles = float((each_cycles[segment.blocks] * segment.executions).sum())
        before = len(fetched)
        if operator is not None and part not in (CLOCK, WAIT):  # which depend on the simulator's time
            fetched.update(line for block in segment.blocks for line in lines[block])
        code_bytes = LINE_BYTES * (len(fetched) - before)
        found.append(Span(operator, part, instructions, cycles, code_bytes))
    return found


def _places(names: Iterator[str]) -> Iterator[tuple[int | None, str]]:
    """Operator and part of each segment."""
    operator, part = -1, START_UP
    interrupted: list[str] = []
    for name in names:
        if name == "operator":
            operator += 1
        if name in INTERRUPTS:
            interrupted.append(part)
        is_back = name == "back" and interrupted
        part = interrupted.pop() if is_back else _RENAMED.get(name, name)
        outside = part in (START_UP, AFTER, REPORT) or operator < 0
        yield None if outside else operator, part
