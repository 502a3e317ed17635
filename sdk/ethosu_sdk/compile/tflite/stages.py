"""Compiles a `.tflite`: Vela for what the NPU does, Cortex-M kernels for what it leaves, one `.pte` for both. Neither
torch nor ExecuTorch is imported."""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.base import filesystem, npz
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.targets import Target
from ethosu_sdk.compile import vela_capture, vela_config, vela_database, vela_delegates
from ethosu_sdk.compile.compile_facts import (
    ChainFacts,
    CheckedOutput,
    CheckFacts,
    CompileOutput,
    CompileRequest,
    Quantisation,
    TensorFacts,
    sample_array,
)
from ethosu_sdk.compile.front_ends.model_spec import ModelSpec
from ethosu_sdk.compile.graphs import tensor_arrays
from ethosu_sdk.compile.pipeline import StageClock
from ethosu_sdk.compile.program_options import CORTEX_M, ProgramOptions
from ethosu_sdk.compile.tflite import kernels, reference, vela
from ethosu_sdk.compile.tflite.reference import Reading
from ethosu_sdk.compile.tflite.vela import VelaOutput
from ethosu_sdk.program import vela_tflite
from ethosu_sdk.program.pte_builder import ProgramBuilder
from ethosu_sdk.program.tflite import NPU_OPERATOR, TfliteModel, TfliteOperator, TfliteTensor, read_tflite
from ethosu_sdk.program.vela_tflite import NpuCall
from ethosu_sdk.records.common import Delegation, Estimate, VelaOperation
from ethosu_sdk.records.compile import (
    CpuOperator,
    Delegate,
    DelegateFiles,
    Operation,
    SampleOrigin,
    Site,
    State,
)

Array = npt.NDArray[Any]

_PACKAGES = ("ethos-u-vela", "numpy")
_CONVERSIONS = ("QUANTIZE", "DEQUANTIZE")
_DAMAGED = "convert the model again"
_FLOATS = ("FLOAT32", "FLOAT16", "FLOAT64", "BFLOAT16")
_SAMPLES = 3
_SEED = 2026
_SHARED = "shared"  # where ExecuTorch's backend has the name of a data file
_ESTIMATES = (("cycles", "cycles"), ("macs", "operations"), ("staging_bytes", "bytes"))
_QUANTISE_HINT = (
    "quantise it as you convert it: converter.optimizations = [tf.lite.Optimize.DEFAULT], representative_dataset = a "
    "function that yields samples, target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8], "
    "inference_input_type = inference_output_type = tf.int8 (docs/guide/tflite.md)"
)


@dataclass(frozen=True)
class _Program:
    """The finished program: its file's content, calls of the NPU in order, operators on the CPU, and state."""

    data: bytes
    calls: tuple[NpuCall, ...]
    cpu: tuple[CpuOperator, ...]
    state: tuple[State, ...]


