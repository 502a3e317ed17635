"""The request of a compilation and the facts of its stages: frozen data that crosses between processes as JSON. Where
a fact stands in the record as it is, it is a part of the record (:mod:`ethosu_sdk.records.compile`)."""

from __future__ import annotations

import json
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from ethosu_sdk.base.targets import AnyTarget, Target, cores
from ethosu_sdk.compile.model_reads import Reads
from ethosu_sdk.compile.program_options import ProgramOptions
from ethosu_sdk.program.execution_plan import ENTRY
from ethosu_sdk.records import compile as record_parts
from ethosu_sdk.records.common import Delegation, SourceLine

_Facts = TypeVar("_Facts")


def to_json(value: Any) -> str:
    """The JSON of `value`, in which dataclasses and paths may stand; :func:`from_json` is the way back."""
    return json.dumps(msgspec.to_builtins(value, enc_hook=_plain))


def _plain(value: Any) -> Any:
    """A path, or a number or text of a class of its own, as msgspec takes it."""
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{value!r} has no form in JSON")


def from_json(kind: type[_Facts], value: Any) -> _Facts:
    """The dataclass `kind` from its JSON values."""
    return msgspec.convert(value, kind, dec_hook=lambda part, text: part(text))


# Evaluation.

FLOAT, QUANTISED = "float", "quantised"  # the executions in PyTorch


@dataclass(frozen=True)
class EvaluationRequest:
    """Evaluate the model on the samples of `data` (:mod:`ethosu_sdk.compile.evaluation_data`). Into the existing
    `folder` go arrays with samples on a leading axis, each in a ``.npy`` file: ``inputN`` (the program's inputs, in
    its own types), ``floatN`` and ``quantisedN`` (the outputs in PyTorch, before and after quantisation),
    ``expectedN``, and ``labelN`` (int64 [samples, B])."""

    data: Path
    folder: Path


@dataclass(frozen=True)
class Quantisation:
    """value = (stored - zero_point) * scale; `dtype` is of what is stored."""

    scale: float
    zero_point: int
    dtype: str


@dataclass(frozen=True)
class EvaluatedOutput:
    """One output: shape and dtype in PyTorch; `classes` (B, C) when it can be one of class scores; how the program
    quantises it, or the reason why that is not known."""

    shape: tuple[int, ...]
    dtype: str
    classes: tuple[int, int] | None
    quantisation: Quantisation | None
    reason: str


@dataclass(frozen=True)
class EvaluationFacts:
    """What :class:`EvaluationRequest`'s folder holds. `missing` says of an execution in PyTorch that does not exist
    why. `labels` are the outputs that have them. `calibration_overlap` counts samples that the model was calibrated
    with, None when that is not known."""

    samples: int
    missing: dict[str, str]
    outputs: tuple[EvaluatedOutput, ...]
    labels: tuple[int, ...]
    expected: bool
    calibration_overlap: int | None


# The check.


@dataclass(frozen=True)
class CheckedOutput:
    """One output: dtype in PyTorch; how the program quantises it (None: not with one fixed scale). `exact` says that
    only integers lead to it, so that nothing is rounded on the way."""

    dtype: str
    quantisation: Quantisation | None
    exact: bool


@dataclass(frozen=True)
class ReadingFacts:
    """An interpreter of others that ran the user's file; the operator that was computed with another `rounding` than
    its own, in words; the `reason` why it has no outputs."""

    interpreter: str
    rounding: str = ""
    reason: str = ""


@dataclass(frozen=True)
class CheckFacts:
    """What a method's folder (:func:`method_folder`) holds, for `samples` in a row.

    Its arrays have the names of :func:`sample_array`: ``input``, in the program's own types; ``reference``, the
    outputs in PyTorch of the program that was lowered; ``trialT_``, those with every value rounded another way
    (:mod:`ethosu_sdk.compile.check_references`). The first sample, the example inputs, has all `trials`.

    `stateful` says that the model changes tensors of its own in an inference; then all samples have all trials. With
    `ties_up` there are ``ties_upN.npy`` too: the outputs with the NPU's rounding
    (:mod:`ethosu_sdk.compile.npu_rounding`). With `dialect` there is ``dialect`` for every sample: the outputs of
    the lowered program by the references in Python that ExecuTorch registers beside its ``cortex_m::`` operators.

    With `readings` there are no references and no trials, but ``readingR_`` for every sample and reading that has no
    reason: the outputs of the user's file by interpreters of others, one of which the program is to equal bit by bit
    (:mod:`ethosu_sdk.compile.tflite.reference`).
    """

    outputs: tuple[CheckedOutput, ...]
    trials: int
    stateful: bool
    ties_up: bool = False
    samples: int = 1
    dialect: bool = False
    readings: tuple[ReadingFacts, ...] = ()


