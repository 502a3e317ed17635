"""``compile-result/1``: schemas/compile-result.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records import rules
from ethosu_sdk.records.common import (
    Delegation,
    Derived,
    Dtype,
    Estimate,
    Host,
    Model,
    Number,
    SourceLine,
    System,
    Target,
    Tensor,
    TosaOperation,
    Unavailable,
    VelaOperation,
)
from ethosu_sdk.records.kind import Part, RecordKind
from ethosu_sdk.records.parts.accuracy import Accuracy

LinkName = Literal["graph", "prepared", "quantised", "executed"]
LinkVerdict = Literal["equal", "float-rounding", "explained", "different"]
SampleOrigin = Literal["example", "calibration", "shuffled"]

_DISTANCES = ("sqnr_db", "cosine", "max_abs_error", "lsb_histogram")


class Options(Part):
    quantize: Literal["int8", "int16", "none"] | None = None
    quantize_per: Literal["channel", "tensor"] | None = None
    quantizer: Literal["function of the model file", "instance of the model file"] | None = None
    io: Literal["int8", "float"]
    delegate: bool
    vela_flags: tuple[str, ...]
    fallback: Literal["cortex-m", "portable"] | None = None


class BoardProfile(Part):
    name: str
    sha256: str


class Calibration(Part):
    source: Literal["none", "file", "model", "zoo", "example"]
    samples: int


class Site(Part):
    calls: int
    reason: str
    portable: str | None = None
    cortex_m: str | None = None
    source: SourceLine | None = None


class LayoutChanges(Part):
    calls: int
    bytes: int


class State(Part):
    name: str
    shape: tuple[int, ...]
    dtype: Dtype
    bytes: int
    arena: int
    offset: int


class CpuOperator(Part):
    name: str
    calls: int
    boundary: bool
    sites: tuple[Site, ...]


class DelegateFiles(Part):
    tosa: str
    summary: str
    per_layer: str
    debug: str


class Operation(Part):
    offsets: tuple[int, ...]
    vela: VelaOperation
    tosa: TosaOperation | None = None
    source: SourceLine | None = None
    estimates: tuple[Estimate, ...]


class Delegate(Part):
    index: int
    payload_sha256: str
    payload_bytes: int
    scratch_bytes: int
    fast_scratch_bytes: int
    files: DelegateFiles
    estimates: tuple[Estimate, ...]
    operations: tuple[Operation, ...]


class Figure(Part):
    executed: Number
    rounding: Number
    limit: Number


class TiesUp(Part):
    equal: int
    largest: Number


class CheckedOutput(Part):
    index: int
    status: Literal["pass", "fail"]
    detail: str
    sha256: str
    elements: int
    equal: int
    left_out: int
    not_finite: int
    step: Number
    rms: Figure | None = None
    largest: Figure | None = None
    differing: Figure | None = None
    ties_up: TiesUp | None = None
    sqnr_db: Number | None = None


class StartTosa(Part):
    operator: str
    tensor: str


class Start(Part):
    text: str
    certain: bool
    tosa: StartTosa | None = None
    operator: str | None = None
    source: SourceLine | None = None


class Dialect(Part):
    elements: int
    equal: int


class Check(Part):
    status: Literal["left-out", "unavailable", "fail", "pass"]
    reason: str | None = None
    executor: str | None = None
    samples: int | None = None
    trials: int | None = None
    stateful: bool | None = None
    outputs: tuple[CheckedOutput, ...] | None = None
    dialect: Dialect | None = None
    start: Start | None = None


class LinkOutput(Part):
    index: int
    name: str
    elements: int
    equal: int
    largest: Number | None = None
    sqnr_db: Number | None = None


class Link(Part):
    link: LinkName
    status: Literal["pass", "fail", "unavailable"]
    verdict: LinkVerdict | None = None
    outputs: tuple[LinkOutput, ...] | None = None
    layers: int | None = None
    reason: str | None = None


class NoisyLayer(Part):
    operator: str
    place: str | None = None
    sqnr_db: Number


class Chain(Part):
    samples: tuple[SampleOrigin, ...]
    links: tuple[Link, ...]
    noisy_layers: tuple[NoisyLayer, ...]
    line: str
    min_sqnr_db: Number | None = None


class Files(Part):
    pte: str
    io: str
    log: str
    etrecord: str | None = None


class Fed(Part):
    feeds: tuple[str, ...]
    steps: int
    file: str | None = None


class Method(Part):
    name: str
    io: str
    calibration: Calibration
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    state: tuple[State, ...] | None = None
    layout_changes: LayoutChanges | None = None
    cpu_operators: tuple[CpuOperator, ...]
    delegates: tuple[Delegate, ...]
    delegation: tuple[Delegation, ...] | None = None
    check: Check
    chain: Chain | None = None


class Compilation(Derived[Literal["pass", "fail"]], tag_field="schema", tag="compile-result/1"):
    """What `ethosu-sdk compile` did."""

    compile_key: str
    source: str
    model: Model
    target: Target | None = None
    core: Literal["cortex-m55", "cortex-m85"] | None = None
    system: System | None = None
    board_profile: BoardProfile | None = None
    options: Options
    calibration: Calibration
    prequantized: bool
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    state: tuple[State, ...] | None = None
    layout_changes: LayoutChanges | None = None
    cpu_operators: tuple[CpuOperator, ...]
    delegates: tuple[Delegate, ...]
    check: Check
    chain: Chain | None = None
    accuracy: Accuracy | None = None
    files: Files
    warnings: tuple[str, ...]
    unavailable: tuple[Unavailable, ...]
    check_time_s: Number | None = None
    wall_time_s: Number
    host: Host
    delegation: tuple[Delegation, ...] | None = None
    sequence: Fed | None = None
    other_methods: tuple[Method, ...] | None = None

    @property
    def checks(self) -> tuple[Check, ...]:
        """The check of each method."""
        return (self.check, *(row.check for row in self.other_methods or ()))

    @property
    def target_name(self) -> str:
        """The target as the command line spells it: an NPU, or a processor."""
        return self.target.name if self.target is not None else self.core or ""

    @property
    def target_words(self) -> str:
        """The target for people."""
        return self.target.words if self.target is not None else f"{self.core}, no NPU"


def system_is_that_of_the_target(record: Compilation) -> list[str]:
    """The system is whole and bears the names of the target."""
    return [] if record.system is None else rules.system_problems(record.system, record.target)


def has_one_target(record: Compilation) -> list[str]:
    """A program is for an NPU or for a processor."""
    found = [record.target, record.core]
    return (
        []
        if found.count(None) == 1
        else ["a program is for a target or for a core, and for one of them alone"]
    )


def status_follows_accuracy(record: Compilation) -> list[str]:
    """A missed threshold fails the compilation, and so does a check that failed."""
    verdict = record.accuracy.verdict if record.accuracy is not None else None
    missed = verdict is not None and any(row.status == "fail" for row in verdict.checks)
    expected = "fail" if missed else "pass"
    if verdict is not None and verdict.status != expected:
        return [f"the thresholds say '{expected}', the record says '{verdict.status}'"]
    if any(check.status == "fail" for check in record.checks):
        expected = "fail"
    if record.status != expected:
        return [f"check and thresholds say '{expected}', the record says '{record.status}'"]
    return []


def check_follows_its_figures(record: Compilation) -> list[str]:
    """An output passes when no figure exceeds its limit, and the check when all outputs do."""
    return [problem for check in record.checks for problem in _problems(check)]


def _problems(check: Check) -> list[str]:
    if check.outputs is None:
        return []
    found = []
    for number, row in enumerate(check.outputs):
        figures = [part for part in (row.rms, row.largest, row.differing) if part is not None]
        beyond = row.not_finite > 0 or any(part.executed > part.limit for part in figures)
        if row.index != number or row.status != ("fail" if beyond else "pass"):
            found.append(f"output {number} of the check has figures that do not go with '{row.status}'")
    failed = any(row.status == "fail" for row in check.outputs)
    failed |= check.dialect is not None and check.dialect.equal != check.dialect.elements
    if check.status != ("fail" if failed else "pass"):
        found.append(f"the check's outputs say otherwise than '{check.status}'")
    return found


def figures_are_known_or_explained(record: Compilation) -> list[str]:
    """Each pair has every figure, or the reason why it has not. Labels have a top-1 alone."""
    explained = {row.path for row in record.unavailable}
    found = []
    for number, row in enumerate(record.accuracy.pairs if record.accuracy is not None else ()):
        for name in ("top1", *(_DISTANCES if row.reference != "labels" else ())):
            if getattr(row, name) is None and f"/accuracy/pairs/{number}/{name}" not in explained:
                found.append(f"pair {number} has neither {name} nor a reason")
        if row.reference == row.candidate:
            found.append(f"pair {number} compares '{row.reference}' with itself")
    return found


KIND = RecordKind(
    Compilation,
    (
        rules.unavailable_is_absent,
        rules.files_stay_in_the_folder,
        has_one_target,
        system_is_that_of_the_target,
        status_follows_accuracy,
        check_follows_its_figures,
        figures_are_known_or_explained,
    ),
    file="*.compile.json",
    role="record of the compilation",
)
