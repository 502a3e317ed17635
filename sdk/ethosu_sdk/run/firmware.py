"""`run` on a simulated board: build the firmware or load a resident one, run it, take its evidence."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from ethosu_sdk import __version__
from ethosu_sdk.base import boards, cache, filesystem, resources
from ethosu_sdk.base.errors import SdkError, UsageError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.firmware_build import build_command, program_checks, resident_firmware
from ethosu_sdk.firmware_build.build_command import Built
from ethosu_sdk.firmware_build.executable import Executable
from ethosu_sdk.firmware_build.program_firmware import BuildOptions
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.stream import pieces
from ethosu_sdk.npu.stream.pieces import Piece
from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import DelegateCall, ExecutionPlan
from ethosu_sdk.program.output_comparison import Check
from ethosu_sdk.program.protocol import (
    INPUT_IMAGE_NONCE_BYTES,
    INPUT_IMAGE_REFERENCE_BYTES,
    INPUT_IMAGE_SYMBOL,
    PROGRAM_HEADER_SYMBOL,
    PROGRAM_MEMORY_SYMBOL,
)
from ethosu_sdk.records import provenance, result_files
from ethosu_sdk.run import cpu_time, evidence, input_image, input_values, kept_state, repeats, uart
from ethosu_sdk.run.cpu_time import CpuTime
from ethosu_sdk.run.evidence import Evidence, PmuSample
from ethosu_sdk.run.execution import Execution, NpuFacts, loaded_part, loaded_unavailable, metric, npu_part
from ethosu_sdk.run.input_image import ImageOptions, SequenceBlock, StateTensor, StreamPiece
from ethosu_sdk.run.job import UART_NAME, RunJob
from ethosu_sdk.run.kept_state import StateSeen
from ethosu_sdk.run.options import LAST_STEP, OWN, RunOptions
from ethosu_sdk.run.repeats import Changed, Repeated, RepeatPlan
from ethosu_sdk.run.sequences import StepResult
from ethosu_sdk.simulate import program_board, simulators
from ethosu_sdk.simulate.block_counts import Mark
from ethosu_sdk.simulate.program_board import BoardAndSimulator
from ethosu_sdk.simulate.simulation import (
    COUNTED,
    MODELLED,
    Figures,
    SimulationRequest,
    SimulationResult,
    Simulator,
)
from ethosu_sdk.simulate.simulators import SimulatorOptions

# ---- steps.run.pieces
# Command streams that are split between operations, and the counters of each piece.


@dataclass(frozen=True)
class SplitStreams:
    """The pieces of each delegate of a program, by its number, and why some are not cut. Empty without --split.

    `delegates` is the number of the delegate that each delegate call, by the number of its instruction, calls.
    """

    pieces: dict[int, tuple[Piece, ...]] = field(default_factory=dict)
    uncut: dict[int, str] = field(default_factory=dict)
    delegates: dict[int, int] = field(default_factory=dict)

    def for_image(self) -> list[StreamPiece]:
        """As the firmware takes them."""
        return [StreamPiece(index, piece.stream) for index, row in self.pieces.items() for piece in row]

    @property
    def streams(self) -> dict[int, list[bytes]]:
        """The command streams of the pieces of each delegate."""
        return {index: [piece.stream for piece in row] for index, row in self.pieces.items()}

    @property
    def counts(self) -> dict[int, int]:
        """How many pieces a delegate call runs, by the number of its instruction."""
        return {instruction: len(self.pieces[index]) for instruction, index in self.delegates.items()}


def split_streams(plan: ExecutionPlan) -> SplitStreams:
    """The delegates of `plan` in pieces; one that cannot be cut stays whole. UsageError when it has none."""
    cut_delegates: dict[int, tuple[Piece, ...]] = {}
    uncut: dict[int, str] = {}
    for index, delegate in enumerate(plan.delegates):
        if delegate.vela is None:
            continue
        stream = bytes(delegate.vela.command_stream)
        try:
            cut_delegates[index] = pieces.cut(stream, NpuConfig.from_word(delegate.vela.config_word))
        except SdkError as error:
            cut_delegates[index] = (Piece((), stream),)
            uncut[index] = f"its command stream is not cut: {error}"
    if not cut_delegates:
        raise UsageError(
            "the program has no delegate whose command stream could be split", "leave --split out"
        )
    calls = {
        number: row.delegate_index
        for number, row in enumerate(plan.instructions)
        if isinstance(row, DelegateCall) and row.delegate_index in cut_delegates
    }
    return SplitStreams(cut_delegates, uncut, calls)


def pieces_part(
    cut_streams: SplitStreams, samples: Sequence[PmuSample], npu: str, figures: Figures
) -> list[Record]:
    """The record's `pieces`: every job of the first set's inference in pieces, in the order in which they ran."""
    if figures.absent:
        return []
    rows = []
    done: dict[int, int] = {}
    for sample in samples:
        number = done.get(sample.instruction, 0)
        done[sample.instruction] = number + 1
        delegate = cut_streams.delegates[sample.instruction]
        own = cut_streams.pieces[delegate]
        rows.append(
            {
                "instruction": sample.instruction,
                "delegate": delegate,
                "call": number // len(own),
                "offsets": list(own[number % len(own)].offsets),
                **_figures(sample, npu, figures),
            }
        )
    return rows


def _figures(sample: PmuSample, npu: str, figures: Figures) -> Record:
    totals = {
        event: (value, bool(sample.overflow >> index & 1))
        for index, (event, value) in enumerate(sample.counters)
    }
    facts = NpuFacts(npu=npu, identity={}, delegate_calls=1, cycles=sample.cycles, totals=totals)
    part, _ = npu_part(facts, [event for event, _ in sample.counters], figures)
    return {"cycles": part["cycles"], "counters": part["counters"]}


def pieces_unavailable(cut_streams: SplitStreams, figures: Figures) -> Iterator[Record]:
    """What the record cannot say of pieces, and why."""
    if figures.absent:
        yield {"path": "/pieces", "reason": figures.absent}
    for index, reason in cut_streams.uncut.items():
        yield {"path": f"/delegates/{index}/pieces", "reason": reason}


def check_pieces(plan: RepeatPlan, changed: Sequence[Changed], count: int) -> Check:
    """Whether the pieces gave the outputs that the whole command streams gave."""
    name = "the pieces gave the same outputs as the whole"
    own = [row for row in changed if plan.runs_pieces(row.set * plan.repeats + row.repeat)]
    if own:
        return Check(name, False, f"output {own[0].index} and {counted(len(own) - 1, 'other')} differ")
    return Check(name, True, f"{count} NPU jobs instead of one for each delegate call, every output equal")


# ---- steps.run.resident
# `run --resident`: the program goes into a firmware that is there already, in place of one built for it.


@dataclass(frozen=True)
class ResidentProgram:
    """A `.pte` that was read, the resident firmware, and what must lie in memory for it to run the one."""

    program: pte.Pte
    firmware: Executable
    record: Record
    images: tuple[tuple[int, bytes], ...] = field(repr=False)


def load_resident(job: RunJob, reporter: Reporter) -> ResidentProgram:
    """The resident firmware of the job's board, built if it is missing or stale, and the images of its program.

    Raises BuildError when the program does not fit; the option `allow_spill` as in `build`.
    """
    path, program, board = job.path, job.program, job.choice.board
    areas = None if job.priced is None else job.priced.areas
    with reporter.stage("preparing the resident firmware (built the first time only)"):
        firmware = resident_firmware.build_resident(_resident_folder(board), board)
    notes = resident_firmware.check_fit(
        program, job.plan.name, firmware.board, areas, allow_spill=job.options.allow_spill
    )
    for note in notes:
        reporter.warn(escape(note))
    mode = resident_firmware.mode_number(program.target(), areas)
    images = (
        (firmware.symbols[PROGRAM_MEMORY_SYMBOL].address, result_files.pte_content(path, program)),
        (
            firmware.symbols[PROGRAM_HEADER_SYMBOL].address,
            input_image.encode_program_header(program.size, mode),
        ),
    )
    regions = [build_command.use(row.name, row.used_bytes, row.size_bytes) for row in firmware.regions]
    return ResidentProgram(program, firmware, {"memory": {"regions": regions}, "notes": notes}, images)


def _resident_folder(board: str | None) -> Path:
    """In the cache, one for each firmware tree."""
    tree = filesystem.sha256_bytes(str(resources.directory("firmware")).encode())
    return cache.directory(f"resident/{board or boards.BOARD_NAMES[0]}-{tree[:16]}")


# ---- steps.run.firmware
# `run` on a simulated board: build the firmware, run it, take its evidence.

_DONE = "{} reported done, every record complete, CRCs, seal, model SHA-256 match"
_DATA = "; SHA-256 of {} match"
_NO_STATE = StateSeen()
Image = Built | ResidentProgram
Groups = tuple[tuple[int, ...], ...]  # PMU events that are counted together


@dataclass(frozen=True)
class Boot:
    """One boot of the firmware for a job: what runs, and what it must report."""

    job: RunJob
    simulator: Simulator
    version: str
    image: Image
    groups: Groups
    cut: SplitStreams
    expected: evidence.ExpectedRun
    no_cpu_cycles: str  # why there are none

    @property
    def figures(self) -> Figures:
        """What the counters of the simulator are worth."""
        return self.simulator.figures


def choose(npu: str | None, options: RunOptions) -> BoardAndSimulator:
    """The board and simulator for a program that uses `npu` (None: no NPU). Raises as :func:`board.for_run` does."""
    return program_board.board_for_run(npu, options.board, options.simulator, options.core)


def execute(job: RunJob, reporter: Reporter) -> Execution:
    """Build the firmware for `job` and run all of its inferences in one boot; results go to the job's folder."""
    if job.options.split and job.samples.count > 1:
        raise UsageError("--split takes one set of inputs", "give one set of inputs")
    cut = split_streams(job.plan) if job.options.split else SplitStreams()
    simulator_options = SimulatorOptions(
        fast=job.options.fast,
        simulated_limit_s=job.options.simulated_limit_s,
        memories=job.memories,
        streams=program_checks.reach_of_streams([job.plan], cut.streams),
    )
    simulator = simulators.create_simulator(
        job.choice.simulator, job.npu, simulator_options, job.choice.board
    )
    version = simulator.version()  # a missing simulator is reported before anything is built
    groups = simulators.event_groups(job.npu, job.events)
    expected = expected_of(job, groups, cut, simulator.figures)
    no_cpu_cycles = cpu_time.no_counts(simulator, wanted=job.options.cpu_cycles)
    image = _image(job, cut, reporter)
    boot = Boot(job, simulator, version, image, groups, cut, expected, no_cpu_cycles)
    with reporter.stage(f"running {counted(expected.plan.inferences, 'inference')} on {simulator.name}"):
        result = simulator.run(_request(boot))
    log = uart.parse_uart(result.uart)
    evidence.raise_job_failure(result.npu_jobs, log)
    reported = evidence.evidence_of_run(log, expected, result.exit_code)
    kept = job.kept
    seen = kept_state.state_seen(
        log,
        [row.place[2] for row in kept.tensors] if kept.is_watched else [],
        reported.plan.inferences,
        is_sent=kept.is_saved,
    )
    if result.npu_jobs is not None:
        evidence.crosscheck_jobs(reported, [job.cycles for job in result.npu_jobs])
    execution = execution_of(boot, reported, result, seen)
    return _with_pieces(execution, boot, reported) if job.options.split else execution


