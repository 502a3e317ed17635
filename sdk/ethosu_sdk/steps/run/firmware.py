"""`run` on a simulated board: build the firmware, run it, take its evidence."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from ethosu_sdk import __version__, provenance, simulators
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.cpu_cycles.counts import Mark
from ethosu_sdk.errors import UsageError
from ethosu_sdk.evidence import evidence, input_image, kept_state, listening, uart, witness
from ethosu_sdk.evidence.evidence import Evidence, PmuSample
from ethosu_sdk.evidence.input_image import Asked
from ethosu_sdk.evidence.kept_state import StateSeen
from ethosu_sdk.evidence.sequence_block import SequenceBlock, StateTensor
from ethosu_sdk.evidence.verdict import Check
from ethosu_sdk.firmware_build import BuildOptions
from ethosu_sdk.plain_text import counted
from ethosu_sdk.protocol import INPUT_IMAGE_NONCE_BYTES, INPUT_IMAGE_REFERENCE_BYTES, INPUT_IMAGE_SYMBOL
from ethosu_sdk.records import Record
from ethosu_sdk.results import target_record
from ethosu_sdk.simulators import (
    COUNTED,
    MODELLED,
    Figures,
    SimulationRequest,
    SimulationResult,
    Simulator,
    SimulatorOptions,
)
from ethosu_sdk.steps import build_command
from ethosu_sdk.steps.build_command import Built
from ethosu_sdk.steps.run import cpu_time, inputs, pieces, repeats, resident
from ethosu_sdk.steps.run.cpu_time import CpuTime
from ethosu_sdk.steps.run.execution import (
    Execution,
    NpuFacts,
    loaded_part,
    loaded_unavailable,
    metric,
    npu_part,
)
from ethosu_sdk.steps.run.job import UART_NAME, RunJob
from ethosu_sdk.steps.run.options import LAST_STEP, OWN, RunOptions
from ethosu_sdk.steps.run.pieces import Cut
from ethosu_sdk.steps.run.repeats import Repeated
from ethosu_sdk.steps.run.resident import Loaded
from ethosu_sdk.steps.run.sequences.stepping_facts import StepFacts
from ethosu_sdk.steps.shared import board, delegates, moved
from ethosu_sdk.steps.shared.board import Choice

_DONE = "{} reported done, every record complete, CRCs, seal, model SHA-256 match"
_DATA = "; SHA-256 of {} match"
_NO_STATE = StateSeen()
Image = Built | Loaded
Groups = tuple[tuple[int, ...], ...]  # PMU events that are counted together


@dataclass(frozen=True)
class Boot:
    """One boot of the firmware for a job: what runs, and what it must report."""

    job: RunJob
    simulator: Simulator
    version: str
    image: Image
    groups: Groups
    cut: Cut
    expected: evidence.Expected
    no_cpu_cycles: str  # why there are none

    @property
    def figures(self) -> Figures:
        """What the counters of the simulator are worth."""
        return self.simulator.figures


def choose(npu: str | None, options: RunOptions) -> Choice:
    """The board and simulator for a program that uses `npu` (None: no NPU). Raises as :func:`board.for_run` does."""
    return board.for_run(npu, options.board, options.simulator, options.core)


def execute(job: RunJob, reporter: Reporter) -> Execution:
    """Build the firmware for `job` and run all of its inferences in one boot; results go to the job's folder."""
    if job.options.split and job.samples.count > 1:
        raise UsageError("--split takes one set of inputs", "give one set of inputs")
    cut = pieces.cut(job.plan) if job.options.split else Cut()
    simulator_options = SimulatorOptions(
        fast=job.options.fast,
        simulated_limit_s=job.options.simulated_limit_s,
        memories=job.memories,
        streams=delegates.streams([job.plan], cut.streams),
    )
    simulator = simulators.create(job.choice.simulator, job.npu, simulator_options, job.choice.board)
    version = simulator.version()  # a missing simulator is reported before anything is built
    groups = simulators.event_groups(job.npu, job.events)
    expected = expected_of(job, groups, cut, simulator.figures)
    no_cpu_cycles = cpu_time.no_counts(simulator, wanted=job.options.cpu_cycles)
    image = _image(job, cut, reporter)
    boot = Boot(job, simulator, version, image, groups, cut, expected, no_cpu_cycles)
    with reporter.stage(f"running {counted(expected.plan.inferences, 'inference')} on {simulator.name}"):
        result = simulator.run(_request(boot))
    log = uart.parse(result.uart)
    witness.check_failures(result.npu_jobs, log)
    reported = evidence.gather(log, expected, result.exit_code)
    kept = job.kept
    seen = kept_state.gather(
        log,
        [row.place[2] for row in kept.tensors] if kept.is_watched else [],
        reported.plan.inferences,
        is_sent=kept.is_saved,
    )
    if result.npu_jobs is not None:
        witness.check_jobs(reported, [job.cycles for job in result.npu_jobs])
    execution = execution_of(boot, reported, result, seen)
    return _with_pieces(execution, boot, reported) if job.options.split else execution


