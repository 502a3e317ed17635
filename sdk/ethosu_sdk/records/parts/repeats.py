"""What a run's repeats of its inputs agreed in."""

from __future__ import annotations

from typing import Annotated, Literal, Protocol

from msgspec import Meta

from ethosu_sdk.records.common import Count, Some
from ethosu_sdk.records.kind import Part, about


class OutputChange(Part):
    set: Count
    repeat: Count
    output: Count


class RepeatedOutputs(Part):
    agree: bool
    changed: Annotated[Count, about("results that are not those of the first repeat")]
    first_changes: Some[OutputChange] | None = None


class CounterChange(Part):
    set: Count
    repeat: Count
    instruction: Count


class RepeatedCounters(Part):
    agree: bool
    changed: Annotated[Count, about("results that are not those of the first repeat")]
    first_changes: Some[CounterChange] | None = None


class Repeats(Part):
    count: Annotated[
        int, Meta(ge=2, description="inferences of every set of inputs; outputs are those of the first")
    ]
    state: Annotated[
        Literal["reset", "kept"] | None,
        about(
            "what a repeat of a program with a state begins with: the state that the program brings, "
            "or that of the repeat before, whose outputs may then differ; absent without a state"
        ),
    ] = None
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
