"""``sweep/1``, from which schemas/sweep.v1.schema.json is made."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from ethosu_sdk.records import rules
from ethosu_sdk.records.common import (
    Amount,
    Count,
    Derived,
    Distinct,
    Host,
    Limits,
    Number,
    PositiveAmount,
    PositiveCount,
    Sha256,
    Some,
    Text,
)
from ethosu_sdk.records.kind import Part, RecordKind, about, require, require_distinct

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
Status = Annotated[
    Literal["pass", "fail", "incomplete"],
    about("fail: a cell failed or none passed; incomplete: cells were not come to"),
]
Want = Literal["min", "max"]
Standing = Literal["winner", "pareto", "dominated", "not ranked", "broken", "not judged", "no result"]
Source = Literal["measured", "modelled", "estimated"]

Id = Annotated[str, Meta(pattern="^[0-9a-f]{12}$")]
TolerancePercent = Annotated[int, Meta(gt=0, le=1000)] | Annotated[float, Meta(gt=0, le=1000)]


class Dimensions(Part):
    model: Distinct[Text]
    target: Distinct[Text]
    system: Annotated[Distinct[Text], about("board profiles; none for cells without one")]
    system_config: Distinct[Text]
    memory_mode: Distinct[Text]
    quantize: Distinct[Text]
    vela: Distinct[Text]
    simulator: Distinct[Text]
    board: Distinct[Text]
    inputs: Distinct[Text]

    def __post_init__(self) -> None:
        require_distinct(*(getattr(self, name) for name in self.__struct_fields__))


class Dropped(Part):
    reason: Text
    count: PositiveCount


class Plan(Part):
    cells: PositiveCount
    lowerings: Count
    vela_runs: Count
    simulations: Count
    excluded: Count
    dropped: tuple[Dropped, ...]


class CellCounts(Part):
    passed: Count = msgspec.field(name="pass")
    fail: Count
    refused: Count
    failed: Count
    timeout: Count
    out_of_memory: Count = msgspec.field(name="out of memory")
    killed: Count
    not_run: Count = msgspec.field(name="not run")


class Constraint(Part):
    figure: FigureName
    min: Number | None = None
    max: Number | None = None
    clock_mhz: PositiveAmount | None = None
    models: Annotated[Some[str] | None, about("patterns of names")] = None
    systems: Annotated[Some[str] | None, about("names or patterns of the board profiles that it is for")] = (
        None
    )
    text: Text

    together: ClassVar[dict[str, Any]] = {"anyOf": [{"required": ["min"]}, {"required": ["max"]}]}

    def __post_init__(self) -> None:
        require(self.min is not None or self.max is not None, "neither min nor max is given")


class Goal(Part):
    figure: FigureName
    want: Want
    clock_mhz: PositiveAmount | None = None
    tolerance_percent: TolerancePercent | None = None
    text: Text


class VerdictCounts(Part):
    cells: Count
    kept: Count
    broken: Count
    not_judged: Count
    no_result: Count


class Ranking(Part):
    source: Source | None = None
    pareto: Distinct[Id]
    winners: Distinct[Id]

    def __post_init__(self) -> None:
        require_distinct(self.pareto, self.winners)


class Miss(Part):
    constraint: Annotated[Count, about("its place in constraints")]
    value: Number
    limit: Number
    by: PositiveAmount
    percent: Annotated[Amount | None, about("of the limit")] = None
    source: Source | None = None
    text: Text


class Nearest(Part):
    cell: Id
    misses: Some[Miss]


class NoWinner(Part):
    reason: Text
    nearest: Nearest | None = None


class ModelVerdict(Part):
    model: str
    counts: VerdictCounts
    rankings: tuple[Ranking, ...]
    winners: Distinct[Id]
    no_winner: NoWinner | None = None
    notes: tuple[Text, ...]

    def __post_init__(self) -> None:
        require_distinct(self.winners)


class TargetVerdict(Part):
    target: str
    every_model: bool
    kept: tuple[str, ...]
    broken: tuple[str, ...]
    not_judged: tuple[str, ...]
    no_result: tuple[str, ...]
    not_swept: tuple[str, ...]


class CellVerdict(Part):
    cell: Id
    standing: Standing
    source: Source | None = None
    misses: Some[Miss] | None = None
    missing: tuple[Text, ...] | None = None


class Verdict(Part):
    status: Annotated[
        Literal["pass", "fail"], about("pass: every model keeps all constraints in a cell at least")
    ]
    constraints: tuple[Constraint, ...]
    goals: Some[Goal]
    default_goals: bool
    counts: VerdictCounts
    models: tuple[ModelVerdict, ...]
    targets: tuple[TargetVerdict, ...]
    notes: tuple[Text, ...]
    cells: tuple[CellVerdict, ...]


class Table(Part):
    path: Text
    rows: PositiveCount
    sha256: Sha256


class Session(Part):
    cells_before: Count
    jobs: PositiveCount
    lower_steps: Count
    compile_steps: Count
    finish_steps: Count


class Sweep(Derived[Status], tag_field="schema", tag="sweep/1"):
    """A sweep: many models by many settings."""

    name: Text
    dimensions: Dimensions
    limits: Limits
    plan: Plan
    cells: CellCounts
    verdict: Verdict
    table: Table
    session: Annotated[Session, about("what the last command did")]
    wall_time_s: Amount
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