def _image(job: RunJob, cut: SplitStreams, reporter: Reporter) -> Image:
    """The firmware that is built for the program, or the one with every kernel that the program is loaded into."""
    options = job.options
    if options.resident:
        return load_resident(job, reporter)
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


def expected_of(job: RunJob, groups: Groups, cut: SplitStreams, figures: Figures) -> evidence.ExpectedRun:
    """What a run of `job` must report."""
    whole = max(job.options.repeat, len(groups))  # every group of events needs an inference
    return evidence.ExpectedRun(
        model_sha256=job.program.sha256,
        model_bytes=job.program.size,
        data_files=tuple((row.size, row.sha256) for row in job.program.data_files),
        board=job.choice.board,
        steps=input_values.as_kept(job.samples, job.plan),
        outputs=len(job.plan.outputs),
        repeats=whole + 1 if cut.pieces else whole,
        state=repeats.repeats_state(job, whole),
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
    content = input_image.encode_image(
        sets,
        boot.groups,
        expected.repeats,
        expected.nonce,
        asked=ImageOptions(
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
        images=((symbol.address, content), *(image.images if isinstance(image, ResidentProgram) else ())),
        target=boot.job.target,
        timeout_s=options.timeout_s,
        idle_timeout_s=options.idle_timeout_s(boot.job.path),
        uart_log=boot.job.folder / UART_NAME,
        count_instructions=expected.counts_cycles,
        compare_loaded=True,
        marks=None if boot.no_cpu_cycles else _marks(image),
        uart_tee=uart.step_stream(options.on_step),
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
    return cpu_time.firmware_marks({name: row.address for name, row in image.firmware.symbols.items()})


def execution_of(
    boot: Boot, reported: Evidence, result: SimulationResult, seen: StateSeen = _NO_STATE
) -> Execution:
    """The execution of a boot's job, or of one of its calls, from what the firmware `reported`."""
    job, simulator, firmware, plan = boot.job, boot.simulator, boot.image.firmware, reported.plan
    npu, unavailable = _npu(boot, reported)
    modelled = boot.figures.source == MODELLED
    loaded = loaded_part(firmware.elf_sha256, result.loaded)
    data = [cpu_time.cpu_traffic(job.plan, row.instruction) for row in reported.operators]
    cpu = cpu_time.cpu_time_of_run(result, job.core, data, boot.no_cpu_cycles)
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


def _steps(boot: Boot, reported: Evidence, seen: StateSeen) -> list[StepResult]:
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
            StepResult(
                choices,
                seen.crcs[first + plan.repeats - 1] if seen.crcs else (),
                None if samples is None else sum(row.cycles for row in samples),
                {event: value for event, (value, overflowed) in _totals(counted).items() if not overflowed},
                reported.crcs[step],
            )
        )
    return found


def _with_pieces(execution: Execution, boot: Boot, reported: Evidence) -> Execution:
    rows = pieces_part(boot.cut, reported.pieces, boot.job.npu or "", boot.figures)
    return replace(
        execution,
        pieces=rows,
        checks=[check_pieces(reported.plan, reported.changed_outputs, len(reported.pieces))],
        unavailable=[*execution.unavailable, *pieces_unavailable(boot.cut, boot.figures)],
    )


def _logical_outputs(job: RunJob, reported: Evidence) -> list[npt.NDArray[Any]]:
    tensors = job.plan.output_tensors()
    arrays = tuple(
        tuple(input_values.logical_array(array, tensor) for array, tensor in zip(row, tensors, strict=True))
        for row in reported.outputs
    )
    return input_values.stacked(arrays, job.samples.stacked)


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
        return None, [provenance.without_npu("/npu")]
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
