"""``compile-result/1``, from which schemas/compile-result.v1.schema.json is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from ethosu_sdk.records import common as c, rules
from ethosu_sdk.records.common import Derived, Part, RecordKind, require

Status = Annotated[
    Literal["pass", "fail"],
    Meta(description="fail: the check or a threshold of the evaluation is missed; the program is whole"),
]
LinkName = Literal["converted", "graph", "prepared", "quantised", "executed"]
LinkVerdict = Literal["equal", "float-rounding", "explained", "different"]
ExecutionName = Literal["float", "quantised", "executed"]
Reference = Literal["float", "quantised", "labels", "expected"]
SampleOrigin = Literal["example", "calibration", "shuffled", "seeded"]

# What a check that was done has.
_RESULTS = ("executor", "samples", "trials", "stateful", "outputs")
_DISTANCES = ("sqnr_db", "cosine", "max_abs_error", "lsb_histogram")


class Options(Part):
    #: what the model was quantised to here; absent: the model's file has a quantiser that is complete
    quantize: Literal["int8", "int16", "none"] | None = None
    #: scales of the weights that were quantised here: one for each output channel, or one; absent where
    #: quantize is none or absent
    quantize_per: Literal["channel", "tensor"] | None = None
    #: the model's file defines a function of the quantiser that quantize and quantize_per describe, or a
    #: quantiser that is complete; absent: neither
    quantizer: Literal["function of the model file", "instance of the model file"] | None = None
    io: Literal["int8", "float", "model"]  #: model: the types that the .tflite has
    delegate: bool
    vela_flags: tuple[Annotated[str, Meta(pattern="^--[a-z]")], ...]  #: flags that the user added to Vela's
    #: kernels that were asked for where the NPU leaves a quantised operator to the CPU; absent: portable
    fallback: Literal["cortex-m", "portable"] | None = None
    #: rewrites that are made for speed, and refinements, were left out
    as_written: Literal[True] | None = None

    together: ClassVar[dict[str, Any]] = {
        "if": {
            "required": ["quantizer"],
            "properties": {"quantizer": {"const": "instance of the model file"}},
        },
        "then": {"properties": {"quantize": False, "quantize_per": False}},
        "else": {
            "required": ["quantize"],
            "if": {"properties": {"quantize": {"const": "none"}}},
            "then": {"properties": {"quantize_per": False, "quantizer": False}},
            "else": {"required": ["quantize_per"]},
        },
    }

    def __post_init__(self) -> None:
        if self.quantizer == "instance of the model file":
            require(not (self.quantize or self.quantize_per), "a complete quantizer leaves nothing to choose")
        elif self.quantize == "none":
            require(not (self.quantize_per or self.quantizer), "nothing is quantised, but a way is named")
        else:
            require(None not in (self.quantize, self.quantize_per), "how the model was quantised is not said")


class BoardProfile(Part):
    name: c.Text  #: that of the profile, or of the user's file without its suffix
    sha256: c.Sha256


class Calibration(Part):
    source: Literal["none", "file", "model", "zoo", "example"]
    samples: c.Count


class Site(Part):
    calls: c.PositiveCount
    reason: c.Text  #: why the NPU does not do it
    #: why it is no operator of the Cortex-M backend, where options.fallback asks for that
    portable: c.Text | None = None
    #: operator of the Cortex-M backend that --fallback cortex-m would make of it; absent where
    #: options.fallback asks for that
    cortex_m: c.Text | None = None
    source: c.SourceLine | None = None


class Rewrite(Part):
    """A rewrite for speed that took the place of an operator of the model."""

    name: c.Text  #: in a few words, such as pooling as mean
    operator: c.Text
    calls: c.PositiveCount
    reason: c.Text  #: what it is good for
    source: c.SourceLine | None = None


class Refinement(Part):
    """What was done for the accuracy of int8; the calibration samples show that it helps."""

    name: c.Text  #: in a few words, such as corrected biases
    layers: c.PositiveCount  #: whose weights or biases were changed
    before_db: c.Number  #: SQNR of the worst output on calibration samples without it
    after_db: c.Number  #: the same with it


class LayoutChanges(Part):
    """Calls on the CPU that change the order of an image's axes between NCHW and NHWC, in one inference."""

    calls: c.Count
    bytes: c.Count  #: that they write