def method_folder(folder: Path, method: str) -> Path:
    """The part of the check's `folder` that is a method's: all of it for ``forward``."""
    return folder if method == ENTRY else folder / f"method-{method}"


def sample_array(kind: str, sample: int, index: int) -> str:
    """The file of an input or output of a sample in the check's folder."""
    return f"sample{sample}-{kind}{index}.npy"


def delegate_array(payload_sha256: str, kind: str, index: int) -> str:
    """The file of a delegate's call: `kind` is ``input`` or ``output``, `index` in the payload's order."""
    return f"{payload_sha256[:16]}-{kind}{index}.npy"


# The chain of comparisons.

CONVERTED_LINK: Final = "converted"
GRAPH_LINK: Final = "graph"
PREPARED_LINK: Final = "prepared"
QUANTISED_LINK: Final = "quantised"
EQUAL: Final = "equal"
ROUNDING: Final = "float-rounding"  # equal but for the order of sums
EXPLAINED: Final = "explained"  # by the steps of quantisation


@dataclass(frozen=True)
class ChainFacts:
    """The links that held, where each sample came from, and the noisiest layers of a quantised model. `start` says
    what the first link compares with, where that is no model in PyTorch."""

    samples: tuple[record_parts.SampleOrigin, ...]
    links: tuple[record_parts.Link, ...]
    noisy: tuple[record_parts.NoisyLayer, ...]
    start: str = ""


# The layers of a model.

LAYERS_FILE = "layers.json"


@dataclass(frozen=True)
class LayerRequest:
    """Execute the model in PyTorch on `inputs` (an ``.npz`` with ``input0`` …; None: the example inputs) and keep the
    values of its layers. Into the existing `folder` go ``inputN.npy``, and for value N ``quantisedN.npy`` (as stored)
    and, where it is known, ``floatN.npy``; and LAYERS_FILE, a :class:`LayerFacts`."""

    folder: Path
    inputs: Path | None = None


@dataclass(frozen=True)
class SharedScale:
    """Has to have the scale of value number `value`, which is wider, because of the operator `through`."""

    value: int
    through: str


@dataclass(frozen=True)
class WeightLoss:
    """What quantisation costs an operator's weights: their SQNR in dB, None where it costs nothing."""

    elements: int
    sqnr_db: float | None


@dataclass(frozen=True)
class LayerValue:
    """A quantised value of the model in PyTorch: the node that is quantised and its operator, value = (stored -
    zero_point) * scale, and whether the value before quantisation is known too. `operands` number the values that it
    is computed from; `weights` are those of its operator."""

    node: str
    operator: str
    scale: float
    zero_point: int
    dtype: str
    has_float: bool
    source: SourceLine | None
    operands: tuple[int, ...] = ()
    shared: SharedScale | None = None
    weights: WeightLoss | None = None


@dataclass(frozen=True)
class TensorOrigin:
    """Where a tensor of a TOSA graph comes from: its node of the lowered program, which of `values` it can hold (with
    several, data decide), or the `reason` why none. It is `certain` where the node computes a single value that is
    quantised in its own form."""

    node: str | None
    values: tuple[int, ...]
    reason: str
    certain: bool = False


