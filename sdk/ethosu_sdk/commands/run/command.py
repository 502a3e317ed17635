"""`ethosu-sdk run`: the whole way, from a model or a `.pte` to a validated run.json."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from ethosu_sdk import npz, pte, records, schema
from ethosu_sdk.commands import build
from ethosu_sdk.commands.compile import command as compile_command
from ethosu_sdk.commands.compile.options import CompileOptions
from ethosu_sdk.commands.run import (
    executorch as run_executorch,
    firmware as run_firmware,
    host as run_host,
    inputs as run_inputs,
    memory as run_memory,
    record as run_record,
    reference as run_reference,
    repeats as run_repeats,
    second_opinion as run_second_opinion,
)
from ethosu_sdk.commands.run.execution import Execution
from ethosu_sdk.commands.run.inputs import Samples
from ethosu_sdk.commands.run.options import (
    EXECUTORCH,
    HOST,
    OWN,
    RUNTIMES,
    SIMULATORS,
    VELA_TIMING,
    RunOptions,
)
from ethosu_sdk.commands.run.second_opinion import SecondOpinion
from ethosu_sdk.commands.shared import bundle, hazards, locations, memory_advice, memory_timing, results
from ethosu_sdk.commands.shared.reporter import Reporter
from ethosu_sdk.commands.shared.terminal import escape
from ethosu_sdk.errors import UsageError, VerdictError
from ethosu_sdk.npu.timing.system_config import SystemConfig
from ethosu_sdk.records import Record
from ethosu_sdk.report import verdict
from ethosu_sdk.targets import suggestion

RECORD_NAME = "run.json"
OUTPUTS_NAME = "outputs.npz"
_NO_SPLIT = (
    "--split runs one set of inputs on the SDK's own firmware",
    "give one set of inputs; the simulator is QEMU or an FVP, the runtime `own`",
)
_RESULTS = (
    *(RECORD_NAME, OUTPUTS_NAME, run_firmware.UART_NAME),
    *(run_second_opinion.OUTPUTS_NAME, run_second_opinion.UART_NAME),
)


@dataclass(frozen=True)
class Finished:
    """A run of the program `pte`, whose record and outputs are in `folder`."""

    folder: Path
    record: Record
    pte: Path


def run(
    model: str, compile_options: CompileOptions, options: RunOptions, out_dir: Path | None, reporter: Reporter
) -> Finished:
    """Run `model`, compiling and building what is missing or stale; the record that was written, and where.

    Raises VerdictError, after everything was written, when an expectation is not met.
    """
    if options.simulator not in SIMULATORS:
        raise UsageError(
            f"unknown simulator '{options.simulator}'", suggestion(options.simulator, SIMULATORS)
        )
    if options.runtime not in RUNTIMES:
        raise UsageError(f"unknown runtime '{options.runtime}'", suggestion(options.runtime, RUNTIMES))
    path = _ready_pte(model, compile_options, out_dir, reporter)
    program = pte.read(path)
    folder = locations.for_pte(path, program.target(), out_dir)
    with records.locked(folder), bundle.published(folder, "run") as add:
        # A result of an earlier run must not be taken for this one's, should this one fail.
        for name in _RESULTS:
            (folder / name).unlink(missing_ok=True)
        with memory_advice.given(path, compiled_here=not model.endswith(".pte")):
            record, built = _run_in(folder, path, program, options, reporter)
        add(*_RESULTS, *(built or _earlier_build(folder)))
    reporter.show(run_record.summary(record, folder))
    reporter.emit(record)
    if record["status"] != "pass":
        failed = [row for row in record["verdict"]["checks"] if row["status"] == "fail"]
        raise VerdictError(
            "the outputs are not as expected:\n" + "\n".join(f"  {r['name']}: {r['detail']}" for r in failed),
            f"the outputs are in {folder / OUTPUTS_NAME}",
            recorded=True,
        )
    return Finished(folder, record, path)


def _earlier_build(folder: Path) -> tuple[str, ...]:
    """The files of the firmware that an earlier command built in the folder. InputError when its record changed."""
    made = folder / build.RECORD_NAME
    return build.files(results.read(made)) if made.is_file() else ()


def _ready_pte(model: str, options: CompileOptions, out_dir: Path | None, reporter: Reporter) -> Path:
    if model.endswith(".pte"):
        return locations.require_pte(Path(model))
    return compile_command.compile_model(model, options, out_dir, reporter.for_step(), reuse=True)


def _run_in(
    folder: Path, path: Path, program: pte.Pte, options: RunOptions, reporter: Reporter
) -> tuple[Record, Sequence[str]]:
    """The record that was written, and the files of the firmware if this run built it."""
    start = time.monotonic()
    plan = program.plan()
    run_memory.check_program(plan)
    hazards.refuse_lost_tables([plan])
    samples = run_inputs.load(options.inputs, path, plan)
    run_memory.check_outputs(plan, samples)
    if samples.source.startswith("random"):
        reporter.warn(f"no inputs were given: {escape(samples.source)} are used")
    expected = None if options.expect is None else run_inputs.load_expected(options.expect, plan, samples)
    if options.split and (options.simulator == HOST or options.runtime != OWN or samples.count > 1):
        raise UsageError(*_NO_SPLIT)
    if options.runtime != OWN and options.memory_timing != VELA_TIMING:
        raise UsageError("--memory-timing is for the SDK's own firmware", "leave --runtime out")
    memories = memory_timing.chosen(program.target(), options.memory_timing)
    ran = _execute(folder, path, program, samples, options, reporter, memories)
    execution, opinion = ran.execution, ran.opinion
    found = tuple(hazards.warnings(plan))
    for sentence in found:
        reporter.warn(escape(f"{sentence}. {hazards.HINT}"))
    execution = replace(execution, notes=(*execution.notes, *found))
    if execution.npu is not None:
        timing = memory_timing.part(memories, options.memory_timing)
        execution = replace(execution, npu={**execution.npu, **timing})
    outputs = execution.outputs
    npz.write_npz(folder / OUTPUTS_NAME, {f"output{i}": array for i, array in enumerate(outputs)})
    reference = run_reference.Reference()
    if options.expect is None:
        reference = run_reference.compare(path, program, samples, outputs)
    checks = [
        execution.done,
        *run_repeats.checks(execution.repeated),
        *execution.checks,
        *_comparison(outputs, expected, options),
        *reference.checks,
        *(opinion.checks if opinion is not None else ()),
    ]
    facts = run_record.RunFacts(
        path=path,
        program=program,
        samples=samples,
        outputs_file=OUTPUTS_NAME,
        checks=checks,
        execution=execution,
        reference=reference,
        wall_time_s=time.monotonic() - start,
        second_opinion=opinion.part if opinion is not None else {},
    )
    record = run_record.make(facts)
    schema.check(record, "the run result")
    records.write_json(folder / RECORD_NAME, record)
    return record, execution.built


@dataclass(frozen=True)
class _Ran:
    """What ran the program, and what another runtime made of it if that was asked for."""

    execution: Execution
    opinion: SecondOpinion | None = None


def _execute(
    folder: Path,
    path: Path,
    program: pte.Pte,
    samples: Samples,
    options: RunOptions,
    reporter: Reporter,
    memories: SystemConfig | None,
) -> _Ran:
    if options.simulator == HOST:
        return _Ran(run_host.execute(path, program, samples, options, reporter, memories))
    if options.runtime == EXECUTORCH:
        log = folder / run_firmware.UART_NAME
        return _Ran(run_executorch.execute(path, program, samples, options, log, reporter))
    if options.runtime == OWN:
        return _Ran(run_firmware.execute(path, program, samples, options, folder, reporter, memories))
    ready = run_executorch.prepare(path, program, samples, options)  # which refuses before anything is built
    own = run_firmware.execute(path, program, samples, options, folder, reporter, memories)
    log = folder / run_second_opinion.UART_NAME
    other = run_executorch.run(ready, samples, options, log, reporter)
    opinion = run_second_opinion.compared(program, own, other, folder)
    return _Ran(
        replace(
            own,
            provenance_inputs=[*own.provenance_inputs, *other.provenance_inputs],
            tools=[*own.tools, *(row for row in other.tools if row not in own.tools)],
        ),
        opinion,
    )


def _comparison(
    outputs: Sequence[npt.NDArray[Any]], expected: list[npt.NDArray[Any]] | None, options: RunOptions
) -> list[verdict.Check]:
    if expected is None:
        return []
    return verdict.compare_outputs(outputs, expected, verdict.Tolerance(options.atol, options.rtol))
