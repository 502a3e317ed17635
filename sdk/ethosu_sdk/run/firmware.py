"""`run` on a simulated board: build the firmware or load a resident one, run it, take its evidence."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ethosu_sdk import __version__
from ethosu_sdk.base import boards, cache, filesystem, resources
from ethosu_sdk.base.errors import SdkError, UsageError
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.firmware_build import build_command, program_checks, resident_firmware
from ethosu_sdk.firmware_build.executable import Executable
from ethosu_sdk.firmware_build.program_firmware import BuildOptions
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.program import Reach
from ethosu_sdk.npu.stream import pieces
from ethosu_sdk.npu.stream.pieces import Piece as StreamPart
from ethosu_sdk.program import protocol
from ethosu_sdk.program.execution_plan import DelegateCall
from ethosu_sdk.program.output_comparison import Check
from ethosu_sdk.records import provenance, result_files
from ethosu_sdk.records.common import Counter, Unavailable, Use
from ethosu_sdk.records.run import Memory, MemoryUse, Npu, Operator, Piece, Runtime
from ethosu_sdk.run import cpu_time, evidence, input_image, input_values, kept_state, repeats, uart
from ethosu_sdk.run.cpu_time import CpuTime
from ethosu_sdk.run.evidence import Evidence, PmuSample
from ethosu_sdk.run.execution import (
    Execution,
    compared_elf,
    loaded_unavailable,
    metric,
    npu_part,
    simulator_part,
)
from ethosu_sdk.run.input_image import ImageOptions, SequenceBlock, StateTensor, StreamPiece
from ethosu_sdk.run.job import UART_NAME, RunJob
from ethosu_sdk.run.kept_state import StateSeen
from ethosu_sdk.run.options import LAST_STEP, OWN, RunOptions
from ethosu_sdk.run.repeats import Repeated
from ethosu_sdk.run.sequences import StepResult
from ethosu_sdk.simulate import program_board, simulation, simulators
from ethosu_sdk.simulate.program_board import BoardAndSimulator
from ethosu_sdk.simulate.simulators import SimulatorOptions

_NO_STATE = StateSeen()
Groups = tuple[tuple[int, ...], ...]  # PMU events that are counted together


class Image(Struct, frozen=True):
    """The firmware that runs a program, the `images` that must lie in memory beside the inputs, the files that its
    build wrote into the folder of results, and what each memory of the board `uses_of` holds, where the firmware is
    the program's own."""

    firmware: Executable
    notes: Sequence[str]
    images: tuple[tuple[int, bytes], ...] = ()
    built: Sequence[str] = ()
    uses: tuple[MemoryUse, ...] = ()
    uses_of: str = ""


class SplitStreams(Struct, frozen=True):
    """The pieces of each delegate of a program, by its number, and why some are not cut. Empty without --split.
    `delegates` is the number of the delegate that each delegate call, by the number of its instruction, calls."""

    pieces: dict[int, tuple[StreamPart, ...]] = {}
    uncut: dict[int, str] = {}
    delegates: dict[int, int] = {}

    def for_image(self) -> list[StreamPiece]:
        return [StreamPiece(index, piece.stream) for index, row in self.pieces.items() for piece in row]


class Boot(Struct, frozen=True):
    """One boot of the firmware for a job: what runs, and what it must report."""

    job: RunJob
    simulator: simulation.Simulator
    version: str
    image: Image
    groups: Groups
    cut: SplitStreams
    expected: evidence.ExpectedRun
    no_cpu_cycles: str  # why there are none

    @property
    def figures(self) -> simulation.Figures:
        return self.simulator.figures


def choose(npu: str | None, options: RunOptions) -> BoardAndSimulator:
    """The board and simulator for a program that uses `npu` (None: no NPU)."""
    return program_board.board_for_run(npu, options.board, options.simulator, options.core)


def execute(job: RunJob, reporter: Reporter) -> Execution:
    """Build the firmware for `job` and run all of its inferences in one boot; results go to the job's folder."""
    cut = split_streams(job)
    streams = {index: [piece.stream for piece in row] for index, row in cut.pieces.items()}
    simulator = simulator_of(job, program_checks.reach_of_streams([job.plan], streams))
    simulator.version()  # a missing simulator is reported before anything is built
    if job.options.resident:
        image = resident_image(job, _resident_firmware(job, reporter), reporter)
    else:
        image = _built_image(job, cut, reporter)
    return execute_on(simulator, job, image, cut, reporter)