@dataclass(frozen=True)
class LayerFacts:
    """The values in the order of execution, and the origins of each delegate's tensors, by SHA-256 of its payload and
    by name. `missing` says of an execution in PyTorch that does not exist why. With `ties_up`, quantised values are
    rounded as on the NPU. `outputs` number the values that the model gives; None for one that is none of them."""

    values: tuple[LayerValue, ...]
    tensors: dict[str, dict[str, TensorOrigin]]
    missing: dict[str, str]
    ties_up: bool
    outputs: tuple[int | None, ...]

    def write(self, folder: Path) -> None:
        """Leave the facts in `folder`."""
        (folder / LAYERS_FILE).write_text(to_json(self), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> LayerFacts:
        """The facts that :meth:`write` left."""
        return from_json(cls, json.loads((folder / LAYERS_FILE).read_text(encoding="utf-8")))


# The compilation.

STAGES = (
    *("import", "model", "export", "compare", "calibrate"),
    *("quantize", "evaluate", "lower", "check", "write"),
)


@dataclass(frozen=True)
class CompileRequest:
    """One compilation. Its target is an NPU, or `core`, a processor without one such as ``cortex-m55``; the other is
    None. `model` is ``zoo:NAME`` or the file of a front end (:mod:`ethosu_sdk.compile.front_ends.model_spec`).
    `options` may be those of the command, with more than is acted on here. `evaluation` asks for eager outputs too,
    `check_folder`, which exists, for what :class:`CheckFacts` describes; with `locate`, the folder holds what the
    delegates were given (:mod:`ethosu_sdk.compile.fault_finding`), and the first wrong operation is looked for.
    `layers` asks for the values of all layers in PyTorch. `without_vela` ends with the delegates' TOSA graphs
    (:mod:`ethosu_sdk.compile.shared_lowering`). `lines` of Python change the model once its file was executed."""

    model: str
    target: Target | None
    out_dir: Path
    _: KW_ONLY
    core: str | None = None
    options: ProgramOptions = field(default_factory=ProgramOptions)
    timeout_s: float = 3600.0
    evaluation: EvaluationRequest | None = None
    check_folder: Path | None = None
    locate: bool = False
    layers: LayerRequest | None = None
    without_vela: bool = False
    lines: tuple[str, ...] = ()

    @property
    def goal(self) -> AnyTarget:
        """What the program is for: the NPU, or the processor."""
        return self.target if self.target is not None else cores()[self.core or ""]


@dataclass(frozen=True)
class TensorFacts:
    """One input or output of the program: NumPy dtype name, logical shape, and dim_order (the axes from the
    outermost in memory to the innermost; ``0, 2, 3, 1`` is channels_last)."""

    dtype: str
    shape: tuple[int, ...]
    dim_order: tuple[int, ...]
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class _OfMethod:
    """What differs from method to method. `calibration_source` is ``none``, ``file``, ``model``, ``zoo`` or
    ``example``; `cpu_operators` are in order of first call; `check` and `chain` are there if they were asked for."""

    io: Path
    calibration_source: str
    calibration_samples: int
    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]
    cpu_operators: tuple[record_parts.CpuOperator, ...]
    delegates: tuple[record_parts.Delegate, ...]
    check: CheckFacts | None = None
    start: record_parts.Start | None = None
    delegation: tuple[Delegation, ...] = ()
    chain: ChainFacts | None = None
    state: tuple[record_parts.State, ...] = ()
    layout: record_parts.LayoutChanges = field(default=record_parts.LayoutChanges(calls=0, bytes=0))
    rewrites: tuple[record_parts.Rewrite, ...] = ()
    refinements: tuple[record_parts.Refinement, ...] = ()

    def of_method(self) -> dict[str, Any]:
        return {row.name: getattr(self, row.name) for row in fields(_OfMethod)}


@dataclass(frozen=True, kw_only=True)
class MethodFacts(_OfMethod):
    name: str


@dataclass(frozen=True, kw_only=True)
class CompileOutput(_OfMethod):
    """Everything that a compilation produced: files (absolute paths) and facts. What differs from method to method is
    of the first, whose name is `entry`; the others are `other_methods`. `timings_s` maps a stage of STAGES to
    seconds. `warnings` are whole sentences. `prequantized` says that the model came quantised, and `quantize` is then
    ``none``; `own_quantizer` is ``function`` or ``instance`` when its file defines the quantiser; with an instance
    `quantize` means nothing. `evaluation` and `etrecord`, the name of a file, are there when they were asked for, and
    `reads` if a model's file was executed."""

    name: str
    pte: Path
    pte_sha256: str
    pte_bytes: int
    log: Path
    model_source: str
    model_sha256: str
    target: Target | None
    quantize: str
    io_type: str
    methods: tuple[str, ...]
    versions: dict[str, str]
    timings_s: dict[str, float]
    warnings: tuple[str, ...] = ()
    prequantized: bool = False
    own_quantizer: str | None = None
    evaluation: EvaluationFacts | None = None
    etrecord: str | None = None
    core: str | None = None
    fed: record_parts.Fed | None = None
    entry: str = "forward"
    other_methods: tuple[MethodFacts, ...] = ()
    reads: Reads | None = None

    @property
    def all_methods(self) -> tuple[MethodFacts, ...]:
        """Every method, the first too."""
        return (MethodFacts(name=self.entry, **self.of_method()), *self.other_methods)
