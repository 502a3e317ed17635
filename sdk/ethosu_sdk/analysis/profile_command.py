"""`ethosu-sdk profile`: a run, and where its cycles and bytes go; profile.json: ``profile/1``."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import convert

from ethosu_sdk.analysis import profile_rows, profile_stream, profile_totals
from ethosu_sdk.analysis.options import ProfileOptions
from ethosu_sdk.analysis.profile_rows import Call, DelegateProfile
from ethosu_sdk.analysis.profile_totals import Sums
from ethosu_sdk.base import board_profiles, filesystem, json_text
from ethosu_sdk.base.board_profiles import BoardProfile
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.compile import pricing_system
from ethosu_sdk.compile.options_beside_program import refuse_options
from ethosu_sdk.compile.pricing_system import PricingSystem
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.npu import errors
from ethosu_sdk.npu.timing.systems import SystemConfig
from ethosu_sdk.program import cop1, pte
from ethosu_sdk.program.execution_plan import DelegateCall, ExecutionPlan, KernelCall
from ethosu_sdk.records import (
    answers,
    bundle,
    kinds,
    profile_words,
    provenance,
    result_files,
    run_facts,
    validation,
)
from ethosu_sdk.records.common import Priced, Unavailable
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.profile import Memory, Operation, Profile, VelaEstimates, cycles
from ethosu_sdk.records.run import Operator, Run
from ethosu_sdk.records.time_line import Clock
from ethosu_sdk.run import job, run_command, time_line
from ethosu_sdk.run.options import RunOptions
from ethosu_sdk.run.reference import CompileRecord
from ethosu_sdk.run.run_command import RunResult
from ethosu_sdk.run.time_line import CpuClock, KnownClock, TimeFacts

_CSV_NAME = "profile.csv"
_MAKE_A_RUN = "give the program itself: `ethosu-sdk profile MODEL.pte` runs it first"
_VELA = "ethos-u-vela"

# Why a member of the record is absent.
_NO_COMPILE_RECORD = (
    "there is no {name} beside the program: names in the model and Vela's estimates are in it"
)
_OF_ANOTHER_METHOD = (
    "{name} is of another program, or has Vela's estimates of its first method, not of {method}"
)
_NO_SYSTEM = (
    "the memories of {target.system_config} with {target.memory_mode} are not known here; cycles and traffic are for "
    "{system.name} with {system.memory_mode}. --vela-config FILE.ini gives the file that it was compiled with"
)
_NO_BURSTS = (
    "the operations of a command stream are not known, or the system configuration has no MEMORY_burst_length of a "
    "data beat or more"
)
_NOT_COUNTED = "the run did not count them: `profile MODEL` makes a run that does"


@dataclass(frozen=True)
class Profiled:
    """A profile: the folder that it was written to, the folder of its run, the program, and the record."""

    folder: Path
    run_folder: Path
    pte: Path
    content: Profile


def profile(
    subject: str,
    compile_options: CompileOptions,
    run_options: RunOptions,
    options: ProfileOptions,
    out_dir: Path | None,
    reporter: Reporter,
) -> Profiled:
    """Profile `subject`, a model, a program or the folder of a run.

    A model or program is run first. Its instructions on the CPU are counted, and their cycles modelled.
    """
    if cop1.is_stream(Path(subject)):
        return _profile_stream(Path(subject), compile_options, run_options, options, out_dir, reporter)
    subject = result_files.folder_of(subject)
    is_run = Path(subject).is_dir()
    if is_run:
        if options.split:
            message = "--split needs a new run and cannot use the folder of an earlier one"
            raise UsageError(message, _MAKE_A_RUN)
        done = replace(_finished(Path(subject)), data=run_options.data)
        refuse_options(done.pte, compile_options, done.data)
    else:
        run_options = replace(run_options, cpu_cycles=options.cpu_cycles, split=options.split)
        run_options = replace(run_options, count_instructions=True)
        done = run_command.run(subject, compile_options, run_options, out_dir, reporter.for_step())
    content = _profile(
        done,
        compile_options.vela_config,
        run_options.timeout_s,
        system=compile_options.system,
        clock_mhz=options.clock_mhz,
        cpu_clock_mhz=run_options.cpu_clock_mhz,
        prefill=options.prefill,
    )
    folder = filesystem.make_directory(out_dir) if out_dir is not None else done.folder
    record = _write(content, folder)
    shown = run_command.subject_of(
        done.record.model.file if is_run else subject, compile_options, done.folder
    )
    compiled = CompileRecord(done.pte, done.record.model.sha256).readable
    reporter.show(*answers.profile_answer(done.record, content, compiled, shown, options.rows))
    if reporter.verbose:
        reporter.show("", *profile_words.profile_tables(content, folder))
    reporter.emit(record)
    return Profiled(folder, done.folder, done.pte, content)


def _write(content: Profile, folder: Path) -> Record:
    """Write profile.json and profile.csv; the record."""
    record = content.to_json()
    validation.check_record(record, "the profile")
    rows = map(profile_words.csv_row, content.operations)
    table = result_files.csv_table(profile_words.CSV_COLUMNS, rows)
    with filesystem.locked_folder(folder), bundle.writing_folder(folder, "profile") as add:
        filesystem.write_bytes(folder / _CSV_NAME, table.encode())
        json_text.write_json(folder / kinds.PROFILE.file, record)
        add(kinds.PROFILE.file, _CSV_NAME)
    return record


def _profile_stream(
    path: Path,
    compile_options: CompileOptions,
    run_options: RunOptions,
    options: ProfileOptions,
    out_dir: Path | None,
    reporter: Reporter,
) -> Profiled:
    """Profile the bare command stream at `path`: nothing is run."""
    profile_stream.check_options(path, run_options, options)
    with errors.until(time.monotonic() + run_options.timeout_s):
        target, content = profile_stream.profile_of_stream(path, compile_options, options.clock_mhz)
    place = result_files.place_for_model(path.stem, target, out_dir)
    folder = filesystem.make_directory(place)
    record = _write(content, folder)
    reporter.show(*answers.stream_answer(content, target.name, options.rows))
    if reporter.verbose:
        reporter.show("", *profile_words.profile_tables(content, folder))
    reporter.emit(record)
    return Profiled(folder, folder, path, content)


def profile_of_run(
    folder: Path, vela_config: Path | None = None, *, prefill: int | None = None, timeout_s: float
) -> Profile:
    """The profile of the run in `folder`, priced with the file `vela_config` if there is one, with a phase of the
    first `prefill` steps; nothing is written."""
    return _profile(_finished(folder), vela_config, timeout_s, prefill=prefill)


def _finished(folder: Path) -> RunResult:
    """The run in `folder`. InputError when there is none, or not its program."""
    path = folder / kinds.RUN.file
    if not path.is_file():
        raise InputError(f"{folder} is not the folder of a run: it has no {path.name}", _MAKE_A_RUN)
    run = bundle.read_record(path)
    if not isinstance(run, Run):
        raise InputError(f"{path} is not a record of a run", _MAKE_A_RUN)
    program = folder / Path(run.model.file).name
    if not program.is_file() or filesystem.sha256_file(program) != run.model.sha256:
        raise InputError(f"the program of the run is not in {folder}: {run.model.file}", _MAKE_A_RUN)
    return RunResult(folder, run, program)


def _profile(
    done: RunResult,
    vela_config: Path | None,
    timeout_s: float,
    *,
    system: str | None = None,
    clock_mhz: float | None = None,
    cpu_clock_mhz: float | None = None,
    prefill: int | None = None,
) -> Profile:
    """The profile of a run. The board profile `system` or the file `vela_config` has the memories that it is for; the
    clocks are those of NPU and CPU."""
    run = done.record
    program = result_files.program_of_run(done.pte, run.provenance.inputs, done.data)
    if provenance.recorded_target(program.target()) != run.target:
        message = f"{done.folder / kinds.RUN.file} is of another target than {done.pte} was compiled for"
        raise InputError(message, _MAKE_A_RUN)
    board = board_of_profile(done.pte, program, run, system, vela_config)
    priced = _pricing(done.pte, program, run, board, vela_config)
    # Its figures are of the program's first method, so that it says nothing of a run of another one.
    compiled_file = result_files.compile_record_path(done.pte)
    compiled = bundle.compilation_of(compiled_file, run.model.sha256) if compiled_file.is_file() else None
    cpu_clock = time_line.cpu_clock(board, cpu_clock_mhz)
    if run.time is not None and system is None and not cpu_clock.is_given:
        ran_at = run.time.clocks.cpu
        cpu_clock = replace(cpu_clock, clock=KnownClock(ran_at.hz, ran_at.source), reason="")
    facts = ProfileFacts(
        path=done.pte,
        program=program,
        run=run,
        priced=priced,
        run_file=done.folder / kinds.RUN.file,
        compiled=compiled if compiled is not None and compiled.model.entry == run.model.entry else None,
        compiled_file=compiled_file,
        clock_hz=None if clock_mhz is None else clock_mhz * 1e6,
        cpu_clock=cpu_clock,
        prefill=prefill,
    )
    with errors.until(time.monotonic() + timeout_s):
        return make_profile_record(facts)


def board_of_profile(
    path: Path, program: pte.Pte, run: Run, system: str | None, vela_config: Path | None
) -> BoardProfile | None:
    """The board that was asked for, else that of the run, else the program's."""
    if system is not None:
        return board_profiles.find_profile(system)
    if vela_config is not None:
        return None
    found = pricing_system.board_of_name(program, run_facts.board_of_run(run))
    return found or pricing_system.board_of_program(path, program)


