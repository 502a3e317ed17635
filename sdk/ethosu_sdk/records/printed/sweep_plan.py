"""``sweep-plan/1``, from which schemas/sweep-plan.v1.schema.json is made."""

from __future__ import annotations

from typing import Annotated, Literal

from ethosu_sdk.records.common import Amount, Count, Document, PositiveCount, Text
from ethosu_sdk.records.kind import Part, RecordKind, about
from ethosu_sdk.records.sweep import Dropped


class Left(Part):
    cells: Count
    lowerings: Count
    vela_runs: Count
    simulations: Count


class SweepPlan(Document[Literal["pass"]], tag_field="schema", tag="sweep-plan/1"):
    """What a sweep has to do."""

    name: Text
    cells: PositiveCount
    lowerings: Count
    vela_runs: Count
    simulations: Count
    excluded: Count
    dropped: tuple[Dropped, ...]
    done: Count
    left: Left
    estimated_s: Annotated[Amount, about("a rough guess")]


KIND = RecordKind(SweepPlan)
