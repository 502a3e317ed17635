"""`ethosu-sdk run`: the whole way, from a model or a `.pte` to a validated run.json."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt
from rich.markup import escape

from ethosu_sdk import npz, pte, records, schema, simulators
from ethosu_sdk.commands import build, locations, run_inputs, run_record
from ethosu_sdk.commands import compile as compile_command
from ethosu_sdk.commands.build import Built
from ethosu_sdk.commands.compile import CompileOptions
from ethosu_sdk.commands.reporter import Reporter
from ethosu_sdk.commands.run_inputs import Samples
from ethosu_sdk.errors import UsageError, VerdictError
from ethosu_sdk.records import Record
from ethosu_sdk.report import evidence, input_image, uart, verdict
from ethosu_sdk.report.protocol import INPUT_IMAGE_SYMBOL
from ethosu_sdk.simulators import SimulationRequest
from ethosu_sdk.targets import suggestion

RECORD_NAME = "run.json"
OUTPUTS_NAME = "outputs.npz"
UART_NAME = "uart.log"
_SIMULATORS = ("auto", "qemu")
_IDLE_LIMIT_S = 30.0
RawInputs = tuple[tuple[bytes, ...], ...]  # of each inference, as the program keeps them in memory


@dataclass(frozen=True)
class RunOptions:
    """The options of `run` as given on the command line."""

    inputs: Path | None = None
    expect: Path | None = None
    atol: float = 0.0
    rtol: float = 0.0
    simulator: str = "auto"
    timeout_s: float = 300.0
    events: str | None = None
    board: str | None = None


def run(
    model: str, compile_options: CompileOptions, options: RunOptions, out_dir: Path | None, reporter: Reporter
) -> Record:
    """Run `model`, compiling and building what is missing or stale; the record that was written.

    Raises VerdictError, after everything was written, when an expectation is not met.
    """
    if options.simulator not in _SIMULATORS:
        raise UsageError(
            f"unknown simulator '{options.simulator}'", suggestion(options.simulator, _SIMULATORS)
        )
    path = _ready_pte(model, compile_options, out_dir, reporter)
    program = pte.read(path)
    folder = locations.for_pte(path, program.target(), out_dir)
    with records.locked(folder):
        # A result of an earlier run must not be taken for this one's, should this one fail.
        for name in (RECORD_NAME, OUTPUTS_NAME):
            (folder / name).unlink(missing_ok=True)
        record = _run_in(folder, path, program, options, reporter)
    reporter.show(run_record.summary(record, folder))
    reporter.emit(record)
    if record["status"] != "pass":
        failed = [row for row in record["verdict"]["checks"] if row["status"] == "fail"]
        raise VerdictError(
            "the outputs are not as expected:\n" + "\n".join(f"  {r['name']}: {r['detail']}" for r in failed),
            f"the outputs are in {folder / OUTPUTS_NAME}",
            recorded=True,
        )
    return record


def _ready_pte(model: str, options: CompileOptions, out_dir: Path | None, reporter: Reporter) -> Path:
    if model.endswith(".pte"):
        return locations.require_pte(Path(model))
    return compile_command.compile_model(model, options, out_dir, reporter.for_step(), reuse=True)


def _run_in(folder: Path, path: Path, program: pte.Pte, options: RunOptions, reporter: Reporter) -> Record:
    start = time.monotonic()
    plan = program.plan(build.ENTRY)
    samples = run_inputs.load(options.inputs, path, plan)
    if samples.source.startswith("random"):
        reporter.warn(f"no inputs were given: {escape(samples.source)} are used")
    expected = None if options.expect is None else run_inputs.load_expected(options.expect, plan, samples)
    target = program.target()
    events = simulators.choose_events(target.npu if target else None, options.events)
    built = build.build_in(path, program, options.board, folder, reporter, samples.count)
    raw = _raw_inputs(built, samples)
    simulator = simulators.create(options.simulator)
    with reporter.stage(f"running {samples.count} inference(s) on {simulator.name}"):
        result = simulator.run(_request(built, raw, options, events, folder))
    found = evidence.gather(uart.parse(result.uart), _expected(built, raw), result.exit_code)
    outputs = _logical_outputs(found, plan, samples)
    checks = _checks(outputs, expected, options, samples)
    npz.write_npz(folder / OUTPUTS_NAME, {f"output{i}": array for i, array in enumerate(outputs)})
    facts = run_record.RunFacts(
        path=path,
        built=built,
        samples=samples,
        outputs=outputs,
        outputs_file=OUTPUTS_NAME,
        checks=checks,
        evidence=found,
        simulator=simulator,
        events=events,
        wall_time_s=time.monotonic() - start,
    )
    record = run_record.make(facts)
    schema.check(record, "the run result")
    records.write_json(folder / RECORD_NAME, record)
    return record


def _request(
    built: Built, raw: RawInputs, options: RunOptions, events: Sequence[int], folder: Path
) -> SimulationRequest:
    image = input_image.encode(raw, events)
    symbol = built.firmware.symbols[INPUT_IMAGE_SYMBOL]
    if len(image) > symbol.bytes:
        raise UsageError(
            f"{len(raw)} inferences need {len(image):,} bytes of inputs, there are {symbol.bytes:,}",
            "run them in several parts",
        )
    target = built.program.target()
    return SimulationRequest(
        elf=built.firmware.elf,
        images=((symbol.address, image),),
        npu=target.npu if target else "",
        macs=target.macs if target else 0,
        timeout_s=options.timeout_s,
        idle_timeout_s=min(_IDLE_LIMIT_S, options.timeout_s),
        uart_log=folder / UART_NAME,
        with_npu=target is not None,
    )


def _raw_inputs(built: Built, samples: Samples) -> RawInputs:
    tensors = built.program.plan(build.ENTRY).input_tensors()
    return tuple(
        tuple(run_inputs.physical_bytes(array, tensor) for array, tensor in zip(row, tensors, strict=True))
        for row in samples.inferences
    )


def _logical_outputs(
    found: evidence.Evidence, plan: pte.ExecutionPlan, samples: Samples
) -> list[npt.NDArray[Any]]:
    tensors = plan.output_tensors()
    arrays = tuple(
        tuple(run_inputs.logical(array, tensor) for array, tensor in zip(row, tensors, strict=True))
        for row in found.outputs
    )
    return run_inputs.stack(arrays, samples.stacked)


def _expected(built: Built, raw: RawInputs) -> evidence.Expected:
    return evidence.Expected(
        model_sha256=built.program.sha256,
        model_bytes=built.program.size,
        board=built.firmware.board,
        inferences=raw,
        outputs=len(built.program.plan(build.ENTRY).outputs),
    )


def _checks(
    outputs: list[npt.NDArray[Any]],
    expected: list[npt.NDArray[Any]] | None,
    options: RunOptions,
    samples: Samples,
) -> list[verdict.Check]:
    done = f"{samples.count} inference(s) reported done, every record complete, CRCs and model SHA-256 match"
    checks = [verdict.Check("the firmware's evidence is complete", True, done)]
    if expected is not None:
        checks += verdict.compare_outputs(outputs, expected, verdict.Tolerance(options.atol, options.rtol))
    return checks