def _pricing(
    path: Path, program: pte.Pte, run: Run, board: BoardProfile | None, vela_config: Path | None
) -> PricingSystem | None:
    """The system of the board or file that was asked for, else that of the run, where it knew the program's own."""
    if board is not None:
        return pricing_system.pricing_on_board(path, program, board)
    if vela_config is None and run.priced is not None and run.priced.compiled_for:
        system = pricing_system.system_of_record(run.priced.system)
        return PricingSystem(system, True, system.areas)
    return pricing_system.pricing_of_program(path, program, vela_config)


@dataclass(frozen=True)
class ProfileFacts:
    """A run (its record and that record's file), its program, and the compile record where there is one.

    `priced` is the system that cycles are for (None: no NPU), `clock_hz` the clock that was asked for; None takes the
    system's, where that is known. `cpu_clock` is the CPU's, `prefill` the number of steps of a sequence's
    first phase.
    """

    path: Path
    program: pte.Pte
    run: Run
    run_file: Path
    priced: PricingSystem | None
    compiled: Compilation | None
    compiled_file: Path
    clock_hz: float | None
    cpu_clock: CpuClock
    prefill: int | None = None


def make_profile_record(facts: ProfileFacts) -> Profile:
    run, compiled = facts.run, facts.compiled
    plan = facts.program.plan(run.model.entry)
    system = None if facts.priced is None else job.system_of_run(run, facts.priced.system)
    delegates: dict[int, DelegateProfile] = {}
    for index, delegate in enumerate(plan.delegates):
        if system is not None and (read := profile_rows.read_delegate(index, delegate, system)) is not None:
            delegates[index] = read
    calls = _calls(plan, run)
    rows = profile_rows.profiled_operations(calls, plan, delegates, compiled, run.pieces or ())
    ran = _ran(calls)
    sums = Sums(
        rows=rows,
        ran=ran,
        profiles=list(delegates.values()),
        delegates=tuple(
            profile_totals.delegate_totals(row, ran[row.index], compiled)
            for row in delegates.values()
            if row.index in ran
        ),
    )
    clock = _clock(facts)
    clock_hz = None if clock is None else clock.hz
    line, no_time = profile_totals.inference_time(_time_facts(facts, calls, sums), sums)
    memories = profile_totals.memory_totals(sums, clock_hz)
    return Profile(
        status=run.status,
        **provenance.origin(_inputs(facts), _tools(facts)),
        model=run.model,
        target=provenance.recorded_target(facts.program.target()),
        priced=None if facts.priced is None else convert(facts.priced.part(), Priced),
        board=run.board,
        simulator=run.simulator,
        clock=clock,
        operations=rows,
        delegates=sums.delegates,
        memories=memories,
        totals=profile_totals.inference_totals(sums, run.cpu, clock_hz),
        phases=profile_totals.sequence_phases(run, facts.prefill),
        time=line,
        vela=tuple(
            VelaEstimates(delegate=row.index, estimates=row.estimates)
            for row in (compiled.delegates if compiled is not None else ())
        )
        or None,
        delegation=None if compiled is None else compiled.delegation,
        unavailable=(
            *_unavailable_inputs(facts, system),
            *_unavailable_figures(run, list(delegates.values()), rows, memories),
            *no_time,
        ),
        host=provenance.this_host(),
    )