class State(Part):
    name: c.Text  #: in the model, as in its state dict
    shape: tuple[c.Count, ...]
    dtype: c.Dtype
    bytes: c.Count
    arena: c.Count  #: the planned buffer of the program that holds it, from 0
    offset: c.Count  #: bytes from the arena's start


class CpuOperator(Part):
    name: c.Text
    calls: c.PositiveCount
    boundary: bool  #: it does nothing but convert between float and quantised values
    sites: c.Some[Site]


class DelegateFiles(Part):
    summary: c.Text
    per_layer: c.Text
    debug: c.Text
    tosa: c.Text | None = None  #: absent for a model that came as .tflite


class Operation(Part):
    #: of its NPU operations in the command stream, in bytes from behind the header of the driver actions
    offsets: c.Some[c.Count]
    vela: c.VelaOperation
    tosa: c.TosaOperation | None = None  #: absent when Vela added the operation
    source: c.SourceLine | None = None
    estimates: tuple[c.Estimate, ...]


class Delegate(Part):
    index: c.Count
    payload_sha256: c.Sha256
    payload_bytes: c.Count
    scratch_bytes: c.Count
    fast_scratch_bytes: c.Count
    files: DelegateFiles
    estimates: tuple[c.Estimate, ...]  #: Vela's network summary
    operations: tuple[Operation, ...]  #: from the command stream to the model, in the stream's order


class Figure(Part):
    executed: c.Amount  #: the program against the reference
    rounding: c.Amount  #: the worst trial against the reference
    limit: c.Amount  #: what rounding explains


class TiesUp(Part):
    equal: c.Count  #: elements of the same value
    largest: c.Amount  #: largest absolute error


class CheckedOutput(Part):
    index: c.Count
    status: Literal["pass", "fail"]
    detail: c.Text
    sha256: c.Sha256  #: of the executed output's bytes, in logical order
    elements: c.Count
    equal: c.Count  #: elements of the same value
    left_out: c.Count  #: elements that are NaN or infinite in the reference or in a trial: not judged
    not_finite: c.Count  #: elements that are NaN or infinite in the program alone
    step: c.Amount  #: the least difference that counts: the output's quantisation step, or a float's
    rms: Figure | None = None  #: root mean square of the error, in the output's unit
    largest: Figure | None = None  #: largest absolute error
    differing: Figure | None = None  #: elements that are not equal: of integers and truth values only
    #: the program against the reference in float64 with ties rounded up, as the NPU rounds them; absent where
    #: the model has no quantised values or an operator no float64
    ties_up: TiesUp | None = None
    sqnr_db: c.Number | None = None  #: 10 log10(sum r^2 / sum (c - r)^2)

    together: ClassVar[dict[str, Any]] = {
        "oneOf": [{"required": ["rms", "largest"]}, {"required": ["differing"]}]
    }

    def __post_init__(self) -> None:
        distances = None not in (self.rms, self.largest)
        require(distances != (self.differing is not None), "either rms and largest are given, or differing")


class StartTosa(Part):
    operator: c.Text
    tensor: c.Text


class Start(Part):
    text: c.Text  #: in words: what is wrong first, and where
    certain: bool  #: false: it is where the fault is first seen, which may be behind where it is
    tosa: StartTosa | None = None
    operator: c.Text | None = None  #: the PyTorch operator
    source: c.SourceLine | None = None


class Dialect(Part):
    elements: c.Count
    equal: c.Count  #: elements with the same bits; fewer than all fail the check


class Reading(Part):
    """The program's outputs against what another interpreter says of the user's file, for the same samples."""

    interpreter: c.Text
    #: the operator that was computed with another rounding than the interpreter's
    rounding: c.Text | None = None
    elements: c.Count | None = None  #: over all samples
    equal: c.Count | None = None  #: elements with the same bits
    largest: c.Amount | None = None  #: the largest difference, in steps of its output
    reason: c.Text | None = None  #: why the interpreter has no outputs

    together: ClassVar[dict[str, Any]] = {
        "oneOf": [
            {"required": ["reason"], "properties": dict.fromkeys(("elements", "equal", "largest"), False)},
            {"required": ["elements", "equal", "largest"], "properties": {"reason": False}},
        ]
    }

    def __post_init__(self) -> None:
        known = None not in (self.elements, self.equal, self.largest)
        require(known != (self.reason is not None), "a reading has either figures or a reason")


