"""``sweep/1``: schemas/sweep.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

import msgspec

from ethosu_sdk.records import rules
from ethosu_sdk.records.common import Derived, Host, Limits, Number
from ethosu_sdk.records.kind import Part, RecordKind

FigureName = Literal[
    "sram_bytes",
    "dram_bytes",
    "flash_bytes",
    "program_bytes",
    "time_ms",
    "inference_ms",
    "npu_cycles",
    "npu_macs",
    "macs",
    "operators_npu",
    "operators_cpu",
    "sqnr_db",
    "top1",
    "check_sqnr_db",
    "cpu_calls",
]
Status = Literal["pass", "fail", "incomplete"]
Want = Literal["min", "max"]
Standing = Literal["winner", "pareto", "dominated", "not ranked", "broken", "not judged", "no result"]
Source = Literal["measured", "modelled", "estimated"]


class Dimensions(Part):
    model: tuple[str, ...]
    target: tuple[str, ...]
    system: tuple[str, ...]
    system_config: tuple[str, ...]
    memory_mode: tuple[str, ...]
    quantize: tuple[str, ...]
    vela: tuple[str, ...]
    simulator: tuple[str, ...]
    board: tuple[str, ...]
    inputs: tuple[str, ...]


class Dropped(Part):
    reason: str
    count: int


class Plan(Part):
    cells: int
    lowerings: int
    vela_runs: int
    simulations: int
    excluded: int
    dropped: tuple[Dropped, ...]


class CellCounts(Part):
    passed: int = msgspec.field(name="pass")
    fail: int
    refused: int
    failed: int
    timeout: int
    out_of_memory: int = msgspec.field(name="out of memory")
    killed: int
    not_run: int = msgspec.field(name="not run")


class Constraint(Part):
    figure: FigureName
    min: Number | None = None
    max: Number | None = None
    clock_mhz: Number | None = None
    models: tuple[str, ...] | None = None
    systems: tuple[str, ...] | None = None
    text: str


class Goal(Part):
    figure: FigureName
    want: Want
    clock_mhz: Number | None = None
    tolerance_percent: Number | None = None
    text: str


class VerdictCounts(Part):
    cells: int
    kept: int
    broken: int
    not_judged: int
    no_result: int


class Ranking(Part):
    source: Source | None = None
    pareto: tuple[str, ...]
    winners: tuple[str, ...]


class Miss(Part):
    constraint: int
    value: Number
    limit: Number
    by: Number
    percent: Number | None = None
    source: Source | None = None
    text: str


class Nearest(Part):
    cell: str
    misses: tuple[Miss, ...]


class NoWinner(Part):
    reason: str
    nearest: Nearest | None = None


class ModelVerdict(Part):
    model: str
    counts: VerdictCounts
    rankings: tuple[Ranking, ...]
    winners: tuple[str, ...]
    no_winner: NoWinner | None = None
    notes: tuple[str, ...]


class TargetVerdict(Part):
    target: str
    every_model: bool
    kept: tuple[str, ...]
    broken: tuple[str, ...]
    not_judged: tuple[str, ...]
    no_result: tuple[str, ...]
    not_swept: tuple[str, ...]


class CellVerdict(Part):
    cell: str
    standing: Standing
    source: Source | None = None
    misses: tuple[Miss, ...] | None = None
    missing: tuple[str, ...] | None = None


class Verdict(Part):
    status: Literal["pass", "fail"]
    constraints: tuple[Constraint, ...]
    goals: tuple[Goal, ...]
    default_goals: bool
    counts: VerdictCounts
    models: tuple[ModelVerdict, ...]
    targets: tuple[TargetVerdict, ...]
    notes: tuple[str, ...]
    cells: tuple[CellVerdict, ...]


class Table(Part):
    path: str
    rows: int
    sha256: str


class Session(Part):
    cells_before: int
    jobs: int
    lower_steps: int
    compile_steps: int
    finish_steps: int


class Sweep(Derived[Status], tag_field="schema", tag="sweep/1"):
    """A sweep: many models by many settings."""

    name: str
    dimensions: Dimensions
    limits: Limits
    plan: Plan
    cells: CellCounts
    verdict: Verdict
    table: Table
    session: Session
    wall_time_s: Number
    host: Host


def counts_every_cell(record: Sweep) -> list[str]:
    """Each cell of the table is counted and judged once, and the status follows."""
    counted = record.cells
    bad = counted.fail + counted.failed + counted.timeout + counted.out_of_memory + counted.killed
    total = counted.passed + counted.refused + counted.not_run + bad
    found = []
    if not total == record.table.rows == record.plan.cells:
        found.append(f"{total} cells are counted, the table has {record.table.rows} rows")
    verdict = record.verdict
    counts = verdict.counts
    judged = counts.kept + counts.broken + counts.not_judged + counts.no_result
    if not total == judged == counts.cells == len(verdict.cells):
        found.append(f"the verdict is on {judged} cells, {total} are counted")
    broken = verdict.constraints and verdict.status == "fail"
    expected = "fail" if bad or broken or not counted.passed else "pass"
    if counted.not_run:
        expected = "incomplete"
    if record.status != expected:
        found.append(f"the cells say '{expected}', the record says '{record.status}'")
    return found


KIND = RecordKind(
    Sweep,
    (rules.files_stay_in_the_folder, counts_every_cell),
    file="sweep.json",
    role="record of the sweep",
)
