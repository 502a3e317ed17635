"""`run` on a simulated board: build the firmware, run it, take its evidence."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from ethosu_sdk import __version__, provenance, pte, simulators
from ethosu_sdk.commands import build
from ethosu_sdk.commands.build import Built
from ethosu_sdk.commands.run import (
    inputs as run_inputs,
    loaded as run_loaded,
    pieces as run_pieces,
    repeats as run_repeats,
    resident as run_resident,
    state as run_state,
)
from ethosu_sdk.commands.run.execution import Execution, NpuFacts, metric, npu_part
from ethosu_sdk.commands.run.inputs import Samples
from ethosu_sdk.commands.run.options import OWN, RunOptions
from ethosu_sdk.commands.run.repeats import Repeated
from ethosu_sdk.commands.run.resident import Loaded
from ethosu_sdk.commands.shared import board, target as target_record
from ethosu_sdk.commands.shared.reporter import Reporter
from ethosu_sdk.errors import UsageError
from ethosu_sdk.firmware_build import BuildOptions
from ethosu_sdk.npu.timing.system_config import SystemConfig
from ethosu_sdk.records import Record
from ethosu_sdk.report import evidence, input_image, uart, witness
from ethosu_sdk.report.evidence import Evidence, PmuSample
from ethosu_sdk.report.input_image import StreamPiece
from ethosu_sdk.report.protocol import INPUT_IMAGE_NONCE_BYTES, INPUT_IMAGE_SYMBOL
from ethosu_sdk.report.repeats import Plan
from ethosu_sdk.report.verdict import Check
from ethosu_sdk.simulators import COUNTED, MODELLED, Figures, SimulationRequest, Simulator, SimulatorOptions

UART_NAME = "uart.log"
RawInputs = tuple[tuple[bytes, ...], ...]  # of each set, as the program keeps them in memory
Ready = Built | Loaded
Groups = tuple[tuple[int, ...], ...]  # PMU events that are counted together


@dataclass(frozen=True)
class _Ran:
    """What ran the firmware, and what its figures are worth."""

    simulator: Simulator
    version: str
    figures: Figures
    plan: Plan
    board_reason: str
    runtime: Record


def execute(
    path: Path,
    program: pte.Pte,
    samples: Samples,
    options: RunOptions,
    folder: Path,
    reporter: Reporter,
    memories: SystemConfig | None,
) -> Execution:
    """Run `samples` in one boot of the firmware for the `.pte` at `path`; results go to `folder`.

    `memories` are those that modelled cycles are for, by default the target's.
    """
    npu = program.npu()
    events = simulators.choose_events(npu, options.events)
    choice = board.for_run(npu, options.board, options.simulator)
    wanted = SimulatorOptions(
        fast=options.fast, simulated_limit_s=options.simulated_limit_s, memories=memories
    )
    simulator = simulators.create(choice.simulator, npu, wanted, choice.board)
    version = simulator.version()  # a simulator that lacks is named before anything is built
    cut_up = run_pieces.cut(program.plan()) if options.split else None
    parts = [] if cut_up is None else cut_up.for_image()
    built: Ready
    if options.resident:
        built = run_resident.load(path, program, choice.board, reporter, allow_spill=options.allow_spill)
    else:
        wishes = BuildOptions(
            board=choice.board,
            simulator=simulator.name,
            inferences=samples.count,
            extra_image_bytes=input_image.bytes_of_pieces(parts),
            allow_spill=options.allow_spill,
        )
        built = build.build_in(path, program, folder, wishes, reporter, choice.reason)
    groups = simulators.event_groups(npu, events)
    expected = _expected(built, samples, options, groups, simulator.figures)
    if cut_up is not None:
        expected = replace(expected, repeats=expected.repeats + 1, pieces=cut_up.counts)
    with reporter.stage(f"running {expected.plan.inferences} inference(s) on {simulator.name}"):
        result = simulator.run(_request(built, expected, options, groups, folder, parts))
    found = evidence.gather(uart.parse(result.uart), expected, result.exit_code)
    if result.npu_jobs is not None:
        witness.check_jobs(found, [job.cycles for job in result.npu_jobs])
    runtime = {
        "name": OWN,
        "version": __version__,
        **run_loaded.part(built.firmware.elf_sha256, result.loaded),
    }
    ran = _Ran(simulator, version, simulator.figures, expected.plan, choice.reason, runtime)
    execution = _execution(built, samples, found, ran, groups, options)
    return execution if cut_up is None else _with_pieces(execution, cut_up, found, ran, npu)


def _with_pieces(
    execution: Execution, cut_up: run_pieces.Cut, found: Evidence, ran: _Ran, npu: str | None
) -> Execution:
    rows = run_pieces.record_part(cut_up, found.pieces, npu or "", ran.figures)
    return replace(
        execution,
        pieces=rows,
        checks=[run_pieces.check(ran.plan, found.changed_outputs, len(found.pieces))],
        unavailable=[*execution.unavailable, *run_pieces.unavailable(cut_up, ran.figures)],
    )


def _request(
    built: Ready,
    expected: evidence.Expected,
    options: RunOptions,
    groups: Groups,
    folder: Path,
    pieces: Sequence[StreamPiece],
) -> SimulationRequest:
    image = input_image.encode(
        expected.sets,
        groups,
        expected.repeats,
        expected.nonce,
        counts_cycles=expected.counts_cycles,
        resets_state=expected.state == run_state.RESET,
        pieces=pieces,
    )
    symbol = built.firmware.symbols[INPUT_IMAGE_SYMBOL]
    if len(image) > symbol.bytes:
        raise UsageError(
            f"{len(expected.sets)} sets of inputs and {len(pieces)} pieces of command streams need "
            f"{len(image):,} bytes, there are {symbol.bytes:,}",
            "leave --resident out" if options.resident else "run them in several parts",
        )
    return SimulationRequest(
        elf=built.firmware.elf,
        images=((symbol.address, image), *(built.images if isinstance(built, Loaded) else ())),
        target=built.program.target(),
        timeout_s=options.timeout_s,
        idle_timeout_s=options.idle_timeout_s,
        uart_log=folder / UART_NAME,
        count_instructions=expected.counts_cycles,
        compare_loaded=True,
    )


def _raw_inputs(built: Ready, samples: Samples) -> RawInputs:
    tensors = built.program.plan().input_tensors()
    return tuple(
        tuple(run_inputs.physical_bytes(array, tensor) for array, tensor in zip(row, tensors, strict=True))
        for row in samples.inferences
    )


def _expected(
    built: Ready, samples: Samples, options: RunOptions, groups: Groups, figures: Figures
) -> evidence.Expected:
    repeats = max(options.repeat, len(groups))  # every group of events needs an inference
    return evidence.Expected(
        model_sha256=built.program.sha256,
        model_bytes=built.program.size,
        board=built.firmware.board,
        sets=_raw_inputs(built, samples),
        outputs=len(built.program.plan().outputs),
        repeats=repeats,
        state=run_state.of_repeats(built.program.plan(), samples, repeats, options.keep_state),
        event_groups=max(1, len(groups)),
        counts_cycles=options.count_instructions and figures.instructions_per_cycle > 0,
        nonce=secrets.token_bytes(INPUT_IMAGE_NONCE_BYTES),
    )


def _execution(
    built: Ready, samples: Samples, found: Evidence, ran: _Ran, groups: Groups, options: RunOptions
) -> Execution:
    firmware, simulator = built.firmware, ran.simulator
    npu, unavailable = _npu(built, found, groups, ran.figures)
    done = f"{ran.plan.inferences} inference(s) reported done, every record complete, CRCs, seal, model SHA-256 match"
    modelled = ran.figures.source == MODELLED
    repeated = Repeated(ran.plan, found.changed_outputs, found.changed_counters, counters_must_agree=modelled)
    return Execution(
        outputs=_logical_outputs(built, found, samples),
        done=Check("the firmware's evidence is complete", True, done),
        board=firmware.board,
        board_reason=ran.board_reason,
        runtime=ran.runtime,
        simulator={
            "name": simulator.name,
            "version": ran.version,
            "fidelity": simulator.fidelity(built.program.npu()),
        },
        provenance_inputs=[provenance.file_entry("firmware", firmware.elf, firmware.elf_sha256)],
        tools=[*build.tool_rows(), provenance.tool_entry(simulator.name, ran.version)],
        npu=npu,
        memory={
            "regions": built.record["memory"]["regions"],
            "pools": [build.use(row["name"], row["used_bytes"], row["size_bytes"]) for row in found.memory],
        },
        operators=_operators(found, ran.figures),
        unavailable=[
            {"path": "/cpu/cycles", "reason": ran.figures.no_cpu_cycles},
            *_not_counted(options, ran.figures),
            *run_loaded.unavailable(ran.runtime),
            *unavailable,
        ],
        repeated=repeated,
        notes=built.record.get("notes", ()),
        built=build.files(built.record) if isinstance(built, Built) else (),
    )


def _logical_outputs(built: Ready, found: Evidence, samples: Samples) -> list[npt.NDArray[Any]]:
    tensors = built.program.plan().output_tensors()
    arrays = tuple(
        tuple(run_inputs.logical(array, tensor) for array, tensor in zip(row, tensors, strict=True))
        for row in found.outputs
    )
    return run_inputs.stack(arrays, samples.stacked)


def _operators(found: Evidence, figures: Figures) -> list[Record]:
    first = () if figures.absent else found.pmu
    cycles = {row.instruction: row.cycles for row in first if row.inference == 0}
    rows: list[Record] = []
    for row in found.operators:
        entry: Record = {"instruction": row.instruction, "kind": row.kind, "name": row.name}
        if row.cpu_cycles is not None and row.kind == "kernel":
            count = round(row.cpu_cycles * figures.instructions_per_cycle)
            entry["instructions"] = metric(count, "instructions", COUNTED)
        if row.instruction in cycles:
            entry["npu_cycles"] = metric(cycles[row.instruction], "cycles", figures.source)
        rows.append(entry)
    return rows


def _not_counted(options: RunOptions, figures: Figures) -> list[Record]:
    if not options.count_instructions or figures.instructions_per_cycle:
        return []
    return [{"path": "/cpu/instructions", "reason": "the simulator does not count instructions"}]


def _npu(
    built: Ready, found: Evidence, groups: Groups, figures: Figures
) -> tuple[Record | None, list[Record]]:
    """The record's `npu` object from the inferences of the first set that counted one group each."""
    target = built.program.target()
    if found.npu is None or target is None:
        return None, [target_record.without_npu("/npu")]
    by_group = [[row for row in found.pmu if row.inference == number] for number in range(len(groups))]
    cycles = [sum(row.cycles for row in rows) if rows else None for rows in by_group]
    facts = NpuFacts(
        npu=target.npu,
        identity={name: found.npu[name] for name in ("id", "config")},
        delegate_calls=found.delegate_calls,
        cycles=cycles[0],
        totals=_totals([row for rows in by_group for row in rows]),
    )
    npu, unavailable = npu_part(facts, [event for events in groups for event in events], figures)
    return run_repeats.grouped(npu, groups, cycles), unavailable


def _totals(samples: Sequence[PmuSample]) -> dict[int, tuple[int, bool]]:
    """Event number → (sum over the delegate calls of one inference, whether any counter overflowed)."""
    found: dict[int, tuple[int, bool]] = {}
    for sample in samples:
        for index, (event, value) in enumerate(sample.counters):
            total, overflowed = found.get(event, (0, False))
            found[event] = (total + value, overflowed or bool(sample.overflow >> index & 1))
    return found
