"""`ethosu-sdk run --script`: methods of a program in turn, as a TOML file says; script.json, a record a call."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, structs
from rich.table import Table

from ethosu_sdk.base import filesystem, toml_source
from ethosu_sdk.base.errors import InputError, UsageError, VerdictError
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.targets import suggestion
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.base.toml_source import Place, TomlKind, TomlSource, short_word
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.firmware_build import memory_fit, program_checks
from ethosu_sdk.program import feeds, protocol
from ethosu_sdk.program.execution_plan import ExecutionPlan
from ethosu_sdk.program.feeds import Feed
from ethosu_sdk.program.protocol import INPUT_IMAGE_NONCE_BYTES, INPUT_IMAGE_SYMBOL
from ethosu_sdk.records import bundle, kinds, provenance, result_files, validation
from ethosu_sdk.records.common import FileDigest, Unavailable
from ethosu_sdk.records.run import Run
from ethosu_sdk.records.sequences import Call, Script
from ethosu_sdk.run import evidence, firmware, host, input_image, run_command, uart
from ethosu_sdk.run.evidence import ExpectedCall
from ethosu_sdk.run.execution import Execution
from ethosu_sdk.run.firmware import Boot, Groups, SplitStreams
from ethosu_sdk.run.host import HostCall
from ethosu_sdk.run.input_image import ImageCall, ImageOptions, SequenceBlock
from ethosu_sdk.run.job import UART_NAME, RunJob, Setting
from ethosu_sdk.run.options import HOST, LAST_STEP, OWN, RunOptions
from ethosu_sdk.run.reference import Reference
from ethosu_sdk.run.run_record import RunVerdict
from ethosu_sdk.simulate import simulators
from ethosu_sdk.simulate.simulation import SimulationRequest

_KIND = TomlKind("a script", 1 << 20, 20_000)
_CALL = "call"
# What a script says itself, or what counts one inference.
_REFUSED = (
    *("method", "inputs", "steps", "feed", "expect", "atol", "rtol", "growth"),
    *("state", "save_state"),
    *("repeat", "keep_state", "resident", "cpu_cycles", "cpu_clock_mhz"),
)


def run_script(
    model: str, compile_options: CompileOptions, options: RunOptions, out_dir: Path | None, reporter: Reporter
) -> Script:
    """Run the script of `options` on `model`, compiling and building what is missing or stale. The record; raises
    VerdictError, after everything was written, when a call has not passed."""
    assert options.script is not None
    _check_options(options)
    setting = run_command.resolve_setting(model, compile_options, options, out_dir, reporter)
    script = read_script(options.script, setting.program.methods)
    folder = result_files.folder_for_pte(setting.path, setting.target, out_dir)
    readers = run_command.READERS
    with filesystem.locked_folder(folder), bundle.writing_folder(folder, "run", outdated=readers) as add:
        run_command.remove_results(folder)
        start = time.monotonic()
        calls = _jobs(setting, folder, script, reporter)
        with memory_fit.advice_added(setting.path, compiled_here=not model.endswith(".pte")):
            execute = host.execute_calls if setting.choice.board == HOST else execute_on_board
            executions = execute(calls, reporter)
        runs = [
            _written(call.job, execution, start, reporter)
            for call, execution in zip(calls, executions, strict=True)
        ]
        record = _record(calls, runs, options.script, time.monotonic() - start)
        path = folder / kinds.SCRIPT.file
        content = validation.write_record(path, record, "the record of the script")
        files = (kinds.RUN.file, run_command.OUTPUTS_NAME)
        names = [f"{row.folder}/{name}" for row in record.calls for name in files]
        log = [UART_NAME] if (folder / UART_NAME).is_file() else []
        add(path.name, *log, *names, *(executions[0].built or run_command.earlier_build(folder)))
    reporter.show(_summary(record, folder))
    reporter.emit(content)
    failed = [str(number) for number, row in enumerate(record.calls) if row.status != "pass"]
    if failed:
        raise VerdictError(
            f"call {', '.join(failed)} of the script has not passed",
            "the folders of the calls say why",
            recorded=True,
        )
    return record


def _check_options(options: RunOptions) -> None:
    default = RunOptions()
    for name in _REFUSED:
        if getattr(options, name) != getattr(default, name):
            raise UsageError(
                f"--{name.replace('_', '-')} cannot be combined with --script",
                "a script names methods, inputs, steps and feeds for each call",
            )
    if options.runtime != OWN:
        raise UsageError("--script runs on the SDK's own firmware, or on the host", "leave --runtime out")
    if options.split:
        raise UsageError("--split takes one inference, not a script", "leave --script out")


# The script, as its TOML file has it: which methods run in turn, for how many steps, with which inputs.


class _Row(Struct, forbid_unknown_fields=True):
    method: str
    inputs: (
        Annotated[str, Meta(pattern=r"\A[^\0]+\Z", extra={"words": "the name of an .npz file"})] | None
    ) = None
    steps: Annotated[int, Meta(ge=1, le=65_536)] | None = None
    feed: list[str] = []
    take: list[str] = []


class _File(Struct, forbid_unknown_fields=True):
    call: list[_Row] = []


class ScriptCall(Struct, frozen=True):
    """`steps` inferences of `method` in a row (None: as many as the inputs have) with the inputs in a file (None: the
    example inputs). `feed` works inside of the call; `take` makes inputs of the first step from the outputs of the
    call before. `place` is its line of the script."""

    method: str
    inputs: Path | None = None
    steps: int | None = None
    feed: tuple[str, ...] = ()
    take: tuple[Feed, ...] = ()
    place: str = ""


def read_script(path: Path, methods: Sequence[str]) -> tuple[ScriptCall, ...]:
    """The calls of the script at `path`, for a program with these methods. InputError, with the line, for what is no
    script or does not fit."""
    source, table = toml_source.read_toml(path, _KIND)
    rows = source.convert(table, _File).call
    if not rows:
        raise InputError(
            f"{path} has no calls",
            "give tables [[call]] with method = 'NAME'; docs/guide/methods.md has an example",
        )
    if len(rows) > protocol.SEQUENCE_MAX_CALLS:
        raise InputError(f"{path} has {len(rows):,} calls; the limit is {protocol.SEQUENCE_MAX_CALLS:,}")
    found = tuple(_read_call(source, number, row, methods, path.parent) for number, row in enumerate(rows))
    if found[0].take:
        raise source.wrong((_CALL, 0, "take"), "the first call has no call before it to take anything from")
    return found


def _read_call(
    source: TomlSource, number: int, row: _Row, methods: Sequence[str], folder: Path
) -> ScriptCall:
    place = (_CALL, number)
    if row.method not in methods:
        message = f"the program has no method '{short_word(row.method)}'"
        raise source.wrong((*place, "method"), message, suggestion(short_word(row.method), methods))
    inputs = None if row.inputs is None else folder / row.inputs
    if inputs is not None and not inputs.is_file():
        message = f"there is no file {short_word(str(inputs))}"
        raise source.wrong((*place, "inputs"), message, "it is searched beside the script")
    take = _feeds(source, (*place, "take"), row.take)
    for feed in take:
        if feed.form == feeds.STEP or feed.stops:
            message = f"'{feed}' cannot be taken from another call"
            raise source.wrong((*place, "take"), message, "take an output, or a choice without stop")
    return ScriptCall(
        method=row.method,
        inputs=inputs,
        steps=row.steps,
        feed=tuple(map(str, _feeds(source, (*place, "feed"), row.feed))),
        take=take,
        place=source.locate(place),
    )


def _feeds(source: TomlSource, place: Place, texts: Sequence[str]) -> tuple[Feed, ...]:
    try:
        return feeds.parse_feeds(tuple(texts))
    except UsageError as error:
        raise source.wrong(place, error.message, error.hint) from error


def _jobs(setting: Setting, folder: Path, script: Sequence[ScriptCall], reporter: Reporter) -> list[HostCall]:
    """The job of each call. Errors name the call's line of the script."""
    found: list[HostCall] = []
    for number, row in enumerate(script):
        own = replace(setting.options, method=row.method, inputs=row.inputs, steps=row.steps, feed=row.feed)
        place = folder / run_command.CALLS / f"{number}-{row.method}"
        try:
            job = run_command.resolve_job(structs.replace(setting, options=own), place, reporter)
            _check_takes(row, found[-1].job.plan if found else None, job.plan)
        except (UsageError, InputError) as error:
            raise InputError(f"{row.place}: {error.message}", error.hint) from error
        samples = job.samples.going_on(sum(call.job.samples.count for call in found))
        found.append(HostCall(structs.replace(job, samples=samples), row.take))
    return found


