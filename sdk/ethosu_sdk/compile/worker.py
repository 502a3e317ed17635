"""The process that compiles, ``python -m ethosu_sdk.compile.worker REQUEST_JSON RESULT_FD``: one compilation from end
to end, its stages and its files. torch, torchao, Vela and the user's own file print as they like; this process has
only a log to print on. What the parent must know goes through RESULT_FD as JSON lines: ``{"stage": …}`` as the work
goes on, then ``{"output": …}`` or ``{"error": …}``."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ethosu_sdk.base import cache, errors, filesystem, npz, plain_text
from ethosu_sdk.base.errors import DISK_FULL, BuildError, InputError, SdkError, ToolError
from ethosu_sdk.compile import (
    acceleration,
    compile_facts,
    fault_finding,
    finished_program,
    lowering,
    model_reads,
    pipeline,
    quantizing,
    refusals,
    tool_hooks,
    vela_config,
    vela_delegates,
    zoo,
)
from ethosu_sdk.compile.front_ends import loading
from ethosu_sdk.compile.front_ends.loading import DeclaredFeeds
from ethosu_sdk.compile.front_ends.model_spec import ModelSpec, parse_model_spec
from ethosu_sdk.compile.front_ends.table import TFLITE
from ethosu_sdk.compile.graphs import execution, tensor_arrays
from ethosu_sdk.compile.graphs.source_lines import SourceFinder, lines_recorded
from ethosu_sdk.compile.model_state import InitialState
from ethosu_sdk.compile.pipeline import Lowered, Plan, Progress, StageClock
from ethosu_sdk.compile.tflite import stages as tflite
from ethosu_sdk.compile.vela_capture import VelaCapture
from ethosu_sdk.compile.vela_config import VelaConfig
from ethosu_sdk.compile.vela_delegates import VELA, WITHOUT_VELA, DelegateCompiler
from ethosu_sdk.program.execution_plan import ENTRY
from ethosu_sdk.program.feeds import Stepper, Steps, check_feed
from ethosu_sdk.records.compile import CpuOperator, Delegate, Fed, State

FED_SUFFIX = ".steps.npz"


@dataclass(frozen=True)
class _Program:
    request: compile_facts.CompileRequest
    spec: ModelSpec
    captures: Sequence[VelaCapture]
    finder: SourceFinder
    manager: Any
    methods: list[Lowered]
    checks: list[compile_facts.CheckFacts | None]
    state: list[tuple[State, ...]]


@refusals.explain_failure
@acceleration.rare_collections()
def run_stages(
    request: compile_facts.CompileRequest, progress: Progress, *, is_alone: bool = False
) -> compile_facts.CompileOutput:
    """Compile, write every file into the (existing) output folder and return the facts. Raises InputError, UsageError
    or BuildError; a failed run leaves the files of an earlier one as they were. Where the process `is_alone` with
    this model, to its end, the facts say what the model read."""
    clock, environment = StageClock(progress), dict(os.environ)
    spec = parse_model_spec(request.model)
    if spec.kind == TFLITE:
        return tflite.run_stages(request, spec, clock)
    with clock.stage("import"):
        import_tools()
    recorder = model_reads.Recorder(environment) if is_alone and spec.kind == "python" else None
    with clock.stage("model"):
        loaded = loading.load_model(spec, trust=request.options.trust, inputs=request.options.inputs)
        found = pipeline.plans_of(request, loading.with_added_lines(loaded, request.lines))
    config = vela_config.chosen_config(request.options)
    finder = SourceFinder(None if spec.path is None else spec.path.resolve().parent, found[0].lines)
    with (
        acceleration.accelerated(),
        _compiler(request).captured(config) as captures,
        tool_hooks.progress_told(progress),
        lines_recorded(finder),
    ):
        manager, methods, state = _lower(request, found, config, clock, finder)
        checks = [pipeline.check_facts_of(request, row, manager, clock) for row in methods]
        program = _Program(request, spec, captures, finder, manager, methods, checks, state)
    for row in program.methods:
        layers = row.method.plan.layers
        if layers is not None:
            with clock.stage("evaluate"):
                cpu_calls = [name for name, _ in finished_program.kernel_calls(program.manager, row.name)]
                layers.finish(row.method.program, cpu_calls, captures, finder)
    output = _output(program, clock)
    if recorder is not None and spec.path is not None:
        return replace(output, reads=recorder.reads(spec.path))
    if loaded.origin is not None:
        return replace(
            output, reads=model_reads.reads_of_files(loaded.origin.file.path, loaded.origin.file.beside)
        )
    return output


def _output(program: _Program, clock: StageClock) -> compile_facts.CompileOutput:
    request, spec = program.request, program.spec
    without = "" if request.options.delegate else "delegation was switched off"
    if request.core is not None:
        without = f"{request.core} has no NPU"
    operators = [
        finished_program.find_cpu_operators(program.manager, program.finder, without=without, method=row.name)
        for row in program.methods
    ]
    # What no kernel does is refused where the program is checked.
    strict = request.check_folder is not None
    lacking = [text for rows in operators for text in refusals.kernel_warnings(rows, strict=strict)]
    with clock.stage("write"):
        delegates, data = _written(program)
    facts = [
        _facts(program, number, operators[number], delegates[number])
        for number in range(len(program.methods))
    ]
    first, plan = facts[0], program.methods[0].method.plan
    traced = [row.method.traced.warning for row in program.methods]
    return compile_facts.CompileOutput(
        name=spec.name,
        pte=request.out_dir / f"{spec.name}.pte",
        pte_sha256=filesystem.sha256_bytes(data),
        pte_bytes=len(data),
        log=request.out_dir / vela_delegates.LOG_NAME,
        etrecord=f"{spec.name}{finished_program.ETRECORD_SUFFIX}" if request.options.etrecord else None,
        model_source=request.model,
        model_sha256=filesystem.sha256_file(spec.path or zoo.source(str(spec.entry))),
        target=request.target,
        core=request.core,
        quantize=plan.quantize,
        io_type=request.options.io,
        # int8 inputs and outputs add constant methods that give their scales.
        methods=tuple(row.name for row in program.manager.executorch_program.execution_plan),
        versions=finished_program.package_versions(),
        timings_s=clock.timings_s,
        warnings=tuple(_warnings(program, sum(map(len, delegates)), (*traced, *lacking))),
        prequantized=plan.prequantized,
        own_quantizer=None if plan.quantizer is None else plan.quantizer.kind,
        evaluation=program.methods[0].method.evaluation,
        entry=first.name,
        **first.of_method(),
        fed=_fed(program),
        other_methods=tuple(facts[1:]),
    )


def _facts(
    program: _Program, number: int, operators: tuple[CpuOperator, ...], delegates: tuple[Delegate, ...]
) -> compile_facts.MethodFacts:
    request, manager, row = program.request, program.manager, program.methods[number]
    plan, chain = row.method.plan, row.method.chain
    start = None
    if request.locate and request.check_folder is not None:
        folder = compile_facts.method_folder(request.check_folder, row.name)
        start = fault_finding.fault_start(
            row.method.program, plan.inputs, program.captures, folder, program.finder
        )
    return compile_facts.MethodFacts(
        name=row.name,
        io=request.out_dir / _io_name(program, number),
        calibration_source=plan.calibration_source,
        calibration_samples=len(plan.calibration),
        **finished_program.program_tensors(manager, row.name),
        cpu_operators=operators,
        delegates=delegates,
        check=program.checks[number],
        start=start,
        delegation=row.delegation,
        layout=finished_program.find_layout_changes(manager, row.name),
        chain=None if chain is None else chain.facts,
        state=program.state[number],
        rewrites=row.method.traced.rewrites,
        refinements=row.method.refinements,
    )


def _io_name(program: _Program, number: int) -> str:
    name = program.spec.name
    return f"{name}.{program.methods[number].name}.io.npz" if number else f"{name}.io.npz"


def _written(program: _Program) -> tuple[list[tuple[Delegate, ...]], bytes]:
    request, name, captures = program.request, program.spec.name, program.captures
    etrecord, data = f"{name}{finished_program.ETRECORD_SUFFIX}", bytes(program.manager.buffer)
    delegates = []
    with vela_delegates.published_folder(request.out_dir, etrecord, f"{name}{FED_SUFFIX}") as folder:
        for number, row in enumerate(program.methods):
            prefix = f"{row.name}." if number else ""
            write = _compiler(request).write
            delegates.append(write(folder, program.manager, captures, program.finder, row.name, prefix))
            tensors = ([tensor_arrays.as_numpy(item) for item in part] for part in (row.inputs, row.outputs))
            npz.write_npz(folder / _io_name(program, number), tensor_arrays.io_arrays(*tensors))
        fed, method = _fed(program), program.methods[0].method
        if fed is not None and fed.file:
            plan = method.plan
            _write_fed_steps(folder / fed.file, method.program, plan.inputs, plan.feeds, method.traced.state)
        if request.options.etrecord:
            finished_program.write_etrecord(folder / etrecord, program.manager, captures)
        filesystem.write_bytes(folder / f"{name}.pte", data)
    return delegates, data


def _fed(program: _Program) -> Fed | None:
    """What the model's file declares of feeds. Steps are executed in PyTorch where the program takes floats."""
    declared = program.methods[0].method.plan.feeds
    if not declared.feeds:
        return None
    file = f"{program.spec.name}{FED_SUFFIX}" if program.request.options.io == "float" else None
    return Fed(feeds=tuple(map(str, declared.feeds)), steps=declared.steps, file=file)