def execute_on(
    simulator: simulation.Simulator, job: RunJob, image: Image, cut: SplitStreams, reporter: Reporter
) -> Execution:
    """Run all inferences of `job` in one boot of the firmware in `image`."""
    version = simulator.version()
    groups = simulators.event_groups(job.npu, job.events)
    nonce = secrets.token_bytes(protocol.INPUT_IMAGE_NONCE_BYTES)
    expected = expected_of(job, groups, cut, simulator.figures, nonce)
    no_cpu_cycles = cpu_time.no_counts(simulator, wanted=job.options.cpu_cycles)
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


def simulator_of(job: RunJob, streams: Mapping[bytes, Reach]) -> simulation.Simulator:
    """The simulator for `job`, on which each of the command `streams` may reach so much."""
    options = SimulatorOptions(
        fast=job.options.fast,
        simulated_limit_s=job.options.simulated_limit_s,
        memories=job.memories,
        streams=streams,
    )
    return simulators.create_simulator(job.choice.simulator, job.npu, options, job.choice.board)


def _built_image(job: RunJob, cut: SplitStreams, reporter: Reporter) -> Image:
    block, sizes = _sequence(job), [row.nbytes for row in job.plan.input_tensors()]
    more = input_image.bytes_of_pieces(cut.for_image())
    if block is not None:  # beside the inputs that are given and their table
        more += protocol.INPUT_IMAGE_REFERENCE_BYTES * len(sizes) * job.samples.count + block.image_bytes(
            sizes
        )
    inferences = max(map(len, job.samples.steps.given), default=1)
    return build_image(
        job, job.folder, reporter, inferences=inferences, extra_image_bytes=more, methods=(job.plan.name,)
    )


def build_image(
    job: RunJob,
    folder: Path,
    reporter: Reporter,
    *,
    inferences: int = 1,
    extra_image_bytes: int,
    methods: tuple[str, ...],
) -> Image:
    """The firmware with `methods` of the job's program, built in `folder`, with room for an input image of so many
    `inferences` and more bytes."""
    options = BuildOptions(
        board=job.choice.board,
        simulator=job.choice.simulator,
        inferences=inferences,
        extra_image_bytes=extra_image_bytes,
        allow_spill=job.options.allow_spill,
        data_memory=job.options.data_memory,
        areas=None if job.priced is None else job.priced.areas,
        methods=methods,
        named=job.named,
    )
    built = build_command.build_in(job.path, job.program, folder, options, reporter, job.choice.reason)
    return Image(
        built.firmware,
        built.firmware.notes,
        built=build_command.files(built.record),
        uses=built.firmware.uses,
        uses_of=built.firmware.uses_of,
    )


def _resident_firmware(job: RunJob, reporter: Reporter) -> Executable:
    board = job.choice.board
    tree = filesystem.sha256_bytes(str(resources.directory("firmware")).encode())
    folder = cache.directory(f"resident/{board or boards.BOARD_NAMES[0]}-{tree[:16]}")
    with reporter.stage("preparing the resident firmware (built the first time only)"):
        return resident_firmware.build_resident(folder, board)


def resident_image(job: RunJob, firmware: Executable, reporter: Reporter) -> Image:
    """A `firmware` with every kernel, and the program to load into it. BuildError when that does not fit."""
    path, program = job.path, job.program
    areas = None if job.priced is None else job.priced.areas
    notes = resident_firmware.check_fit(
        program, job.plan.name, firmware.board, areas, allow_spill=job.options.allow_spill
    )
    for note in notes:
        reporter.warn(escape(note))
    header = input_image.encode_program_header(
        program.size, resident_firmware.mode_number(program.target(), areas)
    )
    images = (
        (firmware.symbols[protocol.PROGRAM_MEMORY_SYMBOL].address, result_files.pte_content(path, program)),
        (firmware.symbols[protocol.PROGRAM_HEADER_SYMBOL].address, header),
    )
    return Image(firmware, notes, images)


def expected_of(
    job: RunJob, groups: Groups, cut: SplitStreams, figures: simulation.Figures, nonce: bytes
) -> evidence.ExpectedRun:
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
        pieces={instruction: len(cut.pieces[index]) for instruction, index in cut.delegates.items()},
        nonce=nonce,
        sends_last=job.options.outputs == LAST_STEP,
        method=job.plan.name,
    )


def _request(boot: Boot) -> simulation.SimulationRequest:
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
    symbols = image.firmware.symbols
    place = symbols[protocol.INPUT_IMAGE_SYMBOL]
    if len(content) > place.bytes:
        raise UsageError(
            f"{len(sets)} sets of inputs and {len(parts)} pieces of command streams need "
            f"{len(content):,} bytes, there are {place.bytes:,}",
            "leave --resident out" if options.resident else "run them in several parts",
        )
    addresses = {name: row.address for name, row in symbols.items()}
    return simulation.SimulationRequest(
        elf=image.firmware.elf,
        images=((place.address, content), *image.images),
        target=boot.job.target,
        timeout_s=options.timeout_s,
        idle_timeout_s=options.idle_timeout_s(boot.job.path),
        uart_log=boot.job.folder / UART_NAME,
        count_instructions=expected.counts_cycles,
        compare_loaded=True,
        marks=None if boot.no_cpu_cycles else cpu_time.firmware_marks(addresses),
        uart_tee=uart.step_stream(options.on_step),
    )