def _check_takes(row: ScriptCall, before: ExecutionPlan | None, plan: ExecutionPlan) -> None:
    inputs, outputs = plan.input_tensors(), () if before is None else before.output_tensors()
    described = [[(part.dtype, part.sizes) for part in parts] for parts in (inputs, outputs)]
    for feed in row.take:
        feeds.check_feed(feed, *described)
        order = outputs[feed.output].dim_order
        if order != (inputs[feed.input].dim_order if feed.is_copy else tuple(range(len(order)))):
            raise UsageError(f"{feed}: the two methods keep the axes in different orders")


def execute_on_board(calls: Sequence[HostCall], reporter: Reporter) -> list[Execution]:
    """Build the firmware with all methods of the `calls`, run them, and take the evidence of each."""
    first = calls[0].job
    names = _methods(calls)
    streams = program_checks.reach_of_streams(map(first.program.plan, names))
    simulator = firmware.simulator_of(first, streams)
    version = simulator.version()
    groups = simulators.event_groups(first.npu, first.events)
    if len(groups) > 1:
        raise UsageError(
            f"{len(first.events)} PMU events need several inferences each, but the calls of a script run once",
            "ask for fewer --events",
        )
    nonce = secrets.token_bytes(INPUT_IMAGE_NONCE_BYTES)
    rows = [
        ExpectedCall(
            firmware.expected_of(call.job, groups, SplitStreams(), simulator.figures, nonce), call.takes
        )
        for call in calls
    ]
    content = _content(calls, rows, names, groups)
    folder = first.folder.parent.parent
    image = firmware.build_image(first, folder, reporter, extra_image_bytes=len(content), methods=names)
    request = SimulationRequest(
        elf=image.firmware.elf,
        images=((image.firmware.symbols[INPUT_IMAGE_SYMBOL].address, content),),
        target=first.target,
        timeout_s=first.options.timeout_s,
        idle_timeout_s=first.options.idle_timeout_s(first.path),
        uart_log=folder / UART_NAME,
        compare_loaded=True,
        uart_tee=uart.step_stream(first.options.on_step),
    )
    with reporter.stage(f"running {counted(len(calls), 'call')} on {simulator.name}"):
        result = simulator.run(request)
    # What the firmware must say of each method that it loads.
    methods = [
        structs.replace(rows[0].expected, method=name, outputs=len(first.program.plan(name).outputs))
        for name in names
    ]
    log = uart.parse_uart(result.uart)
    evidence.raise_job_failure(result.npu_jobs, log)
    found = evidence.evidence_of_calls(log, methods, rows, result.exit_code)
    if result.npu_jobs is not None:
        whole = structs.replace(
            found[0],
            jobs=sum(row.jobs for row in found),
            pmu=tuple(sample for row in found for sample in row.pmu),
        )
        evidence.crosscheck_jobs(whole, [job.cycles for job in result.npu_jobs])
    not_counted = "the calls of a script are not counted one by one"
    return [
        firmware.execution_of(
            Boot(call.job, simulator, version, image, groups, SplitStreams(), row.expected, not_counted),
            reported,
            result,
        )
        for call, row, reported in zip(calls, rows, found, strict=True)
    ]


