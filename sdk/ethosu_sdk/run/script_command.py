"""`ethosu-sdk run --script`: methods of a program in turn, as a TOML file says; script.json, a record a call."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct
from rich.table import Table

from ethosu_sdk.base import filesystem, json_text, toml_source
from ethosu_sdk.base.errors import InputError, UsageError, VerdictError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.targets import suggestion
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.base.toml_source import Place, TomlKind, TomlSource, short_word
from ethosu_sdk.compile import pricing_system
from ethosu_sdk.compile.pricing_system import PricingSystem
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.firmware_build import build_command, memory_advice, program_checks
from ethosu_sdk.firmware_build.build_command import Built
from ethosu_sdk.firmware_build.program_firmware import BuildOptions
from ethosu_sdk.program import feeds, protocol, pte
from ethosu_sdk.program.execution_plan import ExecutionPlan
from ethosu_sdk.program.feeds import Feed
from ethosu_sdk.program.protocol import (
    INPUT_IMAGE_NONCE_BYTES,
    INPUT_IMAGE_SYMBOL,
    MAX_METHODS,
    SEQUENCE_MAX_FEEDS,
)
from ethosu_sdk.records import bundle, kinds, provenance, result_files, validation
from ethosu_sdk.records.common import FileDigest, Model
from ethosu_sdk.records.sequences import Call as CallRecord, Script
from ethosu_sdk.run import (
    evidence,
    evidence as call_evidence,
    firmware,
    host,
    input_image,
    run_command,
    runners,
    time_line,
    uart,
)
from ethosu_sdk.run.evidence import ExpectedCall
from ethosu_sdk.run.execution import Execution
from ethosu_sdk.run.firmware import Boot, SplitStreams
from ethosu_sdk.run.host import HostCall
from ethosu_sdk.run.input_image import ImageCall, ImageOptions, SequenceBlock
from ethosu_sdk.run.job import UART_NAME, RunJob
from ethosu_sdk.run.options import HOST, LAST_STEP, OWN, RunOptions
from ethosu_sdk.run.reference import Reference
from ethosu_sdk.run.run_record import RunVerdict
from ethosu_sdk.run.time_line import CpuClock
from ethosu_sdk.simulate import program_board, simulators
from ethosu_sdk.simulate.simulation import SimulationRequest
from ethosu_sdk.simulate.simulators import SimulatorOptions

# ---- steps.run.scripts.reading
# A script of calls, as its TOML file has it: which methods run in turn, for how many steps, with which inputs.

_KIND = TomlKind("a script", 1 << 20, 20_000)
_CALL = "call"
_TABLES_HINT = "give tables [[call]] with method = 'NAME'; docs/guide/methods.md has an example"


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


@dataclass(frozen=True)
class ScriptCall:
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
        raise InputError(f"{path} has no calls", _TABLES_HINT)
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


# ---- steps.run.scripts.on_board
# A script of calls on a simulated board: one firmware that loads all its methods, one boot.

_NO_CPU_CYCLES = "the calls of a script are not counted one by one"


def execute_on_board(calls: Sequence[HostCall], reporter: Reporter) -> list[Execution]:
    """Build the firmware with all methods of the `calls`, run them, and take the evidence of each."""
    first = calls[0].job
    names = _methods(calls)
    options = SimulatorOptions(
        fast=first.options.fast,
        simulated_limit_s=first.options.simulated_limit_s,
        memories=first.memories,
        streams=program_checks.reach_of_streams(map(first.program.plan, names)),
    )
    simulator = simulators.create_simulator(first.choice.simulator, first.npu, options, first.choice.board)
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
            replace(firmware.expected_of(call.job, groups, SplitStreams(), simulator.figures), nonce=nonce),
            call.takes,
        )
        for call in calls
    ]
    content = _content(calls, rows, names, groups)
    image = _script_image(first, names, len(content), reporter)
    request = SimulationRequest(
        elf=image.firmware.elf,
        images=((image.firmware.symbols[INPUT_IMAGE_SYMBOL].address, content),),
        target=first.target,
        timeout_s=first.options.timeout_s,
        idle_timeout_s=first.options.idle_timeout_s(first.path),
        uart_log=first.folder.parent.parent / UART_NAME,
        compare_loaded=True,
        uart_tee=uart.step_stream(first.options.on_step),
    )
    with reporter.stage(f"running {counted(len(calls), 'call')} on {simulator.name}"):
        result = simulator.run(request)
    methods = [_of_method(rows, first, name) for name in names]
    log = uart.parse_uart(result.uart)
    evidence.raise_job_failure(result.npu_jobs, log)
    found = call_evidence.evidence_of_calls(log, methods, rows, result.exit_code)
    if result.npu_jobs is not None:
        evidence.crosscheck_jobs(_joined(found), [job.cycles for job in result.npu_jobs])
    return [
        firmware.execution_of(
            Boot(call.job, simulator, version, image, groups, SplitStreams(), row.expected, _NO_CPU_CYCLES),
            reported,
            result,
        )
        for call, row, reported in zip(calls, rows, found, strict=True)
    ]


def _script_image(job: RunJob, names: tuple[str, ...], image_bytes: int, reporter: Reporter) -> Built:
    """The firmware that loads the methods, with room for an image of that size."""
    options = BuildOptions(
        board=job.choice.board,
        simulator=job.choice.simulator,
        extra_image_bytes=image_bytes,
        allow_spill=job.options.allow_spill,
        data_memory=job.options.data_memory,
        areas=None if job.priced is None else job.priced.areas,
        methods=names,
    )
    folder = job.folder.parent.parent
    return build_command.build_in(job.path, job.program, folder, options, reporter, job.choice.reason)


def _methods(calls: Sequence[HostCall]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(call.job.plan.name for call in calls))
    if len(names) > MAX_METHODS:
        raise UsageError(f"the script calls {len(names)} methods, but a firmware loads {MAX_METHODS} at most")
    count = sum(len(call.takes) + len(call.job.samples.steps.feeds) for call in calls)
    if count > SEQUENCE_MAX_FEEDS:
        raise UsageError(f"the script has {count} feeds, but a run has {SEQUENCE_MAX_FEEDS} at most")
    return names


def _of_method(rows: Sequence[ExpectedCall], job: RunJob, name: str) -> evidence.ExpectedRun:
    """What the firmware must say of a method that it loads."""
    outputs = len(job.program.plan(name).outputs)
    return replace(rows[0].expected, method=name, outputs=outputs)


def _content(
    calls: Sequence[HostCall],
    rows: Sequence[ExpectedCall],
    names: Sequence[str],
    groups: Sequence[Sequence[int]],
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


def _joined(found: Sequence[evidence.Evidence]) -> evidence.Evidence:
    """The jobs of all calls, as those of one run."""
    return replace(
        found[0],
        jobs=sum(row.jobs for row in found),
        pmu=tuple(sample for row in found for sample in row.pmu),
    )


# ---- steps.run.scripts.script_command
# `ethosu-sdk run --script`: the methods of a program in turn; script.json, and a record of each call.

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


def run_script(
    model: str, compile_options: CompileOptions, options: RunOptions, out_dir: Path | None, reporter: Reporter
) -> ScriptResult:
    """Run the script of `options` on `model`, compiling and building what is missing or stale.

    Raises VerdictError, after everything was written, when a call has not passed.
    """
    _check_options(options)
    runners.check_runner_options(options)
    run_command.check_board(model, options, compile_options)
    path = run_command.program_file(model, compile_options, out_dir, reporter)
    program = pte.read(path, run_command.data_paths(model, options))
    options = replace(options, core=program_board.compiled_core_of(path, program))
    assert options.script is not None
    rows = read_script(options.script, program.methods)
    priced = options.priced or pricing_system.pricing_asked_for(path, program, compile_options)
    run_command.machine(program, priced, options)  # an error here is of no call
    clock = time_line.cpu_clock(compile_options.system, options.cpu_clock_mhz, priced)
    folder = result_files.folder_for_pte(path, program.target(), out_dir)
    with filesystem.locked_folder(folder), bundle.writing_folder(folder, "run") as add:
        run_command.remove_results(folder)
        start = time.monotonic()
        calls = _jobs(path, program, folder, options, rows, (priced, clock), reporter)
        with memory_advice.advice_added(path, compiled_here=not model.endswith(".pte")):
            execute = host.execute_calls if calls[0].job.choice.board == HOST else execute_on_board
            executions = execute(calls, reporter)
        records = _written(calls, executions, start, reporter)
        record = _record(calls, records, options.script, time.monotonic() - start)
        validation.check_record(record, "the record of the script")
        json_text.write_json(folder / kinds.SCRIPT.file, record)
        names = [f"{row['folder']}/{name}" for row in record["calls"] for name in _FILES]
        log = [UART_NAME] if (folder / UART_NAME).is_file() else []
        add(kinds.SCRIPT.file, *log, *names, *(executions[0].built or run_command.earlier_build(folder)))
    reporter.show(_summary(record, folder))
    reporter.emit(record)
    _raise_if_failed(record)
    return ScriptResult(folder, record, tuple(folder / row["folder"] for row in record["calls"]))


_FILES = (kinds.RUN.file, run_command.OUTPUTS_NAME)


def _check_options(options: RunOptions) -> None:
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
    rows: Sequence[ScriptCall],
    pricing: tuple[PricingSystem | None, CpuClock],
    reporter: Reporter,
) -> list[HostCall]:
    """The job of each call. Errors name the call's line of the script."""
    found: list[HostCall] = []
    for number, row in enumerate(rows):
        own = replace(options, method=row.method, inputs=row.inputs, steps=row.steps, feed=row.feed)
        place = folder / run_command.CALLS / f"{number}-{row.method}"
        try:
            _, job = run_command.resolve_job(path, program, place, own, pricing, reporter)
            steps = replace(job.samples.steps, first_step=sum(call.job.samples.count for call in found))
            job = replace(job, samples=replace(job.samples, steps=steps))
            _check_takes(row, found[-1].job.plan if found else None, job.plan)
        except (UsageError, InputError) as error:
            raise InputError(f"{row.place}: {error.message}", error.hint) from error
        found.append(HostCall(job, row.take))
    return found