def _calls(plan: ExecutionPlan, run: Run) -> list[Call]:
    """The kernel and delegate calls of the first inference in the order of their first run."""
    instructions = plan.instructions
    ran: defaultdict[int, list[Operator]] = defaultdict(list)
    for row in run.operators:
        ran[row.instruction].append(row)
    return [
        Call(index, instruction, entries)
        for index, entries in ran.items()
        if index < len(instructions)
        and isinstance(instruction := instructions[index], (KernelCall, DelegateCall))
    ]


def _ran(calls: Sequence[Call]) -> Mapping[int, Sequence[Operator]]:
    found: defaultdict[int, list[Operator]] = defaultdict(list)
    for call in calls:
        if isinstance(call.instruction, DelegateCall):
            found[call.instruction.delegate_index] += call.ran
    return found


def _clock(facts: ProfileFacts) -> Clock | None:
    """The clock that was asked for, else that of the system; none where that stands in for an unknown one."""
    if facts.clock_hz is not None:
        return Clock(hz=facts.clock_hz, source="--clock-mhz")
    if facts.priced is None or facts.priced.areas is None:
        return None
    system = facts.priced.system
    return Clock(hz=system.clock_hz, source=f"core_clock of {system.name} in {system.source}")


def _time_facts(facts: ProfileFacts, calls: Sequence[Call], sums: Sums) -> TimeFacts:
    """The run with the profile's own cycles of each delegate, which are for the profile's system."""
    modelled = {row.index: cycles(row.cycles, "modelled") for row in sums.delegates}
    jobs = {
        call.index: found
        for call in calls
        if isinstance(call.instruction, DelegateCall)
        and (found := modelled.get(call.instruction.delegate_index)) is not None
    }
    return TimeFacts(facts.run, facts.priced, facts.cpu_clock, facts.clock_hz, jobs)