def _image(job: RunJob, cut: Cut, reporter: Reporter) -> Image:
    """The firmware that is built for the program, or the one with every kernel that the program is loaded into."""
    options = job.options
    if options.resident:
        return resident.load(job, reporter)
    build_options = BuildOptions(
        board=job.choice.board,
        simulator=job.choice.simulator,
        inferences=max(map(len, job.samples.steps.given), default=1),
        extra_image_bytes=input_image.bytes_of_pieces(cut.for_image()) + _sequence_bytes(job),
        allow_spill=options.allow_spill,
        data_memory=options.data_memory,
        areas=None if job.priced is None else job.priced.areas,
        methods=(job.plan.name,),
    )
    return build_command.build_in(
        job.path, job.program, job.folder, build_options, reporter, job.choice.reason
    )


def expected_of(job: RunJob, groups: Groups, cut: Cut, figures: Figures) -> evidence.Expected:
    """What a run of `job` must report."""
    whole = max(job.options.repeat, len(groups))  # every group of events needs an inference
    return evidence.Expected(
        model_sha256=job.program.sha256,
        model_bytes=job.program.size,
        data_files=tuple((row.size, row.sha256) for row in job.program.data_files),
        board=job.choice.board,
        steps=inputs.as_kept(job.samples, job.plan),
        outputs=len(job.plan.outputs),
        repeats=whole + 1 if cut.pieces else whole,
        state=repeats.state(job, whole),
        event_groups=max(1, len(groups)),
        counts_cycles=job.options.count_instructions and figures.instructions_per_cycle > 0,
        pieces=cut.counts,
        nonce=secrets.token_bytes(INPUT_IMAGE_NONCE_BYTES),
        sends_last=job.options.outputs == LAST_STEP,
        method=job.plan.name,
    )


def _request(boot: Boot) -> SimulationRequest:
    options, expected, image = boot.job.options, boot.expected, boot.image
    parts = boot.cut.for_image()
    sets = [[row.tobytes() for row in expected.steps.rows(step)] for step in range(expected.steps.count)]
    content = input_image.encode(
        sets,
        boot.groups,
        expected.repeats,
        expected.nonce,
        asked=Asked(
            expected.counts_cycles,
            expected.state == repeats.RESET,
            expected.sends_last,
            boot.job.kept.is_saved,
        ),
        pieces=parts,
        sequence=_sequence(boot.job),
    )
    symbol = image.firmware.symbols[INPUT_IMAGE_SYMBOL]
    if len(content) > symbol.bytes:
        raise UsageError(
            f"{len(sets)} sets of inputs and {len(parts)} pieces of command streams need "
            f"{len(content):,} bytes, there are {symbol.bytes:,}",
            "leave --resident out" if options.resident else "run them in several parts",
        )
    return SimulationRequest(
        elf=image.firmware.elf,
        images=((symbol.address, content), *(image.images if isinstance(image, Loaded) else ())),
        target=boot.job.target,
        timeout_s=options.timeout_s,
        idle_timeout_s=options.idle_timeout_s(boot.job.path),
        uart_log=boot.job.folder / UART_NAME,
        count_instructions=expected.counts_cycles,
        compare_loaded=True,
        marks=None if boot.no_cpu_cycles else _marks(image),
        uart_tee=listening.stream(options.on_step),
    )