class Check(Part):
    """The program, executed once on the host simulator on its example inputs, against the eager run of the model that
    it was lowered from."""

    status: Literal["left-out", "unavailable", "fail", "pass"]  #: fail: the program does not run
    reason: c.Text | None = None
    executor: c.Text | None = None
    #: how many different inputs the program was executed on, one after the other; the figures of an output
    #: are those of the example inputs, or of the first sample where rounding does not explain them
    samples: c.PositiveCount | None = None
    #: eager runs in which every value was rounded another way; 0 when nothing is rounded
    trials: c.Count | None = None
    stateful: bool | None = None  #: the model changes tensors of its own in an inference
    outputs: tuple[CheckedOutput, ...] | None = None
    #: the executed outputs of all samples against the references in Python that ExecuTorch registers beside
    #: its cortex_m operators; where these and the NPU compute everything
    dialect: Dialect | None = None
    #: interpreters of others that ran the user's .tflite; the program passes when it equals one of them bit by bit
    readings: tuple[Reading, ...] | None = None
    start: Start | None = None

    together: ClassVar[dict[str, Any]] = {
        "oneOf": [
            {
                "required": ["reason"],
                "properties": {"status": {"enum": ["left-out", "unavailable", "fail"]}}
                | dict.fromkeys((*_RESULTS, "dialect", "readings", "start"), False),
            },
            {"required": [*_RESULTS], "properties": {"status": {"enum": ["pass", "fail"]}, "reason": False}},
        ]
    }

    def __post_init__(self) -> None:
        known = [getattr(self, name) is not None for name in _RESULTS]
        if self.reason is None:
            require(
                all(known) and self.status in ("pass", "fail"), "a check has neither results nor a reason"
            )
        else:
            without = not any((*known, self.dialect, self.readings, self.start)) and self.status != "pass"
            require(without, "a check has a reason not to have been done, and results")


class LinkOutput(Part):
    index: c.Count
    name: c.Text
    elements: c.Count  #: over all samples
    equal: c.Count
    largest: c.Amount | None = None  #: the largest difference, in the output's unit
    sqnr_db: c.Number | None = None


class Link(Part):
    #: the later of two stages: module converted from an ONNX file, exported graph, graph with observers that copy,
    #: quantised graph, program executed on the host simulator; the first is compared with the file in
    #: onnxruntime, the second to fourth with the untouched model, the last with the graph that was lowered
    link: LinkName
    status: Literal["pass", "fail", "unavailable"]
    verdict: LinkVerdict | None = None
    outputs: tuple[LinkOutput, ...] | None = None
    layers: c.Count | None = None  #: how many layers were judged by themselves
    reason: c.Text | None = None


class NoisyLayer(Part):
    operator: c.Text
    place: c.Text | None = None
    sqnr_db: c.Number


class Chain(Part):
    """Every comparison from the model as it was written to the program as it was executed, on several different
    samples in a row; absent when the comparison was left out."""

    #: where each sample comes from; shuffled: the elements of the example in another order; seeded: random
    #: over the whole range of the inputs
    samples: tuple[SampleOrigin, ...]
    links: c.Some[Link]
    noisy_layers: tuple[NoisyLayer, ...]  #: the layers whose own quantisation adds most noise, worst first
    line: c.Text  #: the chain in words
    min_sqnr_db: c.Number | None = None  #: what --min-sqnr demanded of the quantised model


class EvaluationData(Part):
    file: c.Text
    sha256: c.Sha256
    samples: c.PositiveCount
    labels: tuple[c.Count, ...]  #: outputs that have labels
    expected: bool  #: the file holds expected outputs
    calibration_overlap: c.Count | None = None  #: samples that the model was calibrated with


class Execution(Part):
    name: ExecutionName
    by: c.Text


class MissingExecution(Part):
    name: ExecutionName
    reason: c.Text


class Quantisation(Part):
    dtype: c.Dtype
    scale: c.PositiveAmount
    zero_point: int


class Output(c.Tensor):
    quantisation: Quantisation | None = None  #: value = (stored - zero_point) * scale