def _check_takes(row: ScriptCall, before: ExecutionPlan | None, plan: ExecutionPlan) -> None:
    """UsageError for something that the call cannot take from the one before."""
    outputs = () if before is None else before.output_tensors()
    described = [[(part.dtype, part.sizes) for part in parts] for parts in (plan.input_tensors(), outputs)]
    for feed in row.take:
        feeds.check_feed(feed, *described)
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
        filesystem.make_directory(call.job.folder)
        judged = RunVerdict(
            [execution.done, *execution.checks],
            Reference(unavailable=(gap,)),
            tuple(program_checks.hazard_warnings(call.job.plan)),
        )
        found.append(run_command.write_results(call.job, execution, judged, start, reporter))
    return found


def _record(calls: Sequence[HostCall], records: Sequence[Record], script: Path, wall_time_s: float) -> Record:
    job = calls[0].job
    inputs = [
        *result_files.program_entries(job.path, job.program),
        provenance.file_entry("script", script),
    ]
    tools = [dict(row) for row in records[0]["provenance"]["tools"]]
    passed = all(row["status"] == "pass" for row in records)
    rows = tuple(_record_of_call(call.job, record) for call, record in zip(calls, records, strict=True))
    model = Model(file=job.path.name, sha256=job.program.sha256, bytes=job.program.size, entry=job.plan.name)
    return Script(
        status="pass" if passed else "fail",
        **provenance.origin(inputs, tools),
        model=model,
        script=FileDigest(file=script.name, sha256=filesystem.sha256_file(script)),
        board=job.choice.board,
        calls=rows,
        wall_time_s=round(wall_time_s, 3),
        host=provenance.this_host(),
    ).to_json()


def _record_of_call(job: RunJob, record: Record) -> CallRecord:
    npu = record.get("npu", {}).get("cycles")
    return CallRecord(
        method=job.plan.name,
        steps=job.samples.count,
        folder=f"{run_command.CALLS}/{job.folder.name}",
        status=record["status"],
        run_sha256=filesystem.sha256_file(job.folder / kinds.RUN.file),
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