def run_stages(
    request: CompileRequest, spec: ModelSpec, clock: StageClock, vela_path: str = ""
) -> CompileOutput:
    """Compile, write every file into the (existing) output folder and return the facts. Raises InputError, UsageError
    or BuildError; a failed run leaves the files of an earlier one as they were. The Vela is that in `vela_path`
    (:func:`ethosu_sdk.compile.vela_versions.python_path`)."""
    assert spec.path is not None
    target = _checked_target(request)
    with clock.stage("model"):
        model = _checked_model(spec.path)
        samples = _samples(model, request.options.inputs)
    with clock.stage("lower"):
        made, program = None, _Program(b"", (), (), ())
        if not request.without_vela:
            config = vela_config.chosen_config(request.options)
            flags = vela.vela_flags(target, config, request.options.vela_flags)
            made = vela.compile_network(model, flags, config, vela_path)
            program = build_program(model, made.network, made.reasons, target, flags)
    with clock.stage("check"):
        real = {} if made is None else kernels.real_values(model, made.network)
        readings = reference.readings(spec.path, samples, real)
        check, chain = _check_facts(request, model, samples, readings)
    name = spec.name
    with clock.stage("write"), vela_delegates.published_folder(request.out_dir, f"{name}.etrecord") as folder:
        delegates = () if made is None else _write_delegates(folder, made, program.calls)
        outputs = next((row.outputs[0] for row in readings if row.outputs), ())
        npz.write_npz(folder / f"{name}.io.npz", tensor_arrays.io_arrays(samples[0], outputs))
        filesystem.write_bytes(folder / f"{name}.pte", program.data)
    warnings: tuple[str, ...] = ()
    if made is not None and not program.calls:
        warnings += ("Nothing was delegated to the NPU: every operator runs on the CPU.",)
    return CompileOutput(
        name=name,
        pte=request.out_dir / f"{name}.pte",
        pte_sha256=filesystem.sha256_bytes(program.data),
        pte_bytes=len(program.data),
        log=request.out_dir / vela_delegates.LOG_NAME,
        model_source=request.model,
        model_sha256=model.sha256,
        target=target,
        quantize="none",
        io_type="model",
        methods=("forward",),
        versions=_versions(),
        timings_s=clock.timings_s,
        warnings=warnings,
        prequantized=True,
        io=request.out_dir / f"{name}.io.npz",
        calibration_source="none",
        calibration_samples=0,
        inputs=_tensor_facts(model.main.input_tensors, model.names(model.main.inputs, of="inputs")),
        outputs=_tensor_facts(model.main.output_tensors, model.names(model.main.outputs, of="outputs")),
        cpu_operators=program.cpu,
        delegates=delegates,
        check=check,
        chain=chain,
        delegation=() if made is None else _delegation(model, made.network),
        state=program.state,
    )


def _versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        **{row: importlib.metadata.version(row) for row in _PACKAGES},
    }


def _checked_model(path: Path) -> TfliteModel:
    """The model at `path`. InputError for one that cannot be compiled."""
    model = read_tflite(path)
    _refuse_float(model)
    if model.npu_operators:
        raise InputError(
            f"{path.name} was compiled by Vela already, for one NPU",
            f"`ethosu-sdk run {path.name}` runs it; compile the original .tflite",
        )
    tensors = model.main.tensors
    empty = {
        n
        for row in model.main.operators
        for n in (*row.inputs, *row.outputs)
        if n >= 0 and not tensors[n].elements
    }
    if empty:
        raise InputError(f"tensor '{tensors[min(empty)].name}' of {path.name} has no elements", _DAMAGED)
    known = {*model.main.inputs, *(row.index for row in tensors if row.data)}
    for row in model.main.operators:
        if wrong := known & set(row.outputs):
            name = tensors[min(wrong)].name
            raise InputError(
                f"operator {row.index} ({row.name}) of {path.name} overwrites tensor '{name}'", _DAMAGED
            )
        known |= set(row.outputs)
    kept = next((row for row in model.main.tensors if row.is_variable), None)
    if kept is not None:
        raise InputError(
            f"{path.name} keeps state in the variable tensor '{kept.name}', which the SDK does not carry over",
            "keep state as a tf.Variable (converter.experimental_enable_resource_variables = True), or as an input "
            "and an output of the model (`run --feed`)",
        )
    _refuse_computed_weights(model)
    return model


def _refuse_computed_weights(model: TfliteModel) -> None:
    """InputError where the weights of a FULLY_CONNECTED come from another operator. Vela 5.1.0 gives that operator
    the shapes of an operator before it, and its results are wrong."""
    makers: dict[int, TfliteOperator] = {}
    for row in model.main.operators:
        if row.name == "FULLY_CONNECTED" and (maker := makers.get(row.inputs[1])) is not None:
            raise InputError(
                f"operator {row.index} (FULLY_CONNECTED) has weights that operator {maker.index} ({maker.name}) "
                "computes, which Vela 5.1.0 compiles wrongly",
                "write the product as BATCH_MATMUL (tf.linalg.matmul of tensors with three or more dimensions), or "
                "make the weights an input of the model",
            )
        makers |= dict.fromkeys(row.outputs, row)


