"""What a run's repeats of its inputs agreed in."""

from __future__ import annotations

from typing import Literal, Protocol

from ethosu_sdk.records.kind import Part


class OutputChange(Part):
    set: int
    repeat: int
    output: int


class RepeatedOutputs(Part):
    agree: bool
    changed: int
    first_changes: tuple[OutputChange, ...] | None = None


class CounterChange(Part):
    set: int
    repeat: int
    instruction: int


class RepeatedCounters(Part):
    agree: bool
    changed: int
    first_changes: tuple[CounterChange, ...] | None = None


class Repeats(Part):
    count: int
    state: Literal["reset", "kept"] | None = None
    outputs: RepeatedOutputs
    counters: RepeatedCounters


class _Repeated(Protocol):
    @property
    def status(self) -> str: ...

    @property
    def repeats(self) -> Repeats | None: ...


def repeats_count_what_changed(record: _Repeated) -> list[str]:
    """Outputs that changed between repeats cannot be part of a pass, unless each went on from the state before."""
    repeats = record.repeats
    if repeats is None:
        return []
    found = [
        f"{name} agree: {row.agree}, but {row.changed} changed"
        for name, row in (("outputs", repeats.outputs), ("counters", repeats.counters))
        if row.agree != (row.changed == 0)
    ]
    if repeats.state != "kept" and not repeats.outputs.agree and record.status == "pass":
        found.append("outputs changed between repeats, but the record says 'pass'")
    return found
