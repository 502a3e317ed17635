"""One compilation from end to end, inside the worker process: the order of steps, their timing and the
files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ethosu_sdk import cache, pte
from ethosu_sdk.aot.comparison.check import fault
from ethosu_sdk.aot.facts.check import CheckFacts, StartFacts, method_folder
from ethosu_sdk.aot.facts.compilation import (
    CompileOutput,
    CompileRequest,
    DelegateFacts,
    FedFacts,
    MethodFacts,
    OperatorCount,
    StateFacts,
)
from ethosu_sdk.aot.graph import layout_changes, program_facts, program_state
from ethosu_sdk.aot.graph.source_lines import SourceFinder, recorded
from ethosu_sdk.aot.lowering import acceleration, cpu_operators, etrecords, substeps, to_pte
from ethosu_sdk.aot.model import added_lines, loading
from ethosu_sdk.aot.model.spec import ModelSpec, parse_model_spec
from ethosu_sdk.aot.pipeline import fed_steps, methods, plans
from ethosu_sdk.aot.pipeline.methods import Lowered
from ethosu_sdk.aot.pipeline.plans import Plan
from ethosu_sdk.aot.pipeline.stage_clock import Progress, StageClock
from ethosu_sdk.aot.quantization import calibration_samples
from ethosu_sdk.aot.refusals import kernels, net
from ethosu_sdk.aot.sharing.without_vela import WITHOUT_VELA
from ethosu_sdk.aot.vela import artefacts, vela_config
from ethosu_sdk.aot.vela.capture import VelaCapture
from ethosu_sdk.aot.vela.delegate_compiler import VELA, DelegateCompiler
from ethosu_sdk.aot.vela.vela_config import VelaConfig
from ethosu_sdk.files import hashing, writing


@dataclass(frozen=True)
class _Program:
    """The finished program manager, its methods in their order, what each is checked against, and its state."""

    manager: Any
    methods: list[Lowered]
    checks: list[CheckFacts | None]
    state: list[tuple[StateFacts, ...]]


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
        found = plans.of_methods(request, added_lines.applied(loaded, request.lines))
    config = vela_config.of(request.options)
    finder = SourceFinder(None if spec.path is None else spec.path.resolve().parent, found[0].lines)
    with (
        acceleration.accelerated(),
        _compiler(request).captured(config) as captures,
        substeps.told(progress),
        recorded(finder),
    ):
        program = _lower(request, found, config, clock, finder)
    _keep_layers(program, captures, clock, finder)
    return _output(request, spec, program, captures, clock, finder)


def _output(
    request: CompileRequest,
    spec: ModelSpec,
    program: _Program,
    captures: Sequence[VelaCapture],
    clock: StageClock,
    finder: SourceFinder,
) -> CompileOutput:
    """Write every file; the facts of the compilation."""
    without = _without_npu(request)
    operators = [
        cpu_operators.find(program.manager, finder, without=without, method=row.name)
        for row in program.methods
    ]
    lacking = _lacking(request, operators)
    with clock.stage("write"):
        delegates, data = _written(request, spec, program, captures, finder)
    facts = [
        _facts(request, spec, program, number, (operators[number], delegates[number]), captures, finder)
        for number in range(len(program.methods))
    ]
    first, plan = facts[0], program.methods[0].method.plan
    traced = [row.method.traced.warning for row in program.methods]
    return CompileOutput(
        name=spec.name,
        pte=request.out_dir / f"{spec.name}.pte",
        pte_sha256=hashing.sha256_bytes(data),
        pte_bytes=len(data),
        log=request.out_dir / artefacts.LOG_NAME,
        etrecord=f"{spec.name}{etrecords.SUFFIX}" if request.options.etrecord else None,
        model_source=request.model,
        model_sha256=_source_digest(spec),
        target=request.target,
        core=request.core,
        quantize=plan.quantize,
        io_type=request.options.io,
        methods=program_facts.methods(program.manager),
        versions=program_facts.versions(),
        timings_s=clock.timings_s,
        warnings=tuple(_warnings(request, program, sum(map(len, delegates)), (*traced, *lacking))),
        prequantized=plan.prequantized,
        own_quantizer=None if plan.quantizer is None else plan.quantizer.kind,
        evaluation=program.methods[0].method.evaluation,
        entry=first.name,
        **first.of_method(),
        fed=_fed(request, spec, program),
        other_methods=tuple(facts[1:]),
    )


def _lacking(request: CompileRequest, operators: Sequence[tuple[OperatorCount, ...]]) -> list[str]:
    """What no kernel does, in a sentence for each; refused where the program is checked."""
    strict = request.check_folder is not None
    return list(dict.fromkeys(text for rows in operators for text in kernels.check(rows, strict=strict)))


def _facts(
    request: CompileRequest,
    spec: ModelSpec,
    program: _Program,
    number: int,
    parts: tuple[tuple[OperatorCount, ...], tuple[DelegateFacts, ...]],
    captures: Sequence[VelaCapture],
    finder: SourceFinder,
) -> MethodFacts:
    """The facts of a method; `parts` are its operators on the CPU and its delegates."""
    manager, row = program.manager, program.methods[number]
    plan, chain = row.method.plan, row.method.chain
    return MethodFacts(
        name=row.name,
        io=request.out_dir / _io_name(spec, program, number),
        calibration_source=plan.calibration_source,
        calibration_samples=len(plan.calibration),
        inputs=program_facts.inputs(manager, row.name),
        outputs=program_facts.outputs(manager, row.name),
        cpu_operators=parts[0],
        delegates=parts[1],
        check=program.checks[number],
        start=_start(request, row, captures, finder),
        delegation=row.delegation,
        layout=layout_changes.find(manager, row.name),
        chain=None if chain is None else chain.facts,
        state=program.state[number],
    )


def _io_name(spec: ModelSpec, program: _Program, number: int) -> str:
    return f"{spec.name}.{program.methods[number].name}.io.npz" if number else f"{spec.name}.io.npz"


def _written(
    request: CompileRequest,
    spec: ModelSpec,
    program: _Program,
    captures: Sequence[VelaCapture],
    finder: SourceFinder,
) -> tuple[list[tuple[DelegateFacts, ...]], bytes]:
    """Write every file; the facts of each method's delegates, and the program."""
    etrecord, data = f"{spec.name}{etrecords.SUFFIX}", bytes(program.manager.buffer)
    delegates = []
    with artefacts.published(request.out_dir, etrecord, f"{spec.name}{fed_steps.SUFFIX}") as folder:
        for number, row in enumerate(program.methods):
            prefix = f"{row.name}." if number else ""
            write = _compiler(request).write
            delegates.append(write(folder, program.manager, captures, finder, row.name, prefix))
            artefacts.write_io(folder / _io_name(spec, program, number), row.inputs, row.outputs)
        fed, method = _fed(request, spec, program), program.methods[0].method
        if fed is not None and fed.file:
            plan = method.plan
            fed_steps.write(folder / fed.file, method.program, plan.inputs, plan.feeds, method.traced.state)
        if request.options.etrecord:
            etrecords.write(folder / etrecord, program.manager, captures)
        writing.write_bytes(folder / f"{spec.name}.pte", data)
    return delegates, data