def _checked_target(request: CompileRequest) -> Target:
    """UsageError for what cannot be done with a .tflite."""
    options = request.options
    for option, given in (
        ("--quantize", options.quantize not in (None, "none")),
        ("--quantize-per", options.quantize_per != ProgramOptions.quantize_per),
        ("--calibration", bool(options.calibration)),
        ("--io", options.io != ProgramOptions.io),
        ("--fallback portable", options.fallback not in (None, CORTEX_M)),
    ):
        if given:
            raise UsageError(
                f"{request.model} is quantised already, with types of its own: {option} would have no effect",
                f"leave {option} out",
            )
    for what, asked in (
        ("--no-delegate", not options.delegate),
        ("--etrecord", options.etrecord),
        ("--evaluate", request.evaluation is not None),
        ("debug", request.layers is not None),
        ("advise --try", bool(request.lines)),
    ):
        if asked:
            raise UsageError(f"{what} needs a model in PyTorch, and {request.model} is a .tflite")
    if request.target is None:
        raise UsageError(
            f"a .tflite is compiled for an NPU, and {request.core} has none",
            "--target ethos-u55-128, for example",
        )
    return request.target


def _refuse_float(model: TfliteModel) -> None:
    """InputError for a model that computes with floating-point numbers."""
    tensors = model.main.tensors
    moves = (*_CONVERSIONS, *kernels.MOVES)
    rows = [row for row in model.main.operators if row.name not in moves]
    floats = [row for row in rows if any(tensors[index].type in _FLOATS for index in row.outputs)]
    if not floats:
        return
    first = floats[0]
    name = tensors[first.outputs[0]].name
    if all(row.quantisation is None for row in tensors):
        raise InputError(f"{model.path.name} is not quantised: it computes with floats", _QUANTISE_HINT)
    raise InputError(
        f"{model.path.name} is quantised in part: {len(floats)} of {len(rows)} operators compute with floats, the "
        f"first is operator {first.index} ({first.name}, '{name}')",
        _QUANTISE_HINT,
    )


def _samples(model: TfliteModel, path: Path | None) -> list[list[Array]]:
    """Inputs in a row: the user's or a seeded one first, then seeded ones over the whole range of each type."""
    generator = np.random.default_rng(_SEED)
    rows = [[_random(model, row, generator) for row in model.main.input_tensors] for _ in range(_SAMPLES)]
    if path is not None:
        given = list(tensor_arrays.read_inputs(path))
        tensor_arrays.check_inputs(given, rows[0], path)
        rows[0] = given
    return rows


def _random(model: TfliteModel, tensor: TfliteTensor, generator: np.random.Generator) -> Array:
    if not tensor.dtype or np.dtype(tensor.dtype).kind not in "iufb":
        raise InputError(
            f"input '{tensor.name}' of {model.path.name} is {tensor.type}, which cannot be given"
        )
    kind = np.dtype(tensor.dtype)
    if kind.kind == "b":
        return generator.integers(0, 2, tensor.shape).astype(bool)
    if kind.kind == "f":
        low, high = _real_range(model, tensor)
        return generator.uniform(low, high, tensor.shape).astype(kind)
    if kind.itemsize > 2:
        return generator.integers(0, 2, tensor.shape).astype(kind)  # an index, as a rule
    limits = np.iinfo(kind)
    return generator.integers(limits.min, limits.max + 1, tensor.shape).astype(kind)


