"""One compilation from end to end, inside the worker process: the order of steps, their timing and the
files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ethosu_sdk import cache
from ethosu_sdk.aot.comparison.chain.links import Chain
from ethosu_sdk.aot.comparison.check import dialect, fault, rounding
from ethosu_sdk.aot.comparison.evaluation import eager_outputs
from ethosu_sdk.aot.facts.chain import ChainFacts
from ethosu_sdk.aot.facts.check import CheckFacts, StartFacts
from ethosu_sdk.aot.facts.compilation import (
    CompileOutput,
    CompileRequest,
    DelegateFacts,
    DelegationCount,
    StateFacts,
)
from ethosu_sdk.aot.facts.evaluation import EvaluationFacts
from ethosu_sdk.aot.graph import execution, layout_changes, program_facts, program_state
from ethosu_sdk.aot.graph.source_lines import SourceFinder, recorded
from ethosu_sdk.aot.lowering import (
    acceleration,
    cortex_m,
    cpu_operators,
    etrecords,
    exporting,
    fallback,
    substeps,
    to_pte,
)
from ethosu_sdk.aot.model import added_lines, loading, model_checks
from ethosu_sdk.aot.model.initial_state import InitialState
from ethosu_sdk.aot.model.spec import ModelSpec, parse_model_spec
from ethosu_sdk.aot.pipeline import float_program, plans, quantised_program
from ethosu_sdk.aot.pipeline.plans import Plan
from ethosu_sdk.aot.pipeline.stage_clock import Progress, StageClock
from ethosu_sdk.aot.quantization import calibration_samples, prequantized_passes
from ethosu_sdk.aot.refusals import kernels, net
from ethosu_sdk.aot.sharing.without_vela import WITHOUT_VELA
from ethosu_sdk.aot.vela import artefacts, vela_config
from ethosu_sdk.aot.vela.capture import VelaCapture
from ethosu_sdk.aot.vela.delegate_compiler import VELA, DelegateCompiler
from ethosu_sdk.aot.vela.vela_config import VelaConfig
from ethosu_sdk.files import hashing, writing
from ethosu_sdk.program_options import CORTEX_M

Tensors = tuple[Any, ...]

_FALLBACK_CORE = "cortex-m55"  # beside an NPU; the passes do the same for a Cortex-M85


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
    state: tuple[StateFacts, ...] = ()


@net.explaining
@acceleration.rare_collections()
def run(request: CompileRequest, progress: Progress) -> CompileOutput:
    """Compile, write every file into the (existing) output folder and return the facts. Raises InputError, UsageError
    or BuildError; a failed run leaves the files of an earlier one as they were."""
    clock = StageClock(progress)
    with clock.stage("import"):
        import_tools()
    spec = parse_model_spec(request.model)
    with clock.stage("model"):
        loaded = loading.load(spec, trust=request.options.trust)
        plan = plans.make(request, added_lines.applied(loaded, request.lines))
    config = vela_config.of(request.options)
    finder = SourceFinder(None if spec.path is None else spec.path.resolve().parent, plan.lines)
    with (
        acceleration.accelerated(),
        _compiler(request).captured(config) as captures,
        substeps.told(progress),
        recorded(finder),
    ):
        lowered = _lower(request, plan, config, clock, finder)
    _keep_layers(plan, lowered, captures, clock, finder)
    operators = cpu_operators.find(lowered.manager, finder, without=_without_npu(request))
    lacking = kernels.check(operators, strict=request.check_folder is not None)
    etrecord = f"{spec.name}{etrecords.SUFFIX}" if request.options.etrecord else None
    with clock.stage("write"):
        delegates, data = _written(request, spec, lowered, captures, finder)
    return CompileOutput(
        name=spec.name,
        pte=request.out_dir / f"{spec.name}.pte",
        pte_sha256=hashing.sha256_bytes(data),
        pte_bytes=len(data),
        io=request.out_dir / f"{spec.name}.io.npz",
        log=request.out_dir / artefacts.LOG_NAME,
        etrecord=etrecord,
        model_source=request.model,
        model_sha256=_source_digest(spec),
        target=request.target,
        core=request.core,
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
        layout=layout_changes.find(lowered.manager),
        chain=lowered.chain,
        state=lowered.state,
    )


def _written(
    request: CompileRequest,
    spec: ModelSpec,
    lowered: _Lowered,
    captures: Sequence[VelaCapture],
    finder: SourceFinder,
) -> tuple[tuple[DelegateFacts, ...], bytes]:
    """Write every file; the facts of the delegates, and the program."""
    etrecord, data = f"{spec.name}{etrecords.SUFFIX}", bytes(lowered.manager.buffer)
    with artefacts.published(request.out_dir, etrecord) as folder:
        delegates = _compiler(request).write(folder, lowered.manager, captures, finder)
        if request.options.etrecord:
            etrecords.write(folder / etrecord, lowered.manager, captures)
        artefacts.write_io(folder / f"{spec.name}.io.npz", lowered.inputs, lowered.outputs)
        writing.write_bytes(folder / f"{spec.name}.pte", data)
    return delegates, data


def _compiler(request: CompileRequest) -> DelegateCompiler:
    return WITHOUT_VELA if request.without_vela else VELA


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
    subject = eager_outputs.subject(traced.reference, program, prequantized=plan.prequantized)
    if plan.quantize != "none":
        quantized = quantised_program.quantised(program, spec, plan.quantising(request), clock, chain, state)
        with clock.stage("quantize"), torch.no_grad():
            outputs = chain.example if chain is not None else _executed(quantized, plan.inputs, state)
            program = exporting.export(quantized, plan.inputs)
            if plan.quantizer is not None:
                program = prequantized_passes.complete(program, plan.inputs)
            subject = eager_outputs.Subject(traced.reference, quantized, program)
    evaluated = None
    if request.evaluation is not None:
        with clock.stage("evaluate"):
            samples = eager_outputs.Samples(
                plan.inputs, outputs, plan.calibration, request.options.io == "int8"
            )
            evaluated = eager_outputs.evaluate(request.evaluation, subject, samples, state)
    with clock.stage("lower"):
        edge, inputs, outputs = _edge(request, program, spec, plan.inputs, outputs)
        delegation = program_facts.delegation(edge)
        has_references = request.core is not None or request.options.fallback == CORTEX_M
        references = dialect.module(edge) if has_references and not request.without_vela else None
        manager = to_pte.to_executorch(edge)
    check = None
    int8_io, rows = request.options.io == "int8", [row.inputs for row in eager.samples]
    if request.check_folder is not None:
        with clock.stage("check"), torch.no_grad():
            cpu_calls = [name for name, _ in program_facts.kernel_calls(manager)]
            check = rounding.explore(program, rows, cpu_calls, request.check_folder)
            given = [to_pte.quantized_io_values(edge, "input", row) if int8_io else row for row in rows]
            rounding.save_samples(request.check_folder, given)
            if references is not None and dialect.decides(cpu_calls):
                rounding.save_dialect(request.check_folder, references, given)
                check = replace(check, dialect=True)
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
        program_state.find(manager, traced.written),
    )


def _edge(
    request: CompileRequest, program: Any, spec: Any, inputs: Tensors, outputs: Tensors
) -> tuple[Any, Tensors, Tensors]:
    """The lowered program with the inputs and outputs that are asked for, and examples of them."""
    options = request.options
    falls_back = options.fallback == CORTEX_M
    edge = to_pte.lower(
        program,
        spec if options.delegate else None,
        whole=request.core is not None or falls_back,
        etrecord=options.etrecord,
    )
    edge, inputs, outputs = _with_io(request, edge, inputs, outputs)
    if request.core is not None:
        edge = cortex_m.replace(edge, request.core)
    elif falls_back:
        edge = fallback.replace(edge, _FALLBACK_CORE)
    return edge, inputs, outputs


def _executed(quantized: Any, inputs: Tensors, state: InitialState) -> Tensors:
    with state.restored(quantized):
        return execution.run_eager(quantized, inputs)


def _without_npu(request: CompileRequest) -> str:
    """Why nothing is delegated; empty where the NPU may have everything."""
    if request.core is not None:
        return f"{request.core} has no NPU"
    return "" if request.options.delegate else "delegation was switched off"


def _with_io(
    request: CompileRequest, edge: Any, inputs: Tensors, outputs: Tensors
) -> tuple[Any, Tensors, Tensors]:
    """The edge program with the inputs and outputs that are asked for, and examples of them."""
    if request.options.io != "int8":
        return edge, inputs, outputs
    edge = to_pte.quantize_io(edge, inputs, outputs)
    given = to_pte.quantized_io_values(edge, "input", inputs)
    return edge, given, to_pte.quantized_io_values(edge, "output", outputs)


def _spec(request: CompileRequest, config: VelaConfig | None) -> Any:
    """ExecuTorch's description of the NPU; None without one."""
    if request.target is None:
        return None
    ini = to_pte.VELA_CONFIG if config is None else config.stored_name
    return to_pte.compile_spec(request.target, ini, request.options.vela_flags)


def _source_digest(spec: ModelSpec) -> str:
    if spec.path is not None:
        return hashing.sha256_file(spec.path)
    from ethosu_sdk.aot import zoo

    return hashing.sha256_file(zoo.source(str(spec.entry)))


def _warnings(request: CompileRequest, plan: Plan, delegates: int, first: Sequence[str | None]) -> list[str]:
    found = [text for text in first if text]
    if request.target is not None and request.options.delegate and not delegates:
        found.append("Nothing was delegated to the NPU: every operator runs on the CPU.")
    samples = calibration_samples.warnings(plan.inputs, plan.calibration, plan.calibration_source)
    return [*found, *samples, *cache.take_notes()]
