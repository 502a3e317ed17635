"""``sweep-plan/1``: schemas/sweep-plan.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records.common import Document, Number
from ethosu_sdk.records.kind import Part, RecordKind
from ethosu_sdk.records.sweep import Dropped


class Left(Part):
    cells: int
    lowerings: int
    vela_runs: int
    simulations: int


class SweepPlan(Document[Literal["pass"]], tag_field="schema", tag="sweep-plan/1"):
    """What a sweep has to do."""

    name: str
    cells: int
    lowerings: int
    vela_runs: int
    simulations: int
    excluded: int
    dropped: tuple[Dropped, ...]
    done: int
    left: Left
    estimated_s: Number


KIND = RecordKind(SweepPlan)