def _real_range(model: TfliteModel, tensor: TfliteTensor) -> tuple[float, float]:
    """What the quantised values stand for that an input in float becomes."""
    for row in model.main.operators:
        if row.name == "QUANTIZE" and row.inputs == (tensor.index,):
            made = model.main.tensors[row.outputs[0]]
            if made.quantisation is not None and made.dtype:
                limits, scale = np.iinfo(made.dtype), made.quantisation.scales[0]
                zero = made.quantisation.zero_points[0]
                return (limits.min - zero) * scale, (limits.max - zero) * scale
    return -1.0, 1.0


def delegate_specs(target: Target, flags: Sequence[str]) -> dict[str, str]:
    """The compile specifications of a delegate, as ExecuTorch has them."""
    return {"output_format": "vela", "target": target.name, "compile_flags": " ".join(flags)}


def build_program(
    model: TfliteModel,
    network: TfliteModel,
    reasons: Mapping[str, str],
    target: Target,
    flags: Sequence[str],
) -> _Program:
    """The program of the `network` that Vela made of `model`, with its `reasons` to leave operators, by the name of
    their output. InputError for an operator on the CPU that no kernel does."""
    builder = ProgramBuilder()
    calls = {row.operator: row for row in vela_tflite.npu_calls(network)}
    values = kernels.Values(builder, network)
    shared = Counter(row.weights for row in calls.values())
    specs = delegate_specs(target, flags)
    for names, tensors, part in (
        (model.names(model.main.inputs, of="inputs"), network.main.inputs, builder.inputs),
        (model.names(model.main.outputs, of="outputs"), network.main.outputs, builder.outputs),
    ):
        part.extend(values.named(index, name) for index, name in zip(tensors, names, strict=True))
    left: list[tuple[str, str]] = []
    for row in kernels.needed_operators(network):
        call = calls.get(row.index)
        if call is not None:
            arguments = [values.of(index) for index in (*call.inputs, *call.outputs)]
            _add_delegate(builder, call, specs, arguments, is_shared=shared[call.weights] > 1)
            continue
        output = network.main.tensors[row.outputs[0]].name if row.outputs else ""
        reason = reasons.get(output, "")
        kernels.add_operator(values, row, reason)
        left.append((row.name, reason or "Vela leaves it to the CPU"))
    data = builder.build()
    return _Program(data, tuple(calls.values()), _cpu_operators(left), values.state())


def _add_delegate(
    builder: ProgramBuilder,
    call: NpuCall,
    specs: dict[str, str],
    arguments: Sequence[int],
    *,
    is_shared: bool,
) -> None:
    """Call the NPU. Vela has the weights of all calls in one tensor, which is kept once."""
    if not is_shared:
        builder.delegate(call.payload, specs, arguments)
        return
    key = filesystem.sha256_bytes(f"{_SHARED}\0".encode() + call.weights)
    builder.name_data(key, call.weights)
    placed = {**specs, "external_block_placements": json.dumps({"weight_data": _SHARED})}
    builder.delegate(vela_tflite.without_weights(call.payload, key), placed, arguments)


def _cpu_operators(rows: Sequence[tuple[str, str]]) -> tuple[CpuOperator, ...]:
    found: dict[str, Counter[str]] = {}
    for name, reason in rows:
        found.setdefault(name, Counter())[reason] += 1
    return tuple(
        CpuOperator(
            name=name,
            calls=sum(reasons.values()),
            boundary=name in _CONVERSIONS,
            sites=tuple(Site(calls=calls, reason=reason) for reason, calls in reasons.items()),
        )
        for name, reasons in found.items()
    )


def _delegation(model: TfliteModel, network: TfliteModel) -> tuple[Delegation, ...]:
    """How many operators of each kind the NPU does."""
    there = Counter(row.name for row in model.main.operators)
    left = Counter(row.name for row in network.main.operators if row.name != NPU_OPERATOR)
    return tuple(
        Delegation(operator=name, delegated=max(count - left[name], 0), not_delegated=min(left[name], count))
        for name, count in there.items()
    )


