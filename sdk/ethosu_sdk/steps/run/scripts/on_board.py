"""A script of calls on a simulated board: one firmware that loads all its methods, one boot."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace

from ethosu_sdk import simulators
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.errors import UsageError
from ethosu_sdk.evidence import calls as call_evidence, evidence, input_image, listening, uart, witness
from ethosu_sdk.evidence.calls import CallExpected
from ethosu_sdk.evidence.input_image import Asked, ImageCall
from ethosu_sdk.evidence.sequence_block import SequenceBlock
from ethosu_sdk.firmware_build import BuildOptions
from ethosu_sdk.plain_text import counted
from ethosu_sdk.protocol import INPUT_IMAGE_NONCE_BYTES, INPUT_IMAGE_SYMBOL, MAX_METHODS, SEQUENCE_MAX_FEEDS
from ethosu_sdk.simulators import SimulationRequest, SimulatorOptions
from ethosu_sdk.steps import build_command
from ethosu_sdk.steps.build_command import Built
from ethosu_sdk.steps.run import firmware
from ethosu_sdk.steps.run.execution import Execution
from ethosu_sdk.steps.run.firmware import Boot
from ethosu_sdk.steps.run.host import HostCall
from ethosu_sdk.steps.run.job import UART_NAME, RunJob
from ethosu_sdk.steps.run.options import LAST_STEP
from ethosu_sdk.steps.run.pieces import Cut
from ethosu_sdk.steps.shared import delegates

_NO_CPU_CYCLES = "the calls of a script are not counted one by one"


def execute(calls: Sequence[HostCall], reporter: Reporter) -> list[Execution]:
    """Build the firmware with all methods of the `calls`, run them, and take the evidence of each."""
    first = calls[0].job
    names = _methods(calls)
    options = SimulatorOptions(
        fast=first.options.fast,
        simulated_limit_s=first.options.simulated_limit_s,
        memories=first.memories,
        streams=delegates.streams(map(first.program.plan, names)),
    )
    simulator = simulators.create(first.choice.simulator, first.npu, options, first.choice.board)
    version = simulator.version()
    groups = simulators.event_groups(first.npu, first.events)
    if len(groups) > 1:
        raise UsageError(
            f"{len(first.events)} PMU events need several inferences each, but the calls of a script run once",
            "ask for fewer --events",
        )
    nonce = secrets.token_bytes(INPUT_IMAGE_NONCE_BYTES)
    rows = [
        CallExpected(
            replace(firmware.expected_of(call.job, groups, Cut(), simulator.figures), nonce=nonce), call.takes
        )
        for call in calls
    ]
    content = _content(calls, rows, names, groups)
    image = _image(first, names, len(content), reporter)
    request = SimulationRequest(
        elf=image.firmware.elf,
        images=((image.firmware.symbols[INPUT_IMAGE_SYMBOL].address, content),),
        target=first.target,
        timeout_s=first.options.timeout_s,
        idle_timeout_s=first.options.idle_timeout_s(first.path),
        uart_log=first.folder.parent.parent / UART_NAME,
        compare_loaded=True,
        uart_tee=listening.stream(first.options.on_step),
    )
    with reporter.stage(f"running {counted(len(calls), 'call')} on {simulator.name}"):
        result = simulator.run(request)
    methods = [_of_method(rows, first, name) for name in names]
    log = uart.parse(result.uart)
    witness.check_failures(result.npu_jobs, log)
    found = call_evidence.gather(log, methods, rows, result.exit_code)
    if result.npu_jobs is not None:
        witness.check_jobs(_joined(found), [job.cycles for job in result.npu_jobs])
    return [
        firmware.execution_of(
            Boot(call.job, simulator, version, image, groups, Cut(), row.expected, _NO_CPU_CYCLES),
            reported,
            result,
        )
        for call, row, reported in zip(calls, rows, found, strict=True)
    ]


def _image(job: RunJob, names: tuple[str, ...], image_bytes: int, reporter: Reporter) -> Built:
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


def _of_method(rows: Sequence[CallExpected], job: RunJob, name: str) -> evidence.Expected:
    """What the firmware must say of a method that it loads."""
    outputs = len(job.program.plan(name).outputs)
    return replace(rows[0].expected, method=name, outputs=outputs)


def _content(
    calls: Sequence[HostCall],
    rows: Sequence[CallExpected],
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
    asked = Asked(sends_last=first.options.outputs == LAST_STEP)
    return input_image.encode_calls(parts, columns, rows[0].expected.nonce, asked=asked, event_groups=groups)


def _joined(found: Sequence[evidence.Evidence]) -> evidence.Evidence:
    """The jobs of all calls, as those of one run."""
    return replace(
        found[0],
        jobs=sum(row.jobs for row in found),
        pmu=tuple(sample for row in found for sample in row.pmu),
    )
