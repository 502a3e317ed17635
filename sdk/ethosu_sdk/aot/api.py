"""What a compilation is asked, and what it tells: frozen data that also crosses the process boundary as
JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ethosu_sdk.aot.check.facts import CheckFacts, StartFacts
from ethosu_sdk.aot.evaluation.facts import EvaluationFacts, EvaluationRequest
from ethosu_sdk.aot.model.source_line import SourceLine
from ethosu_sdk.targets import Target

QUANTIZE_CHOICES = ("int8", "int16", "none")
QUANTIZE_PER_CHOICES = ("channel", "tensor")
IO_CHOICES = ("float", "int8")
STAGES = ("import", "model", "export", "calibrate", "quantize", "evaluate", "lower", "check", "write")

DEFAULT_TIMEOUT_S = 3600.0


@dataclass(frozen=True)
class CompileRequest:
    """One compilation.

    `model` is ``zoo:NAME``, ``FILE.py[:NAME]`` or ``FILE.pt2`` (:mod:`ethosu_sdk.aot.model.spec`).
    `quantize` is one of QUANTIZE_CHOICES; None takes the model's own choice (the zoo's; ``none`` for a program
    that is quantised already), else ``int8``. `quantize_per` is one of QUANTIZE_PER_CHOICES: whether weights get
    a scale for each output channel or one for the whole tensor.
    `io` is the type of a quantised program's inputs and outputs. `delegate` False keeps every operator on the
    CPU. `inputs` is an `.npz` with the example inputs ``input0``…; each file of `calibration` holds
    ``input0``… with samples stacked on a leading axis. `vela_config` is a Vela configuration file to take in
    place of Vela's own; `vela_flags` are added to Vela's command line. `evaluation` asks for eager outputs too,
    `check_folder`, which exists, for what :class:`CheckFacts` describes; with `locate`, the folder holds what the
    delegates were given (:mod:`ethosu_sdk.aot.check.fault`), and the first wrong operation is looked for. With
    `trust` a ``.pt2`` is loaded although that could run code (:mod:`ethosu_sdk.aot.saved_program`).
    """

    model: str
    target: Target
    out_dir: Path
    quantize: str | None = None
    io: str = "float"
    delegate: bool = True
    inputs: Path | None = None
    calibration: tuple[Path, ...] = ()
    timeout_s: float = DEFAULT_TIMEOUT_S
    quantize_per: str = "channel"
    vela_config: Path | None = None
    vela_flags: tuple[str, ...] = ()
    evaluation: EvaluationRequest | None = None
    check_folder: Path | None = None
    locate: bool = False
    trust: bool = False

    def to_json(self) -> dict[str, Any]:
        """The request as JSON values; :meth:`from_json` is the way back."""
        return {
            **asdict(self),
            "out_dir": str(self.out_dir),
            "inputs": None if self.inputs is None else str(self.inputs),
            "calibration": [str(path) for path in self.calibration],
            "vela_config": None if self.vela_config is None else str(self.vela_config),
            "evaluation": None if self.evaluation is None else self.evaluation.to_json(),
            "check_folder": None if self.check_folder is None else str(self.check_folder),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> CompileRequest:
        """The request that :meth:`to_json` wrote."""
        return cls(
            **{
                **data,
                "target": Target(**data["target"]),
                "out_dir": Path(data["out_dir"]),
                "inputs": None if data["inputs"] is None else Path(data["inputs"]),
                "calibration": tuple(Path(path) for path in data["calibration"]),
                "vela_config": None if data["vela_config"] is None else Path(data["vela_config"]),
                "vela_flags": tuple(data["vela_flags"]),
                "evaluation": None
                if data["evaluation"] is None
                else EvaluationRequest.from_json(data["evaluation"]),
                "check_folder": None if data["check_folder"] is None else Path(data["check_folder"]),
            }
        )


@dataclass(frozen=True)
class TensorFacts:
    """One input or output of the program: NumPy dtype name, logical shape, and dim_order (the axes from the
    outermost in memory to the innermost; ``0, 2, 3, 1`` is channels_last)."""

    dtype: str
    shape: tuple[int, ...]
    dim_order: tuple[int, ...]


@dataclass(frozen=True)
class CallSite:
    """Calls of one operator on the CPU that share a reason (why the NPU does not do it) and a place."""

    calls: int
    reason: str
    source: SourceLine | None


@dataclass(frozen=True)
class OperatorCount:
    """How often one operator is called on the CPU in one inference. `boundary` says that all it does is to
    convert between the model's float values and quantised ones."""

    name: str
    calls: int
    boundary: bool = False
    sites: tuple[CallSite, ...] = ()