def _sequence(job: RunJob) -> SequenceBlock | None:
    steps, kept = job.samples.steps, job.kept
    if not job.samples.is_sequence and not kept.is_watched:
        return None
    states = [StateTensor(*row.place, row.initial) for row in kept.tensors] if kept.is_watched else []
    return SequenceBlock(tuple(map(len, steps.given)), steps.feeds, tuple(states), steps.first_step)


def execution_of(
    boot: Boot, reported: Evidence, result: simulation.SimulationResult, seen: StateSeen = _NO_STATE
) -> Execution:
    """The execution of a boot's job, or of one of its calls, from what the firmware `reported`."""
    job, simulator, firmware, plan = boot.job, boot.simulator, boot.image.firmware, reported.plan
    npu, unavailable = _npu(boot, reported)
    loaded = compared_elf(firmware.elf_sha256, result.loaded)
    data = [cpu_time.cpu_traffic(job.plan, row.instruction) for row in reported.operators]
    cpu = cpu_time.cpu_time_of_run(result, job.core, data, boot.no_cpu_cycles)
    files = len(job.program.data_files)
    done = (
        f"{counted(plan.inferences, 'inference')} reported done, every record complete, CRCs, seal, model SHA-256 "
        "match"
    )
    tensors = job.plan.output_tensors()
    outputs = tuple(
        tuple(input_values.logical_array(array, tensor) for array, tensor in zip(row, tensors, strict=True))
        for row in reported.outputs
    )
    return Execution(
        outputs=input_values.stacked(outputs, job.samples.stacked),
        done=Check(
            "the firmware's evidence is complete",
            True,
            done + (f"; SHA-256 of {counted(files, 'data file')} match" if files else ""),
        ),
        runtime=Runtime(name=OWN, version=__version__, elf_sha256=firmware.elf_sha256, loaded=loaded),
        steps=_steps(boot, reported, seen),
        state=seen.contents,
        simulator=simulator_part(simulator, boot.version, job.npu, job.macs),
        provenance_inputs=[provenance.file_entry("firmware", firmware.elf, firmware.elf_sha256)],
        tools=[*build_command.tool_rows(), provenance.tool_entry(simulator.name, boot.version), *cpu.tools],
        npu=npu,
        memory=Memory(
            regions=tuple(
                Use(name=row.name, used_bytes=row.used_bytes, size_bytes=row.size_bytes)
                for row in firmware.regions
            ),
            pools=tuple(
                Use(name=row["name"], used_bytes=row["used_bytes"], size_bytes=row["size_bytes"])
                for row in reported.memory
            ),
            board=boot.image.uses_of or None,
            uses=boot.image.uses or None,
        ),
        operators=_operators(reported, boot.figures, cpu),
        cpu=cpu.part,
        unavailable=[*cpu.unavailable, *_not_counted(boot), *loaded_unavailable(loaded), *unavailable],
        repeated=Repeated(
            plan,
            reported.changed_outputs,
            reported.changed_counters,
            counters_must_agree=boot.figures.source == simulation.MODELLED,
        ),
        notes=boot.image.notes,
        built=boot.image.built,
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


def _operators(reported: Evidence, figures: simulation.Figures, cpu: CpuTime) -> tuple[Operator, ...]:
    first = () if figures.absent else reported.pmu
    cycles = {row.instruction: row.cycles for row in first if row.inference == 0}
    rows = []
    for number, row in enumerate(reported.operators):
        counted, taken = None, cycles.get(row.instruction)
        if row.cpu_cycles is not None and row.kind == "kernel":
            counted = metric(
                round(row.cpu_cycles * figures.instructions_per_cycle), "instructions", simulation.COUNTED
            )
        time = cpu.operators[number] if cpu.operators else None
        rows.append(
            Operator(
                instruction=row.instruction,
                kind=row.kind,
                name=row.name,
                npu_cycles=None if taken is None else metric(taken, "cycles", figures.source),
                instructions=counted,
                cpu_cycles=None if time is None else time.cycles,
                cpu_parts=None if time is None else time.parts,
            )
        )
    return tuple(rows)


def _not_counted(boot: Boot) -> list[Unavailable]:
    if not boot.job.options.count_instructions or boot.figures.instructions_per_cycle:
        return []
    return [Unavailable(path="/cpu/instructions", reason="the simulator does not count instructions")]


def _npu(boot: Boot, reported: Evidence) -> tuple[Npu | None, list[Unavailable]]:
    """The record's `npu` from the inferences of the first set that counted one group each."""
    groups, npu = boot.groups, boot.job.npu
    if reported.npu is None or npu is None:
        return None, [provenance.lacking_npu("/npu")]
    by_group = [[row for row in reported.pmu if row.inference == number] for number in range(len(groups))]
    cycles = [sum(row.cycles for row in rows) if rows else None for rows in by_group]
    part, unavailable = npu_part(
        npu,
        [event for events in groups for event in events],
        boot.figures,
        identity=(reported.npu["id"], reported.npu["config"]),
        delegate_calls=reported.delegate_calls,
        cycles=cycles[0],
        totals=_totals([row for rows in by_group for row in rows]),
    )
    return repeats.grouped(part, groups, cycles), unavailable


def _totals(samples: Sequence[PmuSample]) -> dict[int, tuple[int, bool]]:
    """Event number → (sum over the delegate calls of one inference, whether any counter overflowed)."""
    totals: dict[int, tuple[int, bool]] = {}
    for sample in samples:
        for index, (event, value) in enumerate(sample.counters):
            total, overflowed = totals.get(event, (0, False))
            totals[event] = (total + value, overflowed or bool(sample.overflow >> index & 1))
    return totals


# Command streams that are split between operations, and the counters of each piece.


def split_streams(job: RunJob) -> SplitStreams:
    """The delegates of the job's plan in pieces, where --split asks for it; one that cannot be cut stays whole.
    UsageError when it has none, or several sets of inputs."""
    if not job.options.split:
        return SplitStreams()
    if job.samples.count > 1:
        raise UsageError("--split takes one set of inputs", "give one set of inputs")
    plan = job.plan
    cut_delegates: dict[int, tuple[StreamPart, ...]] = {}
    uncut: dict[int, str] = {}
    for index, delegate in enumerate(plan.delegates):
        if delegate.vela is None:
            continue
        stream = bytes(delegate.vela.command_stream)
        try:
            cut_delegates[index] = pieces.cut(stream, NpuConfig.from_word(delegate.vela.config_word))
        except SdkError as error:
            cut_delegates[index] = (StreamPart((), stream),)
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


def _with_pieces(execution: Execution, boot: Boot, reported: Evidence) -> Execution:
    """`execution` with the jobs of the first set's inference in pieces, and whether they gave what the whole did."""
    unavailable = [
        Unavailable(path=f"/delegates/{index}/pieces", reason=reason)
        for index, reason in boot.cut.uncut.items()
    ]
    if boot.figures.absent:
        unavailable.insert(0, Unavailable(path="/pieces", reason=boot.figures.absent))
    plan, name = reported.plan, "the pieces gave the same outputs as the whole"
    detail = f"{len(reported.pieces)} NPU jobs instead of one for each delegate call, every output equal"
    check = Check(name, True, detail)
    changed = [
        row for row in reported.changed_outputs if plan.runs_pieces(row.set * plan.repeats + row.repeat)
    ]
    if changed:
        others = counted(len(changed) - 1, "other")
        check = Check(name, False, f"output {changed[0].index} and {others} differ")
    return replace(
        execution,
        pieces=() if boot.figures.absent else _pieces(boot, reported.pieces),
        checks=[check],
        unavailable=[*execution.unavailable, *unavailable],
    )


def _pieces(boot: Boot, samples: Sequence[PmuSample]) -> tuple[Piece, ...]:
    rows = []
    done: dict[int, int] = {}
    for sample in samples:
        number = done.get(sample.instruction, 0)
        done[sample.instruction] = number + 1
        delegate = boot.cut.delegates[sample.instruction]
        own = boot.cut.pieces[delegate]
        npu, _ = npu_part(
            boot.job.npu or "",
            [event for event, _ in sample.counters],
            boot.figures,
            identity=(0, 0),
            delegate_calls=1,
            cycles=sample.cycles,
            totals=_totals([sample]),
        )
        assert npu.cycles is not None  # the figures are not absent
        counters = ({name: getattr(row, name) for name in Counter.__struct_fields__} for row in npu.counters)
        rows.append(
            Piece(
                instruction=sample.instruction,
                delegate=delegate,
                call=number // len(own),
                offsets=own[number % len(own)].offsets,
                cycles=npu.cycles,
                counters=tuple(Counter(**row) for row in counters),
            )
        )
    return tuple(rows)
