"""Sweeps: ``sweep/1``, ``sweep-cell/1``, ``sweep-compare/1``, ``sweep-plan/1`` and ``sweep-answer/1``."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from ethosu_sdk.records import common as c, rules
from ethosu_sdk.records.common import Derived, Document, Part, RecordKind, require
from ethosu_sdk.records.compare import MetricChange

# The parts of sweep/1.
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
SweepStatus = Annotated[
    Literal["pass", "fail", "incomplete"],
    Meta(description="fail: a cell failed or none passed; incomplete: cells were not come to"),
]
Want = Literal["min", "max"]
Standing = Literal["winner", "pareto", "dominated", "not ranked", "broken", "not judged", "no result"]
RankedSource = Literal["measured", "modelled", "estimated"]

Id = Annotated[str, Meta(pattern="^[0-9a-f]{12}$")]
TargetName = Annotated[str, Meta(pattern="^(ethos-u(55|65|85)-[1-9][0-9]*|cortex-m(55|85))$")]
TolerancePercent = Annotated[int, Meta(gt=0, le=1000)] | Annotated[float, Meta(gt=0, le=1000)]


class Dimensions(Part):
    model: c.Distinct[c.Text]
    target: c.Distinct[c.Text]
    system: c.Distinct[c.Text]  #: board profiles; none for cells without one
    system_config: c.Distinct[c.Text]
    memory_mode: c.Distinct[c.Text]
    quantize: c.Distinct[c.Text]
    vela: c.Distinct[c.Text]
    simulator: c.Distinct[c.Text]
    board: c.Distinct[c.Text]
    inputs: c.Distinct[c.Text]


class Dropped(Part):
    reason: c.Text
    count: c.PositiveCount


class Plan(Part):
    cells: c.PositiveCount
    lowerings: c.Count
    vela_runs: c.Count
    simulations: c.Count
    excluded: c.Count
    dropped: tuple[Dropped, ...]


class CellCounts(Part):
    passed: c.Count = msgspec.field(name="pass")
    fail: c.Count
    refused: c.Count
    failed: c.Count
    timeout: c.Count
    out_of_memory: c.Count = msgspec.field(name="out of memory")
    killed: c.Count
    not_run: c.Count = msgspec.field(name="not run")


class Constraint(Part):
    figure: FigureName
    min: c.Number | None = None
    max: c.Number | None = None
    clock_mhz: c.PositiveAmount | None = None
    models: c.Some[str] | None = None  #: patterns of names
    systems: c.Some[str] | None = None  #: names or patterns of the board profiles that it is for
    text: c.Text

    together: ClassVar[dict[str, Any]] = {"anyOf": [{"required": ["min"]}, {"required": ["max"]}]}

    def __post_init__(self) -> None:
        require(self.min is not None or self.max is not None, "neither min nor max is given")


class Goal(Part):
    figure: FigureName
    want: Want
    clock_mhz: c.PositiveAmount | None = None
    tolerance_percent: TolerancePercent | None = None
    text: c.Text


class VerdictCounts(Part):
    cells: c.Count
    kept: c.Count
    broken: c.Count
    not_judged: c.Count
    no_result: c.Count


class Ranking(Part):
    source: RankedSource | None = None
    pareto: c.Distinct[Id]
    winners: c.Distinct[Id]


class Miss(Part):
    constraint: c.Count  #: its place in constraints
    value: c.Number
    limit: c.Number
    by: c.PositiveAmount
    percent: c.Amount | None = None  #: of the limit
    source: RankedSource | None = None
    text: c.Text


class Nearest(Part):
    cell: Id
    misses: c.Some[Miss]


class NoWinner(Part):
    reason: c.Text
    nearest: Nearest | None = None


class ModelVerdict(Part):
    model: str
    counts: VerdictCounts
    rankings: tuple[Ranking, ...]
    winners: c.Distinct[Id]
    no_winner: NoWinner | None = None
    notes: tuple[c.Text, ...]


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
    source: RankedSource | None = None
    misses: c.Some[Miss] | None = None
    missing: tuple[c.Text, ...] | None = None


class Verdict(Part):
    status: Literal["pass", "fail"]  #: pass: every model keeps all constraints in a cell at least
    constraints: tuple[Constraint, ...]
    goals: c.Some[Goal]
    default_goals: bool
    counts: VerdictCounts
    models: tuple[ModelVerdict, ...]
    targets: tuple[TargetVerdict, ...]
    notes: tuple[c.Text, ...]
    cells: tuple[CellVerdict, ...]


class Table(Part):
    path: c.Text
    rows: c.PositiveCount
    sha256: c.Sha256


class Session(Part):
    cells_before: c.Count
    jobs: c.PositiveCount
    lower_steps: c.Count
    compile_steps: c.Count
    finish_steps: c.Count


class Sweep(Derived[SweepStatus], tag_field="schema", tag="sweep/1"):
    """A sweep: many models by many settings."""

    name: c.Text
    dimensions: Dimensions
    limits: c.Limits
    plan: Plan
    cells: CellCounts
    verdict: Verdict
    table: Table
    session: Session  #: what the last command did
    wall_time_s: c.Amount
    host: c.Host


def counts_every_cell(record: Sweep) -> Iterator[str]:
    """Each cell of the table is counted and judged once, and the status follows."""
    counted, verdict = record.cells, record.verdict
    bad = counted.fail + counted.failed + counted.timeout + counted.out_of_memory + counted.killed
    total = counted.passed + counted.refused + counted.not_run + bad
    if not total == record.table.rows == record.plan.cells:
        yield f"{total} cells are counted, the table has {record.table.rows} rows"
    counts = verdict.counts
    judged = counts.kept + counts.broken + counts.not_judged + counts.no_result
    if not total == judged == counts.cells == len(verdict.cells):
        yield f"the verdict is on {judged} cells, {total} are counted"
    broken = verdict.constraints and verdict.status == "fail"
    expected = "fail" if bad or broken or not counted.passed else "pass"
    yield from rules.wrong_status(record, "incomplete" if counted.not_run else expected, "the cells say")


SWEEP = RecordKind(
    Sweep, (rules.files_stay_in_the_folder, counts_every_cell), file="sweep.json", role="record of the sweep"
)


# The parts of sweep-cell/1.
class Cell(Part):
    model: c.Text
    target: TargetName
    system: c.Text | None = None  #: the board profile that the cell is compiled for and priced on
    system_config: c.Text
    memory_mode: c.Text
    quantize: Literal["default", "int8", "int16", "none"]
    vela: c.Text
    simulator: Literal["none", "host", "qemu"]
    board: c.Text | None = None
    inputs: c.Text | None = None


class Error(Part):
    class_name: c.Text = msgspec.field(name="class")
    exit_code: Literal[1, 2, 3, 4, 5, 6, 7]
    message: c.Text
    hint: c.Text | None = None


class Figures(Part):
    program_bytes: c.Count | None = None
    program_sha256: c.Sha256 | None = None
    npu_cycles: c.Count | None = None
    npu_cycles_source: c.Source | None = None
    clock_mhz: c.PositiveAmount | None = None
    time_ms: c.Amount | None = None
    inference_ms: c.Amount | None = None  #: of CPU and NPU, as the run's time line has it
    sram_bytes: c.Count | None = None
    dram_bytes: c.Count | None = None
    flash_bytes: c.Count | None = None  #: commands and weights of the NPU's part
    npu_macs: c.Count | None = None
    operators_npu: c.Count | None = None
    operators_cpu: c.Count | None = None
    cpu_calls: c.Count | None = None
    check: Literal["pass", "fail", "unavailable", "left-out"] | None = None
    check_sqnr_db: c.Number | None = None
    sqnr_db: c.Number | None = None
    top1: c.Share | None = None
    outputs_sha256: c.Sha256 | None = None


CellOutcome = Annotated[
    Literal["pass", "fail", "refused", "failed", "timeout", "out of memory", "killed"],
    Meta(
        description="fail: compared and wrong; refused: the model or its settings cannot be (exit codes 2 and 3)"
    ),
]


class SweepCell(Document[CellOutcome], tag_field="schema", tag="sweep-cell/1"):
    """One cell of a sweep: what came of it."""

    key: c.Sha256  #: digest of all that shapes the cell and can be seen beforehand
    model_sha256: c.Sha256  #: of the model's source
    cell: Cell
    error: Error | None = None
    figures: Figures
    #: figures that are infinite: all outputs are equal
    no_noise: c.DistinctSome[Literal["check_sqnr_db", "sqnr_db"]] | None = None
    reads: dict[str, c.Sha256]  #: files that the model read, from the folder of the sweep's file
    limits: c.Limits
    wall_time_s: c.Amount
    host: c.Host


def has_an_error_or_passes(record: SweepCell) -> Iterator[str]:
    """A cell that did not pass says why, and one that did has nothing to say."""
    if (record.status == "pass") == (record.error is not None):
        yield f"the status is '{record.status}', and there is {'no' if record.error is None else 'an'} error"


SWEEP_CELL = RecordKind(SweepCell, (has_an_error_or_passes,), file="cell.json", role="record of the cell")


# The parts of sweep-compare/1.
CellStatus = Literal["pass", "fail", "refused", "failed", "timeout", "out of memory", "killed", "not run"]
ComparedStatus = Literal["pass", "fail", "blocked", "missing", "new"]


class Policy(Part):
    source: c.Text
    sha256: c.Sha256
    allow: c.Distinct[c.Text]


class Counts(Part):
    passed: c.Count = msgspec.field(name="pass")
    fail: c.Count
    blocked: c.Count
    missing: c.Count
    new: c.Count


class ComparedCell(Part):
    cell: Cell
    status: ComparedStatus  #: missing: in the first sweep alone; new: in the second alone
    before_status: CellStatus | None = None
    after_status: CellStatus | None = None
    reasons: tuple[c.Text, ...]
    metrics: tuple[MetricChange, ...] | None = None  #: figures that differ


class SweepComparison(Derived[Literal["pass", "fail", "blocked"]], tag_field="schema", tag="sweep-compare/1"):
    """Two sweeps, cell by cell."""

    policy: Policy
    before: c.Text
    after: c.Text
    counts: Counts
    cells: tuple[ComparedCell, ...]
    host: c.Host


def comparison_follows_its_cells(record: SweepComparison) -> Iterator[str]:
    """Counts and status of a comparison of sweeps are those of its cells."""
    counted = collections.Counter[str](row.status for row in record.cells)
    for name, count in record.counts.to_json().items():
        if count != counted[name]:
            yield f"{count} cells are counted as '{name}', {counted[name]} are"
    failed = counted["fail"] or counted["missing"]
    expected = "blocked" if counted["blocked"] else "fail" if failed else "pass"
    yield from rules.wrong_status(record, expected, "the cells say")


SWEEP_COMPARE = RecordKind(
    SweepComparison,
    (comparison_follows_its_cells,),
    file="sweep-compare.json",
    role="record of the comparison",
)


# The parts of sweep-plan/1.
class Left(Part):
    cells: c.Count
    lowerings: c.Count
    vela_runs: c.Count
    simulations: c.Count


class SweepPlan(Document[Literal["pass"]], tag_field="schema", tag="sweep-plan/1"):
    """What a sweep has to do."""

    name: c.Text
    cells: c.PositiveCount
    lowerings: c.Count
    vela_runs: c.Count
    simulations: c.Count
    excluded: c.Count
    dropped: tuple[Dropped, ...]
    done: c.Count
    left: Left
    estimated_s: c.Amount  #: a rough guess


SWEEP_PLAN = RecordKind(SweepPlan)


class SweepAnswer(Document[Literal["pass"]], tag_field="schema", tag="sweep-answer/1"):
    """The answer to a query about a sweep."""

    query: c.Text
    columns: c.Distinct[str]
    rows: tuple[dict[str, Any], ...]


SWEEP_ANSWER = RecordKind(SweepAnswer)