def _inputs(facts: ProfileFacts) -> list[Record]:
    files = [("run", facts.run_file)] + ([("compile", facts.compiled_file)] if facts.compiled else [])
    entries = [provenance.file_entry(role, path) for role, path in files]
    return [*result_files.program_entries(facts.path, facts.program), *entries]


def _tools(facts: ProfileFacts) -> list[Record]:
    compiled = () if facts.compiled is None else facts.compiled.provenance.tools
    vela = (row for row in compiled if row.name == _VELA)
    return [row.to_json() for row in (*facts.run.provenance.tools, *vela)]


def _unavailable_inputs(facts: ProfileFacts, system: SystemConfig | None) -> Iterator[Unavailable]:
    target = facts.program.target()
    if target is None or system is None:
        yield provenance.lacking_npu("/target")
    elif facts.priced is not None and facts.priced.areas is None:
        yield Unavailable(path="/system", reason=_NO_SYSTEM.format(target=target, system=system))
    if facts.compiled is None:
        reason = _OF_ANOTHER_METHOD if facts.compiled_file.is_file() else _NO_COMPILE_RECORD
        names = {"name": facts.compiled_file.name, "method": facts.run.model.entry}
        yield Unavailable(path="/vela", reason=reason.format(**names))


def _unavailable_figures(
    run: Run, delegates: Sequence[DelegateProfile], rows: Sequence[Operation], memories: Sequence[Memory]
) -> Iterator[Unavailable]:
    for found in delegates:
        if found.reason:
            yield Unavailable(path=f"/delegates/{found.index}/operations", reason=found.reason)
    for index, memory in enumerate(memories):
        if memory.bursts is None:
            yield Unavailable(path=f"/memories/{index}/bursts", reason=_NO_BURSTS)
    of_run = {row.path: row.reason for row in reversed(run.unavailable)}
    if any(row.runs_on == "CPU" and row.instructions is None for row in rows):
        reason = of_run.get("/cpu/instructions", _NOT_COUNTED)
        yield Unavailable(path="/totals/cpu/instructions", reason=reason)
    if "/cpu/cycles" in of_run and run.cpu.cycles is None:
        yield Unavailable(path="/totals/cpu/cycles", reason=of_run["/cpu/cycles"])
    measured = (row.npu_cycles for row in run.operators)
    if not any(row is not None and row.source == "measured" for row in measured):
        yield Unavailable(path="/totals/npu/cycles/measured", reason="no hardware and no FVP ran the program")