def _write_fed_steps(
    path: Path, program: Any, inputs: tuple[Any, ...], feeds: DeclaredFeeds, state: InitialState
) -> None:
    """Run the exported `program` from its initial `state` and write ``input0``…, as the first step takes them, and
    ``output0``… of all steps, with a leading axis. InputError for feeds that do not fit the model."""
    import torch

    given = tuple((tensor_arrays.as_numpy(item),) for item in inputs)
    stepper = Stepper(Steps(feeds.steps, given, feeds.feeds))
    module = program.module()
    found: list[list[Any]] = []
    with torch.no_grad(), state.restored(module):
        while not stepper.is_over:
            values = tensor_arrays.tensors_like(stepper.inputs(), inputs)
            outputs = [tensor_arrays.as_numpy(item) for item in execution.run_eager(module, values)]
            if not found:
                _check_fed_steps(feeds, [row[0] for row in given], outputs)
            found.append(outputs)
            try:
                stepper.take(dict(enumerate(outputs)))
            except SdkError as error:
                raise InputError(f"step {len(found) - 1} of the feeds: {error.message}") from error
    columns = zip(*found, strict=True)
    arrays = {f"input{number}": row[0] for number, row in enumerate(given)}
    npz.write_npz(path, arrays | {f"output{number}": np.stack(rows) for number, rows in enumerate(columns)})


