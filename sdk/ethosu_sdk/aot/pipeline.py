"""One compilation from end to end, inside the worker process: the order of steps, their timing and the
files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk import cache
from ethosu_sdk.aot import arrays, artefacts, float_program, program_facts, quantising, tensors
from ethosu_sdk.aot.api import CompileOutput, CompileRequest, DelegationCount
from ethosu_sdk.aot.chain.facts import ChainFacts
from ethosu_sdk.aot.chain.links import Chain
from ethosu_sdk.aot.check import fault, rounding
from ethosu_sdk.aot.check.facts import CheckFacts, StartFacts
from ethosu_sdk.aot.delegate_compiler import VELA, DelegateCompiler
from ethosu_sdk.aot.evaluation import eager as evaluation
from ethosu_sdk.aot.evaluation.facts import EvaluationFacts
from ethosu_sdk.aot.evaluation.layers import LayerValues
from ethosu_sdk.aot.float_program import Plan
from ethosu_sdk.aot.lowering import (
    acceleration,
    cpu_operators,
    etrecord as etrecords,
    steps as lowering,
    substeps,
)
from ethosu_sdk.aot.model import checks as model_checks, loading as model_loading
from ethosu_sdk.aot.model.initial_state import InitialState
from ethosu_sdk.aot.model.loading import LoadedModel
from ethosu_sdk.aot.model.source_lines import SourceFinder, recorded
from ethosu_sdk.aot.model.spec import ModelSpec, parse_model_spec
from ethosu_sdk.aot.quantization import calibration_samples, prequantized_passes
from ethosu_sdk.aot.refusals import kernels, net
from ethosu_sdk.aot.stage_clock import Progress, StageClock
from ethosu_sdk.aot.vela import config as vela_config
from ethosu_sdk.aot.vela.capture import VelaCapture
from ethosu_sdk.aot.vela.config import VelaConfig
from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.files import hashing, writing
from ethosu_sdk.program_options import ProgramOptions

Tensors = tuple[Any, ...]


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
    chain: ChainFacts | None = None


@net.explaining
@acceleration.rare_collections()
def run(request: CompileRequest, progress: Progress, compiler: DelegateCompiler = VELA) -> CompileOutput:
    """Compile, write every file into the (existing) output folder and return the facts. Raises InputError, UsageError
    or BuildError; a failed run leaves the files of an earlier one as they were."""
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
    operators = cpu_operators.find(lowered.manager, finder, delegated=request.options.delegate)
    lacking = kernels.check(operators, strict=request.check_folder is not None)
    etrecord = f"{spec.name}{etrecords.SUFFIX}"
    with clock.stage("write"), artefacts.published(request.out_dir, etrecord) as folder:
        delegates = compiler.write(folder, lowered.manager, captures, finder)
        if request.options.etrecord:
            artefacts.write_etrecord(folder / etrecord, lowered.manager, captures)
        artefacts.write_io(folder / f"{spec.name}.io.npz", lowered.inputs, lowered.outputs)
        data = bytes(lowered.manager.buffer)
        writing.write_bytes(folder / f"{spec.name}.pte", data)
    return CompileOutput(
        name=spec.name,
        pte=request.out_dir / f"{spec.name}.pte",
        pte_sha256=hashing.sha256_bytes(data),
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
        warnings=tuple(_warnings(request, plan, len(delegates), (lowered.warning, *lacking))),
        prequantized=plan.prequantized,
        own_quantizer=None if plan.quantizer is None else plan.quantizer.kind,
        evaluation=lowered.evaluation,
        check=lowered.check,
        start=_start(request, lowered, captures, finder),
        delegation=lowered.delegation,
        chain=lowered.chain,
    )


def _keep_layers(
    plan: Plan, lowered: _Lowered, captures: Sequence[VelaCapture], clock: StageClock, finder: SourceFinder
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


@acceleration.rare_collections()
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


def _plan(request: CompileRequest, model: LoadedModel) -> Plan:
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
    _check_examples(inputs, quantized=quantize != "none" or model.prequantized)
    # Copies, since a file may give one tensor twice: torch.export would take the two inputs for one.
    inputs = tuple(tensors.dense(item).clone() for item in inputs)
    calibration, source = _samples(request, model, inputs) if quantize != "none" else ((), "none")
    for index, sample in enumerate(calibration):
        model_checks.check_values(sample, f"calibration sample {index}: input")
    return Plan(
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


def _check_examples(inputs: Tensors, *, quantized: bool) -> None:
    """InputError for example inputs of a kind that no program for the NPU can take."""
    model_checks.check_types(inputs, "example input")
    for index, tensor in enumerate(inputs):
        what = f"example input {index}"
        dtype = str(tensors.as_numpy(tensor, what).dtype)
        if dtype not in program_facts.DTYPES:
            raise InputError(f"{what} is {dtype}, a type that ExecuTorch's runtime lacks")
        if quantized and dtype == "float64":
            raise InputError(
                f"{what} is float64, which cannot be quantised", "give the model and its inputs as float32"
            )
        if 0 in tensor.shape:
            raise InputError(f"{what} has no elements: its shape is {tuple(tensor.shape)}")
    if quantized:
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
    request: CompileRequest, plan: Plan, config: VelaConfig | None, clock: StageClock, finder: SourceFinder
) -> _Lowered:
    import torch

    spec = _spec(request, config)
    with clock.stage("export"), torch.no_grad(), model_checks.explained(finder):
        traced = float_program.traced(plan, request.target, finder)
    eager, state, program = traced.eager, traced.state, traced.program
    outputs = eager.outputs[0]
    chain = Chain(eager, finder) if request.check_folder is not None and not plan.prequantized else None
    if chain is not None:
        with clock.stage("compare"):
            chain.graph(program)
    subject = evaluation.subject(traced.reference, program, prequantized=plan.prequantized)
    if plan.quantize != "none":
        quantized = quantising.quantised(program, spec, plan.quantising(request), clock, chain, state)
        with clock.stage("quantize"), torch.no_grad():
            outputs = chain.example if chain is not None else _executed(quantized, plan.inputs, state)
            program = lowering.export(quantized, plan.inputs)
            if plan.quantizer is not None:
                program = prequantized_passes.complete(program, plan.inputs)
            subject = evaluation.Subject(traced.reference, quantized, program)
    evaluated = None
    if request.evaluation is not None:
        with clock.stage("evaluate"):
            samples = evaluation.Samples(plan.inputs, outputs, plan.calibration, request.options.io == "int8")
            evaluated = evaluation.evaluate(request.evaluation, subject, samples, state)
    with clock.stage("lower"):
        edge = lowering.lower(
            program, spec if request.options.delegate else None, etrecord=request.options.etrecord
        )
        if chain is not None:
            chain.lowered(edge.exported_program(), traced.written)
        edge, inputs, outputs = _with_io(request, edge, plan.inputs, outputs)
        delegation = program_facts.delegation(edge)
        manager = lowering.to_executorch(edge)
    check = None
    int8_io, rows = request.options.io == "int8", [row.inputs for row in eager.samples]
    if request.check_folder is not None:
        with clock.stage("check"), torch.no_grad():
            cpu_calls = [name for name, _ in program_facts.kernel_calls(manager)]
            check = rounding.explore(program, rows, cpu_calls, request.check_folder)
            given = [lowering.quantized_io_values(edge, "input", row) if int8_io else row for row in rows]
            rounding.save_samples(request.check_folder, given)
    return _Lowered(
        manager,
        inputs,
        outputs,
        evaluated,
        check,
        program,
        plan.inputs,
        traced.warning,
        delegation,
        None if chain is None else chain.facts,
    )


def _executed(quantized: Any, inputs: Tensors, state: InitialState) -> Tensors:
    with state.restored(quantized):
        return lowering.run_eager(quantized, inputs)


def _with_io(
    request: CompileRequest, edge: Any, inputs: Tensors, outputs: Tensors
) -> tuple[Any, Tensors, Tensors]:
    """The edge program with the inputs and outputs that are asked for, and examples of them."""
    if request.options.io != "int8":
        return edge, inputs, outputs
    edge = lowering.quantize_io(edge, inputs, outputs)
    given = lowering.quantized_io_values(edge, "input", inputs)
    return edge, given, lowering.quantized_io_values(edge, "output", outputs)


def _spec(request: CompileRequest, config: VelaConfig | None) -> Any:
    ini = lowering.VELA_CONFIG if config is None else config.stored_name
    return lowering.compile_spec(request.target, ini, request.options.vela_flags)


def _source_digest(spec: ModelSpec) -> str:
    if spec.path is not None:
        return hashing.sha256_file(spec.path)
    from ethosu_sdk.aot import zoo

    return hashing.sha256_file(zoo.source(str(spec.entry)))


def _warnings(request: CompileRequest, plan: Plan, delegates: int, first: Sequence[str | None]) -> list[str]:
    found = [text for text in first if text]
    if request.options.delegate and not delegates:
        found.append("Nothing was delegated to the NPU: every operator runs on the CPU.")
    samples = calibration_samples.warnings(plan.inputs, plan.calibration, plan.calibration_source)
    return [*found, *samples, *cache.take_notes()]