def _sequence(job: RunJob) -> SequenceBlock | None:
    """The sequence block of the job's input image; None where all inputs are given, and no state."""
    steps, kept = job.samples.steps, job.kept
    if not job.samples.is_sequence and not kept.is_watched:
        return None
    states = [StateTensor(*row.place, row.initial) for row in kept.tensors] if kept.is_watched else []
    return SequenceBlock(tuple(map(len, steps.given)), steps.feeds, tuple(states), steps.first_step)


def _sequence_bytes(job: RunJob) -> int:
    """What the image needs for the sequence, beside the inputs that are given and their table."""
    block, sizes = _sequence(job), [row.nbytes for row in job.plan.input_tensors()]
    if block is None:
        return 0
    return INPUT_IMAGE_REFERENCE_BYTES * len(sizes) * job.samples.count + block.image_bytes(sizes)


def _marks(image: Image) -> tuple[Mark, ...]:
    return cpu_time.marks({name: row.address for name, row in image.firmware.symbols.items()})


def execution_of(
    boot: Boot, reported: Evidence, result: SimulationResult, seen: StateSeen = _NO_STATE
) -> Execution:
    """The execution of a boot's job, or of one of its calls, from what the firmware `reported`."""
    job, simulator, firmware, plan = boot.job, boot.simulator, boot.image.firmware, reported.plan
    npu, unavailable = _npu(boot, reported)
    modelled = boot.figures.source == MODELLED
    loaded = loaded_part(firmware.elf_sha256, result.loaded)
    data = [moved.data(job.plan, row.instruction) for row in reported.operators]
    cpu = cpu_time.of_run(result, job.core, data, boot.no_cpu_cycles)
    return Execution(
        outputs=_logical_outputs(job, reported),
        done=Check(
            "the firmware's evidence is complete",
            True,
            _DONE.format(counted(plan.inferences, "inference"))
            + (
                _DATA.format(counted(len(job.program.data_files), "data file"))
                if job.program.data_files
                else ""
            ),
        ),
        runtime={"name": OWN, "version": __version__, **loaded},
        steps=_steps(boot, reported, seen),
        state=seen.contents,
        simulator={
            "name": simulator.name,
            "version": boot.version,
            "fidelity": simulator.fidelity(job.npu, job.macs),
        },
        provenance_inputs=[provenance.file_entry("firmware", firmware.elf, firmware.elf_sha256)],
        tools=[*build_command.tool_rows(), provenance.tool_entry(simulator.name, boot.version), *cpu.tools],
        npu=npu,
        memory={
            "regions": boot.image.record["memory"]["regions"],
            "pools": [
                build_command.use(row["name"], row["used_bytes"], row["size_bytes"])
                for row in reported.memory
            ],
        },
        operators=_operators(reported, boot.figures, cpu),
        cpu=cpu.part,
        unavailable=[
            *cpu.unavailable,
            *_not_counted(boot),
            *loaded_unavailable(loaded),
            *unavailable,
        ],
        repeated=Repeated(
            plan, reported.changed_outputs, reported.changed_counters, counters_must_agree=modelled
        ),
        notes=boot.image.record.get("notes", ()),
        built=build_command.files(boot.image.record) if isinstance(boot.image, Built) else (),
    )