def _methods(calls: Sequence[HostCall]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(call.job.plan.name for call in calls))
    if len(names) > protocol.MAX_METHODS:
        raise UsageError(
            f"the script calls {len(names)} methods, but a firmware loads {protocol.MAX_METHODS} at most"
        )
    count = sum(len(call.takes) + len(call.job.samples.steps.feeds) for call in calls)
    if count > protocol.SEQUENCE_MAX_FEEDS:
        raise UsageError(f"the script has {count} feeds, but a run has {protocol.SEQUENCE_MAX_FEEDS} at most")
    return names


def _content(
    calls: Sequence[HostCall], rows: Sequence[ExpectedCall], names: Sequence[str], groups: Groups
) -> bytes:
    first = calls[0].job
    parts = []
    for call, row in zip(calls, rows, strict=True):
        steps = row.expected.steps
        sets = [[array.tobytes() for array in steps.rows(step)] for step in range(steps.count)]
        block = SequenceBlock(tuple(map(len, steps.given)), steps.feeds)
        parts.append(ImageCall(names.index(call.job.plan.name), sets, block, call.takes))
    columns = max(len(first.program.plan(name).inputs) for name in names)
    asked = ImageOptions(sends_last=first.options.outputs == LAST_STEP)
    return input_image.encode_image_of_calls(
        parts, columns, rows[0].expected.nonce, asked=asked, event_groups=groups
    )