def _fed(request: CompileRequest, spec: ModelSpec, program: _Program) -> FedFacts | None:
    """What the model's file declares of feeds. Steps are executed in PyTorch where the program takes floats."""
    declared = program.methods[0].method.plan.feeds
    if not declared.feeds:
        return None
    file = f"{spec.name}{fed_steps.SUFFIX}" if request.options.io == "float" else ""
    return FedFacts(tuple(map(str, declared.feeds)), declared.steps, file)


def _compiler(request: CompileRequest) -> DelegateCompiler:
    return WITHOUT_VELA if request.without_vela else VELA


def _keep_layers(
    program: _Program, captures: Sequence[VelaCapture], clock: StageClock, finder: SourceFinder
) -> None:
    for row in program.methods:
        if row.method.plan.layers is not None:
            with clock.stage("evaluate"):
                cpu_calls = [name for name, _ in program_facts.kernel_calls(program.manager, row.name)]
                row.method.plan.layers.finish(row.method.program, cpu_calls, captures, finder)


def _start(
    request: CompileRequest, row: Lowered, captures: Sequence[VelaCapture], finder: SourceFinder
) -> StartFacts | None:
    if not request.locate or request.check_folder is None:
        return None
    folder = method_folder(request.check_folder, row.name)
    return fault.find(row.method.program, row.method.plan.inputs, captures, folder, finder)


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
    request: CompileRequest,
    found: Sequence[Plan],
    config: VelaConfig | None,
    clock: StageClock,
    finder: SourceFinder,
) -> _Program:
    spec = _spec(request, config)
    traced = methods.with_shared_state([methods.trace(request, plan, clock, finder) for plan in found])
    rows = [
        methods.lowered(request, methods.evaluated(request, row, clock), spec, clock)
        for row in methods.quantised(request, traced, spec, clock)
    ]
    with clock.stage("lower"):
        rows = methods.with_integer_state(rows)
        one = rows[0].edge if rows[0].name == pte.ENTRY and len(rows) == 1 else None
        manager = to_pte.to_executorch(one or to_pte.joined({row.name: row.edge for row in rows}))
    state = [
        program_state.find(manager, row.method.traced.written, row.method.read, row.name) for row in rows
    ]
    return _Program(manager, rows, [methods.checked(request, row, manager, clock) for row in rows], state)


def _without_npu(request: CompileRequest) -> str:
    """Why nothing is delegated; empty where the NPU may have everything."""
    if request.core is not None:
        return f"{request.core} has no NPU"
    return "" if request.options.delegate else "delegation was switched off"


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


def _warnings(
    request: CompileRequest, program: _Program, delegates: int, first: Sequence[str | None]
) -> list[str]:
    found = [text for text in first if text]
    if request.target is not None and request.options.delegate and not delegates:
        found.append("Nothing was delegated to the NPU: every operator runs on the CPU.")
    samples = [
        text
        for row in program.methods
        for text in calibration_samples.warnings(
            row.method.plan.inputs, row.method.plan.calibration, row.method.plan.calibration_source
        )
    ]
    return list(dict.fromkeys([*found, *samples, *cache.take_notes()]))
