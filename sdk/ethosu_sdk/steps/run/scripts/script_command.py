"""`ethosu-sdk run --script`: the methods of a program in turn; script.json, and a record of each call."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.table import Table

from ethosu_sdk import provenance, pte, schema
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.console.terminal import escape
from ethosu_sdk.errors import InputError, UsageError, VerdictError
from ethosu_sdk.feeds import stepping
from ethosu_sdk.files import hashing, json_text, locks, writing
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.records.common import FileDigest, Model
from ethosu_sdk.records.sequences.script import Call as CallRecord, Script
from ethosu_sdk.results import bundle, host_facts, locations, program_files
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.run import host, run_command, runners
from ethosu_sdk.steps.run.execution import Execution
from ethosu_sdk.steps.run.host import HostCall
from ethosu_sdk.steps.run.job import UART_NAME, RunJob
from ethosu_sdk.steps.run.options import HOST, OWN, RunOptions
from ethosu_sdk.steps.run.reference import Reference
from ethosu_sdk.steps.run.run_record import Verdict
from ethosu_sdk.steps.run.scripts import on_board, reading
from ethosu_sdk.steps.run.scripts.reading import Call
from ethosu_sdk.steps.shared import compiled_core, hazards, memory_advice, systems, time_line
from ethosu_sdk.steps.shared.systems import Priced
from ethosu_sdk.steps.shared.time_line import CpuClock

_NO_REFERENCE = "the state that a call begins with is that of the calls before it"
# What a script says itself, or what counts one inference.
_REFUSED = (
    *("method", "inputs", "steps", "feed", "expect", "atol", "rtol", "growth"),
    *("state", "save_state"),
    *("repeat", "keep_state", "resident", "cpu_cycles", "cpu_clock_mhz"),
)
_HINT = "a script names methods, inputs, steps and feeds for each call"


@dataclass(frozen=True)
class ScriptResult:
    """A script that ran: its record, the folder of it, and those of its calls in their order."""

    folder: Path
    record: Record
    calls: tuple[Path, ...]


def run(
    model: str, compile_options: CompileOptions, options: RunOptions, out_dir: Path | None, reporter: Reporter
) -> ScriptResult:
    """Run the script of `options` on `model`, compiling and building what is missing or stale.

    Raises VerdictError, after everything was written, when a call has not passed.
    """
    _check(options)
    runners.check(options)
    run_command.check_board(model, options, compile_options)
    path = run_command.program_file(model, compile_options, out_dir, reporter)
    program = pte.read(path, run_command.data_paths(model, options))
    options = replace(options, core=compiled_core.of(path, program))
    assert options.script is not None
    rows = reading.read(options.script, program.methods)
    priced = options.priced or systems.asked_for(path, program, compile_options)
    run_command.machine(program, priced, options)  # an error here is of no call
    clock = time_line.cpu_clock(compile_options.system, options.cpu_clock_mhz, priced)
    folder = locations.for_pte(path, program.target(), out_dir)
    with locks.locked(folder), bundle.published(folder, "run") as add:
        run_command.remove_results(folder)
        start = time.monotonic()
        calls = _jobs(path, program, folder, options, rows, (priced, clock), reporter)
        with memory_advice.added(path, compiled_here=not model.endswith(".pte")):
            execute = host.execute_calls if calls[0].job.choice.board == HOST else on_board.execute
            executions = execute(calls, reporter)
        records = _written(calls, executions, start, reporter)
        record = _record(calls, records, options.script, time.monotonic() - start)
        schema.check(record, "the record of the script")
        json_text.write_json(folder / kinds.SCRIPT.file, record)
        names = [f"{row['folder']}/{name}" for row in record["calls"] for name in _FILES]
        log = [UART_NAME] if (folder / UART_NAME).is_file() else []
        add(kinds.SCRIPT.file, *log, *names, *(executions[0].built or run_command.earlier_build(folder)))
    reporter.show(_summary(record, folder))
    reporter.emit(record)
    _raise_if_failed(record)
    return ScriptResult(folder, record, tuple(folder / row["folder"] for row in record["calls"]))


_FILES = (kinds.RUN.file, run_command.OUTPUTS_NAME)


def _check(options: RunOptions) -> None:
    """UsageError for an option that does not go with a script."""
    default = RunOptions()
    for name in _REFUSED:
        if getattr(options, name) != getattr(default, name):
            raise UsageError(f"--{name.replace('_', '-')} cannot be combined with --script", _HINT)
    if options.runtime != OWN:
        raise UsageError("--script runs on the SDK's own firmware, or on the host", "leave --runtime out")
    if options.split:
        raise UsageError("--split takes one inference, not a script", "leave --script out")


def _jobs(
    path: Path,
    program: pte.Pte,
    folder: Path,
    options: RunOptions,
    rows: Sequence[Call],
    pricing: tuple[Priced | None, CpuClock],
    reporter: Reporter,
) -> list[HostCall]:
    """The job of each call. Errors name the call's line of the script."""
    found: list[HostCall] = []
    for number, row in enumerate(rows):
        own = replace(options, method=row.method, inputs=row.inputs, steps=row.steps, feed=row.feed)
        place = folder / run_command.CALLS / f"{number}-{row.method}"
        try:
            _, job = run_command.resolve(path, program, place, own, pricing, reporter)
            steps = replace(job.samples.steps, first_step=sum(call.job.samples.count for call in found))
            job = replace(job, samples=replace(job.samples, steps=steps))
            _check_takes(row, found[-1].job.plan if found else None, job.plan)
        except (UsageError, InputError) as error:
            raise InputError(f"{row.place}: {error.message}", error.hint) from error
        found.append(HostCall(job, row.take))
    return found