class Top1(Part):
    share: c.Share  #: right / total
    right: c.Count  #: times that the candidate's largest score is the class of the reference
    total: c.PositiveCount
    ties: c.Count  #: times that the candidate's largest score is not the only one; the lowest index counts


class LsbCount(Part):
    difference: Annotated[int, Meta(ge=-16, le=16)]
    elements: c.PositiveCount


class LsbHistogram(Part):
    below: c.Count  #: elements that differ by less than -16 steps
    counts: tuple[LsbCount, ...]
    above: c.Count  #: elements that differ by more than 16 steps


class Pair(Part):
    """Reference r and candidate c at one output, over all samples; what is not known is listed in `unavailable`."""

    reference: Reference
    candidate: ExecutionName
    output: c.Count
    top1: Top1 | None = None
    elements: c.Count | None = None
    equal: c.Count | None = None  #: elements of the same value
    sqnr_db: c.Number | None = None  #: 10 log10(sum r^2 / sum (c - r)^2)
    cosine: c.Cosine | None = None
    max_abs_error: c.Amount | None = None  #: max |c - r|, in the output's unit
    max_abs_error_sample: c.Count | None = None  #: the first sample that has it
    #: round((c - r) / scale of the output) and how many elements have it
    lsb_histogram: LsbHistogram | None = None

    together: ClassVar[dict[str, Any]] = {
        "dependentRequired": {
            "max_abs_error": ["max_abs_error_sample"],
            "max_abs_error_sample": ["max_abs_error"],
        }
    }

    def __post_init__(self) -> None:
        both = (self.max_abs_error is None) == (self.max_abs_error_sample is None)
        require(both, "the largest error is given without its sample, or the sample without it")


class Accuracy(Part):
    data: EvaluationData
    executions: c.Some[Execution]
    missing: tuple[MissingExecution, ...]
    outputs: c.Some[Output]
    pairs: c.Some[Pair]
    verdict: c.Verdict | None = None  #: absent without thresholds


class Files(Part):
    pte: c.Text
    io: c.Text
    log: c.Text
    etrecord: c.Text | None = None  #: ExecuTorch's record of the lowering; absent when none was asked for


class Fed(Part):
    feeds: c.Some[c.Text]  #: as `run --feed` takes them
    steps: c.PositiveCount  #: how many steps were executed in PyTorch
    #: the inputs of the first step and the outputs of all; absent for a program with quantised inputs and
    #: outputs
    file: c.Text | None = None


class Method(Part):
    name: c.Text
    io: c.Text  #: the file with the method's example inputs and outputs
    calibration: Calibration
    inputs: tuple[c.Tensor, ...]
    outputs: tuple[c.Tensor, ...]
    #: buffers that the program keeps from one inference to the next; absent when it keeps none
    state: c.Some[State] | None = None
    rewrites: tuple[Rewrite, ...] = ()  #: made for speed, in the order of the table of rewrites
    #: done for accuracy where the calibration samples show that it helps
    refinements: tuple[Refinement, ...] = ()
    layout_changes: LayoutChanges | None = None
    cpu_operators: tuple[CpuOperator, ...]  #: operators that stay on the CPU, calls in one inference
    delegates: tuple[Delegate, ...]
    #: nodes of the lowered graph by operator, as ExecuTorch counts them
    delegation: tuple[c.Delegation, ...] | None = None
    check: Check
    chain: Chain | None = None