def _check_facts(
    request: CompileRequest, model: TfliteModel, samples: list[list[Array]], readings: Sequence[Reading]
) -> tuple[CheckFacts | None, ChainFacts | None]:
    """Leave what the check compares in its folder: inputs, and the outputs of every interpreter."""
    folder = request.check_folder
    if folder is None:
        return None, None
    kinds = [("input", samples), *((f"reading{number}_", row.outputs) for number, row in enumerate(readings))]
    for kind, rows in kinds:
        for number, arrays in enumerate(rows):
            for index, array in enumerate(arrays):
                np.save(folder / sample_array(kind, number, index), array)
    facts = CheckFacts(
        outputs=tuple(_checked_output(model, row) for row in model.main.output_tensors),
        trials=0,
        stateful=any(row.is_variable or row.type == "RESOURCE" for row in model.main.tensors),
        samples=len(samples),
        readings=tuple(row.facts for row in readings),
    )
    origins: list[SampleOrigin] = ["seeded"] * len(samples)
    if request.options.inputs is not None:
        origins[0] = "example"
    return facts, ChainFacts(samples=tuple(origins), links=(), noisy=(), start=".tflite")


def _checked_output(model: TfliteModel, tensor: TfliteTensor) -> CheckedOutput:
    """An output in its own type: integers that stand for real numbers have a step of 1."""
    if np.dtype(tensor.dtype).kind != "f":
        quantised = None if tensor.quantisation is None else Quantisation(1.0, 0, tensor.dtype)
        return CheckedOutput(tensor.dtype, quantised, exact=quantised is None)
    for row in model.main.operators:
        if row.name == "DEQUANTIZE" and row.outputs == (tensor.index,):
            source = model.main.tensors[row.inputs[0]]
            if source.quantisation is not None:
                form = source.quantisation
                return CheckedOutput(
                    tensor.dtype, Quantisation(form.scales[0], form.zero_points[0], source.dtype), exact=False
                )
    return CheckedOutput(tensor.dtype, None, exact=False)


def _tensor_facts(tensors: Sequence[TfliteTensor], names: Sequence[str]) -> tuple[TensorFacts, ...]:
    return tuple(
        TensorFacts(row.dtype, row.shape, tuple(range(len(row.shape))), name=name)
        for row, name in zip(tensors, names, strict=True)
    )


def _write_delegates(folder: Path, made: VelaOutput, calls: Sequence[NpuCall]) -> tuple[Delegate, ...]:
    """Write Vela's reports, which are of the whole network, and say of each delegate what is in them."""
    if not calls:
        return ()
    files = DelegateFiles(
        summary="delegate0.summary.csv", per_layer="delegate0.per-layer.csv", debug="delegate0.debug.xml"
    )
    for name, content in (
        (files.summary, made.summary_csv),
        (files.per_layer, made.per_layer_csv),
        (files.debug, made.debug_xml),
    ):
        filesystem.write_bytes(folder / name, content)
    estimates = vela_capture.summary_estimates(made.summary_csv)
    return tuple(
        Delegate(
            index=index,
            payload_sha256=filesystem.sha256_bytes(call.payload),
            payload_bytes=len(call.payload),
            scratch_bytes=call.scratch_bytes,
            fast_scratch_bytes=call.fast_scratch_bytes,
            files=files,
            estimates=() if index else estimates,
            operations=_operations(made.debug_xml, index),
        )
        for index, call in enumerate(calls)
    )


def _operations(xml: bytes, stream: int) -> tuple[Operation, ...]:
    return tuple(
        Operation(
            offsets=row.offsets,
            vela=VelaOperation(operator=row.operator, name=row.name or None),
            estimates=tuple(
                Estimate(name=name.removesuffix("_bytes"), value=value, unit=unit, source="estimated")
                for name, unit in _ESTIMATES
                if (value := getattr(row, name)) is not None
            ),
        )
        for row in vela_database.scheduled_operations(xml, stream)
    )
