"""Operators on the CPU: why they are there, what they cost with their borders, and what replaces them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from ethosu_sdk.readers.advise.cpu_calls import Placed
from ethosu_sdk.records.advice import CpuCall
from ethosu_sdk.records.parts.time_line import TimeLine
from ethosu_sdk.tables import times


def timed(placed: Sequence[Placed], time: TimeLine | None) -> dict[str, Any]:
    """The same with the time that the time line has for the kernels of each row, waits for memory included; what
    takes longest first. Cycles are without those waits."""
    kernels: defaultdict[int, float] = defaultdict(float)
    for part in time.parts if time is not None else ():
        if part.what == "kernel":
            kernels[part.operator] += part.duration_s
    spent = [sum(kernels.get(number, 0.0) for number in set(row.instructions)) for row in placed]
    if time is None or not all(spent):
        return of([row.call for row in placed], time)
    found = of([row.call for row in placed], None)
    for row, duration_s in zip(found["rows"], spent, strict=True):
        row["time"] = times.milliseconds(duration_s)
    order = sorted(range(len(spent)), key=lambda number: -spent[number])
    return {**found, "rows": [found["rows"][number] for number in order], "has_waits": time.waits is not None}


def of(rows: Sequence[CpuCall], time: TimeLine | None) -> dict[str, Any]:
    """A row for each operator and place, what costs most first; cycles with their time where the clock is known, else
    counted instructions; `what` is empty where neither is known."""
    has_cycles = any(row.cycles is not None for row in rows)
    is_counted = any(row.instructions is not None for row in rows)
    return {
        "what": "cycles, modelled" if has_cycles else "instructions, counted" if is_counted else "",
        "has_waits": False,
        "has_borders": any(row.border_cycles for row in rows),
        "rows": [_row(row, time, has_cycles=has_cycles) for row in rows],
    }


def _row(row: CpuCall, time: TimeLine | None, *, has_cycles: bool) -> dict[str, Any]:
    cost = row.cycles if has_cycles else row.instructions
    return {
        "name": times.short(row.name),
        "full_name": row.name,
        "calls": row.calls if row.calls > 1 else None,
        "where": row.where or "",
        "cost": cost,
        "time": _time(cost, time) if has_cycles else "",
        "border": row.border_cycles or None,
        "border_time": _time(row.border_cycles, time),
        "why": row.why,
        "constraint": row.constraint or "",
        "replacement": row.replacement or "",
        "results": row.results or "",
    }


def _time(cycles: int | None, time: TimeLine | None) -> str:
    return "" if not cycles or time is None else times.milliseconds(cycles / time.clocks.cpu.hz)