class Compilation(Derived[Status], tag_field="schema", tag="compile-result/1"):
    """What `ethosu-sdk compile` did."""

    compile_key: c.Sha256  #: SHA-256 over everything that shapes the result: same key, same .pte
    source: c.Text  #: MODEL as given
    model: c.Model
    target: c.Target | None = None
    #: the processor that the program is compiled for, where that is a target without an NPU
    core: Literal["cortex-m55", "cortex-m85"] | None = None
    system: c.System | None = None  #: that the program is compiled for
    #: the board profile (`--system`) whose Vela configuration the program was compiled with
    board_profile: BoardProfile | None = None
    options: Options
    calibration: Calibration
    prequantized: bool  #: the model was quantised before it was given, and taken as it was
    inputs: tuple[c.Tensor, ...]
    outputs: tuple[c.Tensor, ...]
    #: buffers that the program keeps from one inference to the next; absent when it keeps none
    state: c.Some[State] | None = None
    rewrites: tuple[Rewrite, ...] = ()  #: made for speed, in the order of the table of rewrites
    #: done for accuracy where the calibration samples show that it helps
    refinements: tuple[Refinement, ...] = ()
    #: calls on the CPU that change the order of an image's axes between NCHW and NHWC, in one inference
    layout_changes: LayoutChanges | None = None
    cpu_operators: tuple[CpuOperator, ...]  #: operators that stay on the CPU, calls in one inference
    delegates: tuple[Delegate, ...]
    #: the program, executed once on the host simulator on its example inputs, against the eager run of the
    #: model that it was lowered from
    check: Check
    chain: Chain | None = None
    accuracy: Accuracy | None = None  #: absent when nothing was evaluated
    files: Files
    warnings: tuple[c.Text, ...]
    unavailable: c.UnavailableMembers
    check_time_s: c.Amount | None = None  #: what the check took, of wall_time_s
    wall_time_s: c.Amount
    host: c.Host
    #: nodes of the lowered graph by operator, as ExecuTorch counts them
    delegation: tuple[c.Delegation, ...] | None = None
    sequence: Fed | None = None  #: the feeds that the model's file declares; absent when it declares none
    #: methods of the program after the first; what stands beside this member is of the first, whose name is
    #: model.entry. Absent for a program with one method
    other_methods: c.Some[Method] | None = None

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


def system_is_that_of_the_target(record: Compilation) -> Iterator[str]:
    """The system is whole and bears the names of the target."""
    if record.system is not None:
        yield from rules.system_problems(record.system, record.target)


def has_one_target(record: Compilation) -> Iterator[str]:
    """A program is for an NPU or for a processor."""
    if (record.target is None) == (record.core is None):
        yield "a program is for a target or for a core, and for one of them alone"


def status_follows_accuracy(record: Compilation) -> Iterator[str]:
    """A missed threshold fails the compilation, and so does a check that failed."""
    verdict = record.accuracy.verdict if record.accuracy is not None else None
    missed = verdict is not None and any(row.status == "fail" for row in verdict.checks)
    expected = "fail" if missed else "pass"
    if verdict is not None and verdict.status != expected:
        yield f"the thresholds say '{expected}', the record says '{verdict.status}'"
        return
    if any(check.status == "fail" for check in record.checks):
        expected = "fail"
    yield from rules.wrong_status(record, expected, "check and thresholds say")


def check_follows_its_figures(record: Compilation) -> Iterator[str]:
    """An output passes when no figure exceeds its limit, and the check when all outputs do."""
    for check in record.checks:
        if check.outputs is None:
            continue
        for number, row in enumerate(check.outputs):
            figures = [part for part in (row.rms, row.largest, row.differing) if part is not None]
            beyond = row.not_finite > 0 or any(part.executed > part.limit for part in figures)
            if row.index != number or row.status != ("fail" if beyond else "pass"):
                yield f"output {number} of the check has figures that do not go with '{row.status}'"
        failed = any(row.status == "fail" for row in check.outputs)
        failed |= check.dialect is not None and check.dialect.equal != check.dialect.elements
        if check.status != ("fail" if failed else "pass"):
            yield f"the check's outputs say otherwise than '{check.status}'"


def figures_are_known_or_explained(record: Compilation) -> Iterator[str]:
    """Each pair has every figure, or the reason why it has not. Labels have a top-1 alone."""
    explained = {row.path for row in record.unavailable}
    for number, row in enumerate(record.accuracy.pairs if record.accuracy is not None else ()):
        for name in ("top1",) if row.reference == "labels" else ("top1", *_DISTANCES):
            if getattr(row, name) is None and f"/accuracy/pairs/{number}/{name}" not in explained:
                yield f"pair {number} has neither {name} nor a reason"
        if row.reference == row.candidate:
            yield f"pair {number} compares '{row.reference}' with itself"


KIND = RecordKind(
    Compilation,
    (
        *(rules.unavailable_is_absent, rules.files_stay_in_the_folder, has_one_target),
        *(system_is_that_of_the_target, status_follows_accuracy, check_follows_its_figures),
        figures_are_known_or_explained,
    ),
    file="*.compile.json",
    role="record of the compilation",
)