def _written(job: RunJob, execution: Execution, start: float, reporter: Reporter) -> Run:
    filesystem.make_directory(job.folder)
    reason = "the state that a call begins with is that of the calls before it"
    verdict = RunVerdict(
        [execution.done, *execution.checks],
        Reference(unavailable=(Unavailable(path="/reference", reason=reason),)),
        tuple(program_checks.hazard_warnings(job.plan)),
    )
    return run_command.write_results(job, execution, verdict, start, reporter)


def _record(calls: Sequence[HostCall], runs: Sequence[Run], script: Path, wall_time_s: float) -> Script:
    first = calls[0].job
    rows = []
    for call, run in zip(calls, runs, strict=True):
        cycles = None if run.npu is None else run.npu.cycles
        rows.append(
            Call(
                method=call.job.plan.name,
                steps=call.job.samples.count,
                folder=f"{run_command.CALLS}/{call.job.folder.name}",
                status=run.status,
                run_sha256=filesystem.sha256_file(call.job.folder / kinds.RUN.file),
                first_step_npu_cycles=None if cycles is None else int(cycles.value),
            )
        )
    inputs = [
        *result_files.program_entries(first.path, first.program),
        provenance.file_entry("script", script),
    ]
    tools = [row.to_json() for row in runs[0].provenance.tools]
    return Script(
        status="pass" if all(run.status == "pass" for run in runs) else "fail",
        **provenance.origin(inputs, tools),
        model=runs[0].model,
        script=FileDigest(file=script.name, sha256=filesystem.sha256_file(script)),
        board=first.choice.board,
        calls=tuple(rows),
        wall_time_s=round(wall_time_s, 3),
        host=provenance.this_host(),
    )


def _summary(record: Script, folder: Path) -> Table:
    table = Table("call", "method", "verdict", box=None, pad_edge=False)
    table.add_column("steps", justify="right")
    table.add_column("NPU cycles of the first", justify="right")
    table.add_column("files")
    for number, row in enumerate(record.calls):
        cycles = row.first_step_npu_cycles
        table.add_row(
            str(number),
            escape(row.method),
            row.status,
            f"{row.steps:,}",
            "" if cycles is None else f"{cycles:,}",
            escape(str(folder / row.folder)),
        )
    return table