def _check_fed_steps(feeds: DeclaredFeeds, inputs: list[Any], outputs: list[Any]) -> None:
    described = [[(row.dtype.name, row.shape) for row in rows] for rows in (inputs, outputs)]
    for feed in feeds.feeds:
        try:
            check_feed(feed, *described)
        except SdkError as error:
            raise InputError(f"the file's feeds do not fit its model: {error.message}", error.hint) from error


def _compiler(request: compile_facts.CompileRequest) -> DelegateCompiler:
    return WITHOUT_VELA if request.without_vela else VELA


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
    request: compile_facts.CompileRequest,
    found: Sequence[Plan],
    config: VelaConfig | None,
    clock: StageClock,
    finder: SourceFinder,
) -> tuple[Any, list[Lowered], list[tuple[State, ...]]]:
    spec = None
    if request.target is not None:
        ini = lowering.VELA_CONFIG if config is None else config.stored_name
        spec = lowering.compile_spec(request.target, ini, request.options.vela_flags)
    traced = pipeline.with_shared_state(
        [pipeline.traced_method(request, plan, clock, finder) for plan in found]
    )
    rows = [
        pipeline.lowered_method(request, pipeline.evaluated_method(request, row, clock), spec, clock)
        for row in pipeline.quantised_methods(request, traced, spec, clock)
    ]
    with clock.stage("lower"):
        rows = pipeline.with_integer_state(rows)
        one = rows[0].edge if rows[0].name == ENTRY and len(rows) == 1 else None
        manager = lowering.to_executorch(one or lowering.join_methods({row.name: row.edge for row in rows}))
    state = [
        finished_program.find_state(manager, row.method.traced.written, row.method.read, row.name)
        for row in rows
    ]
    return manager, rows, state


def _warnings(program: _Program, delegates: int, first: Sequence[str | None]) -> list[str]:
    found, request = [text for text in first if text], program.request
    if request.target is not None and request.options.delegate and not delegates:
        found.append("Nothing was delegated to the NPU: every operator runs on the CPU.")
    samples = [
        text
        for row in program.methods
        for text in quantizing.calibration_warnings(
            row.method.plan.inputs, row.method.plan.calibration, row.method.plan.calibration_source
        )
    ]
    return list(dict.fromkeys([*found, *samples, *cache.take_notes()]))


def main() -> None:
    """Run the request of the command line and report through the pipe."""
    request = compile_facts.from_json(compile_facts.CompileRequest, json.loads(sys.argv[1]))
    with os.fdopen(int(sys.argv[2]), "w", encoding="utf-8") as stream:

        def send(message: dict[str, Any]) -> None:
            stream.write(compile_facts.to_json(message) + "\n")
            stream.flush()

        try:
            output = run_stages(request, lambda stage: send({"stage": stage}), is_alone=True)
        except Exception as error:
            send(error_message(error))
            with contextlib.suppress(OSError):  # the log's disk may be what is full
                traceback.print_exc()
        else:
            send({"output": output})


def _as_sdk_error(error: Exception) -> SdkError:
    if errors.is_out_of_memory(error):
        return errors.out_of_memory(f"compiling the model: {getattr(error, 'message', error)}", MemoryError())
    if isinstance(error, SdkError):
        return error
    if isinstance(error, ImportError):
        return ToolError(
            f"the compiler's packages do not import: {error}", "pip install 'ethosu-sdk[compile]'"
        )
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        where = error.filename or "the compiler's output"
        return BuildError(
            f"cannot write {where}: {error.strerror}", "free some space or choose another folder with -o"
        )
    return BuildError(f"compilation failed: {plain_text.error(error)}", tool_hooks.LOG_HINT)


def error_message(error: Exception) -> dict[str, Any]:
    known = _as_sdk_error(error)
    return {"error": {"class": type(known).__name__, "message": known.message, "hint": known.hint}}


if __name__ == "__main__":
    main()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(0)  # threads that the user's file started do not keep the process