def _check_takes(row: Call, before: pte.ExecutionPlan | None, plan: pte.ExecutionPlan) -> None:
    """UsageError for something that the call cannot take from the one before."""
    outputs = () if before is None else before.output_tensors()
    described = [[(part.dtype, part.sizes) for part in parts] for parts in (plan.input_tensors(), outputs)]
    for feed in row.take:
        stepping.check(feed, *described)
        order = outputs[feed.output].dim_order
        if order != (
            plan.input_tensors()[feed.input].dim_order if feed.is_copy else tuple(range(len(order)))
        ):
            raise UsageError(f"{feed}: the two methods keep the axes in different orders")


def _written(
    calls: Sequence[HostCall], executions: Sequence[Execution], start: float, reporter: Reporter
) -> list[Record]:
    """Write outputs and record of each call."""
    gap = {"path": "/reference", "reason": _NO_REFERENCE}
    found = []
    for call, execution in zip(calls, executions, strict=True):
        writing.make_directory(call.job.folder)
        judged = Verdict(
            [execution.done, *execution.checks],
            Reference(unavailable=(gap,)),
            tuple(hazards.warnings(call.job.plan)),
        )
        found.append(run_command.write(call.job, execution, judged, start, reporter))
    return found


def _record(calls: Sequence[HostCall], records: Sequence[Record], script: Path, wall_time_s: float) -> Record:
    job = calls[0].job
    inputs = [
        *program_files.entries(job.path, job.program),
        provenance.file_entry("script", script),
    ]
    tools = [dict(row) for row in records[0]["provenance"]["tools"]]
    passed = all(row["status"] == "pass" for row in records)
    rows = tuple(_call(call.job, record) for call, record in zip(calls, records, strict=True))
    model = Model(file=job.path.name, sha256=job.program.sha256, bytes=job.program.size, entry=job.plan.name)
    return Script(
        status="pass" if passed else "fail",
        **provenance.origin(inputs, tools),
        model=model,
        script=FileDigest(file=script.name, sha256=hashing.sha256_file(script)),
        board=job.choice.board,
        calls=rows,
        wall_time_s=round(wall_time_s, 3),
        host=host_facts.this_host(),
    ).to_json()


def _call(job: RunJob, record: Record) -> CallRecord:
    npu = record.get("npu", {}).get("cycles")
    return CallRecord(
        method=job.plan.name,
        steps=job.samples.count,
        folder=f"{run_command.CALLS}/{job.folder.name}",
        status=record["status"],
        run_sha256=hashing.sha256_file(job.folder / kinds.RUN.file),
        first_step_npu_cycles=None if npu is None else npu["value"],
    )


def _summary(record: Record, folder: Path) -> Table:
    table = Table("call", "method", "verdict", box=None, pad_edge=False)
    table.add_column("steps", justify="right")
    table.add_column("NPU cycles of the first", justify="right")
    table.add_column("files")
    for number, row in enumerate(record["calls"]):
        cycles = row.get("first_step_npu_cycles")
        table.add_row(
            str(number),
            escape(row["method"]),
            row["status"],
            f"{row['steps']:,}",
            "" if cycles is None else f"{cycles:,}",
            escape(str(folder / row["folder"])),
        )
    return table


def _raise_if_failed(record: Record) -> None:
    failed = [str(number) for number, row in enumerate(record["calls"]) if row["status"] != "pass"]
    if failed:
        raise VerdictError(
            f"call {', '.join(failed)} of the script has not passed",
            "the folders of the calls say why",
            recorded=True,
        )
