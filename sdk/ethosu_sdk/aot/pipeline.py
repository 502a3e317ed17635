"""One compilation from end to end, inside the worker process: the order of steps, their timing and the
files."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ethosu_sdk import cache, records
from ethosu_sdk.aot import arrays, artefacts, program_facts, tensors
from ethosu_sdk.aot.api import CompileOutput, CompileRequest, DelegationCount
from ethosu_sdk.aot.check import fault, rounding
from ethosu_sdk.aot.check.facts import CheckFacts, StartFacts
from ethosu_sdk.aot.delegate_compiler import VELA, DelegateCompiler
from ethosu_sdk.aot.evaluation import eager as evaluation
from ethosu_sdk.aot.evaluation.facts import EvaluationFacts
from ethosu_sdk.aot.evaluation.layers import LayerValues
from ethosu_sdk.aot.lowering import (
    acceleration,
    cpu_operators,
    etrecord as etrecords,
    steps as lowering,
    substeps,
)
from ethosu_sdk.aot.model import checks as model_checks, loading as model_loading, unrolling
from ethosu_sdk.aot.model.initial_state import InitialState
from ethosu_sdk.aot.model.loading import LoadedModel
from ethosu_sdk.aot.model.source_lines import SourceFinder, recorded
from ethosu_sdk.aot.model.spec import ModelSpec, parse_model_spec
from ethosu_sdk.aot.quantization import prequantized_passes, training_mode
from ethosu_sdk.aot.quantization.own_quantizer import OwnQuantizer
from ethosu_sdk.aot.repairs import constant_likes, plain_addmm
from ethosu_sdk.aot.vela import config as vela_config
from ethosu_sdk.aot.vela.capture import VelaCapture
from ethosu_sdk.aot.vela.config import VelaConfig
from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.program_options import ProgramOptions

Progress = Callable[[str], None]
Tensors = tuple[Any, ...]


class StageClock:
    """Names the running stage to `progress` and adds up the seconds of each."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.timings_s: dict[str, float] = {}

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time the block as the stage `name` of ``api.STAGES``, or as more of it: a stage is announced once."""
        if name not in self.timings_s:
            self._progress(name)
        start = time.monotonic()
        try:
            yield
        finally:
            self.timings_s[name] = self.timings_s.get(name, 0.0) + round(time.monotonic() - start, 3)


@dataclass(frozen=True)
class _Plan:
    """A loaded model with everything decided: its inputs, calibration samples and quantisation, and what keeps the
    values of its layers, if they are asked for."""

    module: Any
    inputs: Tensors
    calibration: tuple[Tensors, ...]
    calibration_source: str
    quantize: str
    prequantized: bool = False
    lines: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    quantizer: OwnQuantizer | None = None
    layers: LayerValues | None = None

    @property
    def quantized(self) -> bool:
        """Whether the program computes with quantised values, whoever quantised it."""
        return self.prequantized or self.quantize != "none"


@dataclass(frozen=True)
class _Lowered:
    """The finished program manager, the inputs and outputs in the program's own types, what an evaluation and a
    check found, and a warning for the user."""

    manager: Any
    inputs: Tensors
    outputs: Tensors
    evaluation: EvaluationFacts | None = None
    check: CheckFacts | None = None
    program: Any = None  # that was lowered, and its inputs before they are quantised
    examples: Tensors = ()
    warning: str | None = None
    delegation: tuple[DelegationCount, ...] = ()


def run(request: CompileRequest, progress: Progress, compiler: DelegateCompiler = VELA) -> CompileOutput:
    """Compile, write every file into the (existing) output folder and return the facts.

    Raises InputError, UsageError or BuildError; a failed run leaves the files of an earlier one as they were.
    """
    clock = StageClock(progress)
    with clock.stage("import"):
        import_tools()
    spec = parse_model_spec(request.model)
    with clock.stage("model"):
        plan = _plan(request, model_loading.load(spec, trust=request.options.trust))
    config = None if request.options.vela_config is None else vela_config.read(request.options.vela_config)
    finder = SourceFinder(None if spec.path is None else spec.path.resolve().parent, plan.lines)
    with (
        acceleration.accelerated(),
        compiler.captured(config) as captures,
        substeps.told(progress),
        recorded(finder),
    ):
        lowered = _lower(request, plan, config, clock, finder)
    _keep_layers(plan, lowered, captures, clock, finder)
    etrecord = f"{spec.name}{etrecords.SUFFIX}"
    with clock.stage("write"), artefacts.published(request.out_dir, etrecord) as folder:
        delegates = compiler.write(folder, lowered.manager, captures, finder)
        if request.options.etrecord:
            artefacts.write_etrecord(folder / etrecord, lowered.manager, captures)
        artefacts.write_io(folder / f"{spec.name}.io.npz", lowered.inputs, lowered.outputs)
        data = bytes(lowered.manager.buffer)
        records.write_bytes(folder / f"{spec.name}.pte", data)
    operators = cpu_operators.find(lowered.manager, finder, delegated=request.options.delegate)
    return CompileOutput(
        name=spec.name,
        pte=request.out_dir / f"{spec.name}.pte",
        pte_sha256=records.sha256_bytes(data),
        pte_bytes=len(data),
        io=request.out_dir / f"{spec.name}.io.npz",
        log=request.out_dir / artefacts.LOG_NAME,
        etrecord=etrecord if request.options.etrecord else None,
        model_source=request.model,
        model_sha256=_source_digest(spec),
        target=request.target,
        quantize=plan.quantize,
        io_type=request.options.io,
        calibration_source=plan.calibration_source,
        calibration_samples=len(plan.calibration),
        methods=program_facts.methods(lowered.manager),
        inputs=program_facts.inputs(lowered.manager),
        outputs=program_facts.outputs(lowered.manager),
        cpu_operators=operators,
        delegates=delegates,
        versions=program_facts.versions(),
        timings_s=clock.timings_s,
        warnings=(*_warnings(request, plan, len(delegates), lowered.warning), *cache.take_notes()),
        prequantized=plan.prequantized,
        own_quantizer=None if plan.quantizer is None else plan.quantizer.kind,
        evaluation=lowered.evaluation,
        check=lowered.check,
        start=_start(request, lowered, captures, finder),
        delegation=lowered.delegation,
    )


def _keep_layers(
    plan: _Plan, lowered: _Lowered, captures: Sequence[VelaCapture], clock: StageClock, finder: SourceFinder
) -> None:
    if plan.layers is not None:
        with clock.stage("evaluate"):
            cpu_calls = [name for name, _ in program_facts.kernel_calls(lowered.manager)]
            plan.layers.finish(lowered.program, cpu_calls, captures, finder)


def _start(
    request: CompileRequest, lowered: _Lowered, captures: Sequence[VelaCapture], finder: SourceFinder
) -> StartFacts | None:
    if not request.locate or request.check_folder is None:
        return None
    return fault.find(lowered.program, lowered.examples, captures, request.check_folder, finder)


def import_tools() -> None:
    """Import what takes seconds, so that the first stage shows it, and what registers operators: those of a program
    that was quantised before it was saved exist only then. Fix the number of threads, because floating-point sums,
    and with them calibration, depend on it."""
    import torch

    with acceleration.quick_imports():
        import executorch.backends.arm.ethosu
        import executorch.exir
        import executorch.kernels.quantized
    import torchao.quantization.pt2e.quantize_pt2e

    del executorch, torchao
    torch.set_num_threads(1)


def _plan(request: CompileRequest, model: LoadedModel) -> _Plan:
    options = request.options
    if model.prequantized:
        _refuse_quantizing(request)
    if model.quantizer is not None:
        model.quantizer.refuse_options(options, prequantized=model.prequantized)
    quantize = options.quantize or model.quantize
    if quantize == "none" and (options.calibration or (options.io != "float" and not model.prequantized)):
        option = "--calibration" if options.calibration else f"--io {options.io}"
        raise UsageError(f"{option} needs a quantised model", "choose --quantize int8")
    model_checks.check_module(model.module, request.model)
    inputs = _example_inputs(request, model)
    _check_examples(inputs, quantize)
    inputs = tuple(tensors.dense(item) for item in inputs)
    calibration, source = _samples(request, model, inputs) if quantize != "none" else ((), "none")
    for index, sample in enumerate(calibration):
        model_checks.check_values(sample, f"calibration sample {index}: input")
    return _Plan(
        module=model.module,
        inputs=inputs,
        calibration=calibration,
        calibration_source=source,
        quantize=quantize,
        prequantized=model.prequantized,
        lines=model.lines,
        quantizer=model.quantizer,
        layers=None if request.layers is None else LayerValues(request.layers, inputs),
    )


def _refuse_quantizing(request: CompileRequest) -> None:
    """UsageError for options that quantise, which cannot be done to a model that is quantised already."""
    options = request.options
    given = {
        "--quantize": options.quantize not in (None, "none"),
        "--quantize-per": options.quantize_per != ProgramOptions.quantize_per,
        "--calibration": bool(options.calibration),
    }
    for option in (name for name, is_given in given.items() if is_given):
        raise UsageError(
            f"{request.model} is quantised already: {option} would have no effect",
            f"leave {option} out, or give the float model",
        )


def _check_examples(inputs: Tensors, quantize: str) -> None:
    """InputError for example inputs of a kind that no program for the NPU can take."""
    model_checks.check_types(inputs, "example input")
    for index, tensor in enumerate(inputs):
        what = f"example input {index}"
        dtype = str(tensors.as_numpy(tensor, what).dtype)
        if dtype not in program_facts.DTYPES:
            raise InputError(f"{what} is {dtype}, a type that ExecuTorch's runtime lacks")
        if quantize != "none" and dtype == "float64":
            raise InputError(
                f"{what} is float64, which cannot be quantised", "give the model and its inputs as float32"
            )
        if 0 in tensor.shape:
            raise InputError(f"{what} has no elements: its shape is {tuple(tensor.shape)}")
    if quantize != "none":
        model_checks.check_values(inputs, "example input")


def _samples(request: CompileRequest, model: LoadedModel, inputs: Tensors) -> tuple[tuple[Tensors, ...], str]:
    """The calibration samples and where they come from."""
    if request.options.calibration:
        return _calibration(request.options.calibration, inputs), "file"
    if not model.calibration:
        return (inputs,), "example"
    expected = [tensors.as_numpy(item) for item in inputs]
    for index, sample in enumerate(model.calibration):
        where = f"calibration sample {index} of {request.model}"
        arrays.check_inputs([tensors.as_numpy(item) for item in sample], expected, where)
    return model.calibration, model.calibration_source


def _example_inputs(request: CompileRequest, model: LoadedModel) -> Tensors:
    import torch

    examples = model.example_inputs
    if request.options.inputs is None:
        if examples is None:
            raise InputError(
                f"{request.model} brings no example inputs",
                "define example_inputs beside the model, or give `compile` --inputs FILE.npz (input0, …)",
            )
        return examples
    given = arrays.read_inputs(request.options.inputs)
    if examples is None:
        return tuple(torch.from_numpy(array.copy()) for array in given)
    arrays.check_inputs(given, [tensors.as_numpy(item) for item in examples], request.options.inputs)
    return tensors.like(given, examples)


def _calibration(files: Sequence[Path], examples: Tensors) -> tuple[Tensors, ...]:
    shapes = [tensors.as_numpy(item) for item in examples]
    return tuple(
        tensors.like(sample, examples)
        for path in files
        for sample in arrays.samples(arrays.read_inputs(path), shapes, path)
    )


def _lower(
    request: CompileRequest, plan: _Plan, config: VelaConfig | None, clock: StageClock, finder: SourceFinder
) -> _Lowered:
    import torch

    ini = lowering.VELA_CONFIG if config is None else config.stored_name
    spec = lowering.compile_spec(request.target, ini, request.options.vela_flags)
    with clock.stage("export"), torch.no_grad(), model_checks.explained(finder):
        reference = plan.module
        if isinstance(reference, torch.export.ExportedProgram):
            reference = reference.module(check_guards=False)
        state = InitialState(reference)
        with state.restored(reference):
            outputs = lowering.run_eager(reference, plan.inputs)
        program = constant_likes.fold(lowering.export(plan.module, plan.inputs, finder))
        training_mode.refuse(program, finder)
        model_checks.check_program(program, finder)
        warning = unrolling.check(program, finder)
        if plan.quantized:
            model_checks.check_outputs(outputs, program, plan.inputs, finder)
        if plan.prequantized:
            program = prequantized_passes.complete(program, plan.inputs)
        else:
            program = plain_addmm.split(program)
    subject = evaluation.subject(reference, program, prequantized=plan.prequantized)
    if plan.quantize != "none":
        quantized = _quantized(request, plan, spec, program, clock)
        with clock.stage("quantize"), torch.no_grad():
            with state.restored(quantized):
                outputs = lowering.run_eager(quantized, plan.inputs)
            program = lowering.export(quantized, plan.inputs)
            if plan.quantizer is not None:
                program = prequantized_passes.complete(program, plan.inputs)
            subject = evaluation.Subject(reference, quantized, program)
    evaluated = None
    if request.evaluation is not None:
        with clock.stage("evaluate"):
            samples = evaluation.Samples(plan.inputs, outputs, plan.calibration, request.options.io == "int8")
            evaluated = evaluation.evaluate(request.evaluation, subject, samples, state)
    with clock.stage("lower"):
        edge = lowering.lower(
            program, spec if request.options.delegate else None, etrecord=request.options.etrecord
        )
        inputs = plan.inputs
        if request.options.io == "int8":
            edge = lowering.quantize_io(edge, inputs, outputs)
            inputs = lowering.quantized_io_values(edge, "input", inputs)
            outputs = lowering.quantized_io_values(edge, "output", outputs)
        delegation = program_facts.delegation(edge)
        manager = lowering.to_executorch(edge)
    check = None
    if request.check_folder is not None:
        with clock.stage("check"), torch.no_grad():
            cpu_calls = [name for name, _ in program_facts.kernel_calls(manager)]
            check = rounding.explore(program, plan.inputs, cpu_calls, request.check_folder)
    return _Lowered(manager, inputs, outputs, evaluated, check, program, plan.inputs, warning, delegation)


def _quantized(request: CompileRequest, plan: _Plan, spec: Any, program: Any, clock: StageClock) -> Any:
    """The quantised module of the exported `program`."""
    import torch

    per_channel = request.options.quantize_per == "channel"
    adjust = None if plan.quantizer is None else plan.quantizer.applied
    with clock.stage("calibrate"), torch.no_grad():
        if lowering.has_branches(program):
            return lowering.quantize_branches(
                program, spec, plan.quantize, plan.calibration, per_channel=per_channel, adjust=adjust
            )
        prepared = lowering.prepare(program, spec, plan.quantize, per_channel=per_channel, adjust=adjust)
        for sample in plan.calibration:
            lowering.run_eager(prepared, sample)
        if plan.layers is not None:
            plan.layers.take_float(prepared)
    with clock.stage("quantize"), torch.no_grad():
        return lowering.convert(prepared)


def _source_digest(spec: ModelSpec) -> str:
    if spec.path is not None:
        return records.sha256_file(spec.path)
    from ethosu_sdk.aot import zoo

    return records.sha256_file(zoo.source(str(spec.entry)))


def _warnings(request: CompileRequest, plan: _Plan, delegates: int, unrolled: str | None) -> tuple[str, ...]:
    found = [unrolled] if unrolled else []
    if request.options.delegate and not delegates:
        found.append("Nothing was delegated to the NPU: every operator runs on the CPU.")
    if plan.calibration_source == "example":
        found.append(
            "No calibration data was given, so the model was calibrated on the example inputs alone: its "
            "quantisation ranges are guesses and its accuracy is unknown. Give samples with --calibration "
            "FILE.npz, or define 'calibration' in the model's file."
        )
    return tuple(found)