@dataclass(frozen=True)
class DelegationCount:
    """How many of the lowered graph's nodes of one operator are in delegates, and how many are not."""

    operator: str
    delegated: int
    not_delegated: int


@dataclass(frozen=True)
class OperationFacts:
    """One operation that Vela scheduled, and where it comes from.

    `offsets` are those of its NPU operations in the command stream, in bytes from behind the header of the driver
    actions. `cycles`, `macs` and `staging_bytes` (what is alive in the arena meanwhile) are Vela's estimates.
    `tosa_index`, `tosa_operator` and `tosa_tensor` name an operator of the delegate's TOSA graph and its first
    output; they are None when Vela added the operation.
    """

    operator: str
    name: str
    offsets: tuple[int, ...]
    cycles: int | None
    macs: int | None
    staging_bytes: int | None
    tosa_index: int | None
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
    tosa_sha256: str
    summary_file: str
    per_layer_file: str
    debug_file: str
    scratch_bytes: int
    scratch_fast_bytes: int
    estimates: dict[str, float]
    operations: tuple[OperationFacts, ...] = ()


@dataclass(frozen=True)
class CompileOutput:
    """Everything that a compilation produced: files (absolute paths) and facts.

    `calibration_source` is ``none``, ``file``, ``model``, ``zoo`` or ``example``; `cpu_operators` are those of
    ``forward`` in order of first call; `timings_s` maps a stage of STAGES to seconds. `warnings` are whole
    sentences. `prequantized` says that the model came quantised, and `quantize` is then ``none``; `own_quantizer`
    is ``function`` or ``instance`` when its file defines the quantiser; with an instance `quantize` means
    nothing. `evaluation` and `check` are there when they were asked for.
    """

    name: str
    pte: Path
    pte_sha256: str
    pte_bytes: int
    io: Path
    log: Path
    model_source: str
    model_sha256: str
    target: Target
    quantize: str
    io_type: str
    calibration_source: str
    calibration_samples: int
    methods: tuple[str, ...]
    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]
    cpu_operators: tuple[OperatorCount, ...]
    delegates: tuple[DelegateFacts, ...]
    versions: dict[str, str]
    timings_s: dict[str, float]
    warnings: tuple[str, ...] = field(default=())
    prequantized: bool = False
    own_quantizer: str | None = None
    evaluation: EvaluationFacts | None = None
    check: CheckFacts | None = None
    start: StartFacts | None = None
    delegation: tuple[DelegationCount, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The output as JSON values; :meth:`from_json` is the way back."""
        return {**asdict(self), "pte": str(self.pte), "io": str(self.io), "log": str(self.log)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> CompileOutput:
        """The output that :meth:`to_json` wrote."""
        return cls(
            **{
                **data,
                "pte": Path(data["pte"]),
                "io": Path(data["io"]),
                "log": Path(data["log"]),
                "target": Target(**data["target"]),
                "methods": tuple(data["methods"]),
                "inputs": _tensors(data["inputs"]),
                "outputs": _tensors(data["outputs"]),
                "cpu_operators": tuple(_operator(row) for row in data["cpu_operators"]),
                "delegates": tuple(_delegate(row) for row in data["delegates"]),
                "warnings": tuple(data["warnings"]),
                "delegation": tuple(DelegationCount(**row) for row in data["delegation"]),
                "evaluation": None
                if data["evaluation"] is None
                else EvaluationFacts.from_json(data["evaluation"]),
                "check": None if data["check"] is None else CheckFacts.from_json(data["check"]),
                "start": None if data["start"] is None else StartFacts.from_json(data["start"]),
            }
        )


def _tensors(rows: list[dict[str, Any]]) -> tuple[TensorFacts, ...]:
    return tuple(TensorFacts(row["dtype"], tuple(row["shape"]), tuple(row["dim_order"])) for row in rows)


def _source(row: dict[str, Any] | None) -> SourceLine | None:
    return None if row is None else SourceLine(**row)


def _operator(row: dict[str, Any]) -> OperatorCount:
    sites = tuple(CallSite(**{**site, "source": _source(site["source"])}) for site in row["sites"])
    return OperatorCount(**{**row, "sites": sites})


def _delegate(row: dict[str, Any]) -> DelegateFacts:
    operations = tuple(
        OperationFacts(**{**part, "offsets": tuple(part["offsets"]), "source": _source(part["source"])})
        for part in row["operations"]
    )
    return DelegateFacts(**{**row, "operations": operations})
