"""The request and the result of a compilation: frozen data, passed between processes as JSON."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import Any

from ethosu_sdk.aot.facts.chain import ChainFacts
from ethosu_sdk.aot.facts.check import CheckFacts, StartFacts
from ethosu_sdk.aot.facts.evaluation import EvaluationFacts, EvaluationRequest
from ethosu_sdk.aot.facts.layers import LayerRequest
from ethosu_sdk.aot.facts.scheduled_operation import ScheduledOperation
from ethosu_sdk.aot.facts.source_line import SourceLine
from ethosu_sdk.program_options import ProgramOptions
from ethosu_sdk.targets import AnyTarget, Target, cores

STAGES = (
    "import",
    "model",
    "export",
    "compare",
    "calibrate",
    "quantize",
    "evaluate",
    "lower",
    "check",
    "write",
)

DEFAULT_TIMEOUT_S = 3600.0


@dataclass(frozen=True)
class CompileRequest:
    """One compilation.

    Its target is an NPU, or `core`, a processor without one such as ``cortex-m55``; the other is None.
    `model` is ``zoo:NAME``, ``FILE.py[:NAME]`` or ``FILE.pt2`` (:mod:`ethosu_sdk.aot.model.spec`).
    `options` may be those of the command, with more than is acted on here. `evaluation` asks for eager outputs too,
    `check_folder`, which exists, for what :class:`CheckFacts` describes; with `locate`, the folder holds what the
    delegates were given (:mod:`ethosu_sdk.aot.comparison.check.fault`), and the first wrong operation is looked for.
    `layers` asks for the values of all layers in PyTorch. `without_vela` ends with the delegates' TOSA graphs
    (:mod:`ethosu_sdk.aot.sharing.lowered_program`). `lines` of Python change the model once its file was executed.
    """

    model: str
    target: Target | None
    out_dir: Path
    _: KW_ONLY
    core: str | None = None
    options: ProgramOptions = field(default_factory=ProgramOptions)
    timeout_s: float = DEFAULT_TIMEOUT_S
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


@dataclass(frozen=True)
class StateFacts:
    """A buffer that the program keeps from one inference to the next: its name in the model, NumPy dtype name, shape,
    size, and where it lies: in which planned `arena` of the program, from 0, at what `offset` in bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    arena: int
    offset: int


@dataclass(frozen=True)
class CallSite:
    """Calls of one operator on the CPU that share a reason (why the NPU does not do it) and a place; `portable` says
    why it is no operator of the Cortex-M backend, where that was asked for, and `cortex_m` which one it could be,
    where it was not."""

    calls: int
    reason: str
    source: SourceLine | None
    portable: str | None = None
    cortex_m: str | None = None


@dataclass(frozen=True)
class OperatorCount:
    """How often one operator is called on the CPU in one inference. `boundary` says that all it does is to
    convert between the model's float values and quantised ones."""

    name: str
    calls: int
    boundary: bool = False
    sites: tuple[CallSite, ...] = ()


@dataclass(frozen=True)
class LayoutFacts:
    """How often the CPU changes the order of an image's axes between NCHW and NHWC in one inference, and how many
    bytes it writes."""

    changes: int
    nbytes: int


@dataclass(frozen=True)
class DelegationCount:
    """How many of the lowered graph's nodes of one operator are in delegates, and how many are not."""

    operator: str
    delegated: int
    not_delegated: int


@dataclass(frozen=True)
class OperationFacts(ScheduledOperation):
    """One operation that Vela scheduled, and where it comes from.

    `tosa_operator` and `tosa_tensor` name the operator of the delegate's TOSA graph and its first output; with
    `tosa_index`, they are None when Vela added the operation.
    """

    tosa_operator: str | None
    tosa_tensor: str | None
    source: SourceLine | None


@dataclass(frozen=True)
class DelegateFacts:
    """One delegate, at its index in the `.pte`.

    `payload_sha256` and `payload_bytes` are of the Vela block chain as stored; `tosa_file` is the TOSA
    flatbuffer that it was made from; the other files are Vela's (`summary_file`, `per_layer_file` CSV,
    `debug_file` XML). `scratch_bytes` is the tensor arena; `scratch_fast_bytes` the staging buffer that
    Dedicated_Sram memory modes need beside it (0 when none). `estimates` are the numbers of Vela's summary
    CSV, under Vela's own column names and units (`*_memory_used` in KiB, `inference_time` in s). `operations`
    are in the order of the command stream.
    """

    index: int
    payload_sha256: str
    payload_bytes: int
    tosa_file: str
    summary_file: str
    per_layer_file: str
    debug_file: str
    scratch_bytes: int
    scratch_fast_bytes: int
    estimates: dict[str, float]
    operations: tuple[OperationFacts, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _OfMethod:
    """What differs from method to method. `calibration_source` is ``none``, ``file``, ``model``, ``zoo`` or
    ``example``; `cpu_operators` are in order of first call; `check` and `chain` are there if they were asked for."""

    io: Path
    calibration_source: str
    calibration_samples: int
    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]
    cpu_operators: tuple[OperatorCount, ...]
    delegates: tuple[DelegateFacts, ...]
    check: CheckFacts | None = None
    start: StartFacts | None = None
    delegation: tuple[DelegationCount, ...] = ()
    chain: ChainFacts | None = None
    state: tuple[StateFacts, ...] = ()
    layout: LayoutFacts = field(default=LayoutFacts(0, 0))

    def of_method(self) -> dict[str, Any]:
        """Them by name."""
        return {row.name: getattr(self, row.name) for row in fields(_OfMethod)}


@dataclass(frozen=True, kw_only=True)
class MethodFacts(_OfMethod):
    """A method of a program."""

    name: str


@dataclass(frozen=True)
class FedFacts:
    """The feeds that a model's file declares, how many steps of them were executed in PyTorch, and the file with the
    outputs of these; empty: there is none."""

    feeds: tuple[str, ...]
    steps: int
    file: str


@dataclass(frozen=True, kw_only=True)
class CompileOutput(_OfMethod):
    """Everything that a compilation produced: files (absolute paths) and facts.

    What differs from method to method is of the first, whose name is `entry`; the others are `other_methods`.
    `timings_s` maps a stage of STAGES to seconds. `warnings` are whole sentences. `prequantized` says that the model
    came quantised, and `quantize` is then ``none``; `own_quantizer` is ``function`` or ``instance`` when its file
    defines the quantiser; with an instance `quantize` means nothing. `evaluation` and `etrecord`, the name of a file,
    are there when they were asked for.
    """

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
    warnings: tuple[str, ...] = field(default=())
    prequantized: bool = False
    own_quantizer: str | None = None
    evaluation: EvaluationFacts | None = None
    etrecord: str | None = None
    core: str | None = None
    fed: FedFacts | None = None
    entry: str = "forward"
    other_methods: tuple[MethodFacts, ...] = ()

    @property
    def all_methods(self) -> tuple[MethodFacts, ...]:
        """Every method, the first too."""
        return (MethodFacts(name=self.entry, **self.of_method()), *self.other_methods)