def _steps(boot: Boot, reported: Evidence, seen: StateSeen) -> list[StepFacts]:
    """Of each step the first repeat's cycles, and the counters of the first repeat that counts each group."""
    plan, found = reported.plan, []
    by_inference: dict[int, list[PmuSample]] = {}
    for row in () if boot.figures.absent else reported.pmu:
        by_inference.setdefault(row.inference, []).append(row)
    for step, choices in enumerate(reported.choices):
        first = step * plan.repeats
        samples = by_inference.get(first)
        counted = [row for number in range(plan.event_groups) for row in by_inference.get(first + number, ())]
        found.append(
            StepFacts(
                choices,
                seen.crcs[first + plan.repeats - 1] if seen.crcs else (),
                None if samples is None else sum(row.cycles for row in samples),
                {event: value for event, (value, overflowed) in _totals(counted).items() if not overflowed},
                reported.crcs[step],
            )
        )
    return found


def _with_pieces(execution: Execution, boot: Boot, reported: Evidence) -> Execution:
    rows = pieces.record_part(boot.cut, reported.pieces, boot.job.npu or "", boot.figures)
    return replace(
        execution,
        pieces=rows,
        checks=[pieces.check(reported.plan, reported.changed_outputs, len(reported.pieces))],
        unavailable=[*execution.unavailable, *pieces.unavailable(boot.cut, boot.figures)],
    )


def _logical_outputs(job: RunJob, reported: Evidence) -> list[npt.NDArray[Any]]:
    tensors = job.plan.output_tensors()
    arrays = tuple(
        tuple(inputs.logical(array, tensor) for array, tensor in zip(row, tensors, strict=True))
        for row in reported.outputs
    )
    return inputs.stack(arrays, job.samples.stacked)


def _operators(reported: Evidence, figures: Figures, cpu: CpuTime) -> list[Record]:
    first = () if figures.absent else reported.pmu
    cycles = {row.instruction: row.cycles for row in first if row.inference == 0}
    rows: list[Record] = []
    for number, row in enumerate(reported.operators):
        entry: Record = {"instruction": row.instruction, "kind": row.kind, "name": row.name}
        if row.cpu_cycles is not None and row.kind == "kernel":
            count = round(row.cpu_cycles * figures.instructions_per_cycle)
            entry["instructions"] = metric(count, "instructions", COUNTED)
        if row.instruction in cycles:
            entry["npu_cycles"] = metric(cycles[row.instruction], "cycles", figures.source)
        rows.append(entry | (cpu.operators[number] if cpu.operators else {}))
    return rows


def _not_counted(boot: Boot) -> list[Record]:
    if not boot.job.options.count_instructions or boot.figures.instructions_per_cycle:
        return []
    return [{"path": "/cpu/instructions", "reason": "the simulator does not count instructions"}]


def _npu(boot: Boot, reported: Evidence) -> tuple[Record | None, list[Record]]:
    """The record's `npu` object from the inferences of the first set that counted one group each."""
    groups, npu = boot.groups, boot.job.npu
    if reported.npu is None or npu is None:
        return None, [target_record.without_npu("/npu")]
    by_group = [[row for row in reported.pmu if row.inference == number] for number in range(len(groups))]
    cycles = [sum(row.cycles for row in rows) if rows else None for rows in by_group]
    facts = NpuFacts(
        npu=npu,
        identity={name: reported.npu[name] for name in ("id", "config")},
        delegate_calls=reported.delegate_calls,
        cycles=cycles[0],
        totals=_totals([row for rows in by_group for row in rows]),
    )
    part, unavailable = npu_part(facts, [event for events in groups for event in events], boot.figures)
    return repeats.grouped(part, groups, cycles), unavailable


def _totals(samples: Sequence[PmuSample]) -> dict[int, tuple[int, bool]]:
    """Event number → (sum over the delegate calls of one inference, whether any counter overflowed)."""
    totals: dict[int, tuple[int, bool]] = {}
    for sample in samples:
        for index, (event, value) in enumerate(sample.counters):
            total, overflowed = totals.get(event, (0, False))
            totals[event] = (total + value, overflowed or bool(sample.overflow >> index & 1))
    return totals
