"""`ethosu-sdk profile`: a run, and where its cycles and bytes go; profile.json: ``profile/1``."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ethosu_sdk.analysis import profile_rows, profile_totals
from ethosu_sdk.analysis.options import ProfileOptions
from ethosu_sdk.analysis.profile_rows import DelegateProfile
from ethosu_sdk.base import board_profiles, filesystem, json_text
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.targets import Target
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.compile import pricing_system
from ethosu_sdk.compile.pricing_system import PricingSystem
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.npu import errors
from ethosu_sdk.npu.timing.systems import SystemConfig
from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import DelegateCall, ExecutionPlan, KernelCall
from ethosu_sdk.records import bundle, kinds, profile_words, provenance, result_files, validation
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Operator, Run
from ethosu_sdk.run import job, run_command, time_line
from ethosu_sdk.run.options import RunOptions
from ethosu_sdk.run.run_command import RunResult
from ethosu_sdk.run.time_line import CpuClock, KnownClock, TimeFacts
from ethosu_sdk.simulate.simulation import MODELLED

# ---- steps.profile.profile_record
# profile.json: ``profile/1``, from a run, its program and what `compile` knew of it.

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
_VELA = "ethos-u-vela"


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


@dataclass(frozen=True)
class _Call:
    """An instruction that computes, and the entries of its calls in the run record."""

    index: int
    instruction: KernelCall | DelegateCall
    ran: Sequence[Operator]

    @property
    def calls(self) -> int:
        """How often it ran in the first inference."""
        return len(self.ran)


def make_profile_record(facts: ProfileFacts) -> Record:
    """The record of a profile."""
    target = facts.program.target()
    plan = facts.program.plan(facts.run.model.entry)
    priced = facts.priced
    system = None if priced is None else job.system_of_run(facts.run, priced.system)
    delegates = {} if system is None else _delegates(plan, system)
    calls = _calls(plan, facts.run)
    rows = profile_rows.rows_with_jobs(_rows(calls, plan, delegates, facts.compiled), facts.run.pieces or ())
    sums = profile_totals.Sums(
        rows=rows,
        ran=_ran(calls),
        delegates=list(delegates.values()),
        compiled=facts.compiled,
        cpu=facts.run.cpu,
    )
    clock = _clock(facts)
    run = facts.run.to_json()
    parts = profile_totals.total_parts(sums, None if clock is None else clock["hz"])
    time, no_time = profile_totals.profile_time_member(_time_facts(facts, calls, parts), parts, rows)
    return {
        **provenance.header(kinds.PROFILE.schema, facts.run.status, _inputs(facts), _tools(facts)),
        "model": run["model"],
        **provenance.target_members(target),
        **({} if priced is None else {"priced": priced.part()}),
        "board": facts.run.board,
        "simulator": run["simulator"],
        **({} if clock is None else {"clock": clock}),
        "operations": [{"index": index, **row} for index, row in enumerate(rows)],
        **parts,
        **profile_totals.phases_member(facts.run, facts.prefill),
        **time,
        "unavailable": [
            *_unavailable(facts, target, system, delegates, rows, parts["memories"]),
            *no_time,
        ],
        "host": provenance.host_part(),
    }


def _time_facts(facts: ProfileFacts, calls: Sequence[_Call], parts: Record) -> TimeFacts:
    """The run with the profile's own cycles of each delegate, which are for the profile's system."""
    modelled = {
        row["index"]: metric["value"]
        for row in parts["delegates"]
        for metric in row["cycles"]
        if metric["source"] == MODELLED
    }
    jobs = {
        call.index: modelled[call.instruction.delegate_index]
        for call in calls
        if isinstance(call.instruction, DelegateCall) and call.instruction.delegate_index in modelled
    }
    return TimeFacts(facts.run, facts.priced, facts.cpu_clock, facts.clock_hz, jobs)


def _inputs(facts: ProfileFacts) -> list[Record]:
    files = [("run", facts.run_file)]
    if facts.compiled is not None:
        files.append(("compile", facts.compiled_file))
    return [
        *result_files.program_entries(facts.path, facts.program),
        *(provenance.file_entry(role, path) for role, path in files),
    ]


def _tools(facts: ProfileFacts) -> list[Record]:
    """The tools of the run, and the Vela that made the estimates."""
    compiled = () if facts.compiled is None else facts.compiled.provenance.tools
    vela = [row.to_json() for row in compiled if row.name == _VELA]
    return [*(row.to_json() for row in facts.run.provenance.tools), *vela]


def _clock(facts: ProfileFacts) -> Record | None:
    """The clock that was asked for, else that of the system; none where that stands in for an unknown one."""
    if facts.clock_hz is not None:
        return {"hz": facts.clock_hz, "source": "--clock-mhz"}
    if facts.priced is None or facts.priced.areas is None:
        return None
    system = facts.priced.system
    return {"hz": system.clock_hz, "source": f"core_clock of {system.name} in {system.source}"}


def _delegates(plan: ExecutionPlan, system: SystemConfig) -> dict[int, DelegateProfile]:
    found = (profile_rows.read_delegate(index, row, system) for index, row in enumerate(plan.delegates))
    return {row.index: row for row in found if row is not None}


def _calls(plan: ExecutionPlan, run: Run) -> list[_Call]:
    """The kernel and delegate calls of the first inference in the order of their first run."""
    instructions = plan.instructions
    ran: defaultdict[int, list[Operator]] = defaultdict(list)
    for row in run.operators:
        ran[row.instruction].append(row)
    return [
        _Call(index, instruction, entries)
        for index, entries in ran.items()
        if index < len(instructions)
        and isinstance(instruction := instructions[index], (KernelCall, DelegateCall))
    ]


def _ran(calls: Sequence[_Call]) -> dict[int, list[Operator]]:
    """The entries of each delegate's calls, which may be of several instructions."""
    found: defaultdict[int, list[Operator]] = defaultdict(list)
    for call in calls:
        if isinstance(call.instruction, DelegateCall):
            found[call.instruction.delegate_index] += call.ran
    return found


def _rows(
    calls: Sequence[_Call],
    plan: ExecutionPlan,
    delegates: dict[int, DelegateProfile],
    compiled: Compilation | None,
) -> Iterator[Record]:
    known = {} if compiled is None else {row.index: row for row in compiled.delegates}
    for call in calls:
        place = {"instruction": call.index, "calls": call.calls}
        if isinstance(call.instruction, KernelCall):
            yield {**place, **profile_rows.cpu_row(call.instruction, plan, call.ran, compiled)}
        elif (found := delegates.get(call.instruction.delegate_index)) is not None:
            for row in profile_rows.operation_rows(found, known.get(found.index)):
                yield {**place, **row}


def _unavailable(
    facts: ProfileFacts,
    target: Target | None,
    system: SystemConfig | None,
    delegates: dict[int, DelegateProfile],
    rows: Sequence[Record],
    memories: Sequence[Record],
) -> Iterator[Record]:
    if target is None or system is None:
        yield provenance.without_npu("/target")
    elif facts.priced is not None and facts.priced.areas is None:
        yield {"path": "/system", "reason": _NO_SYSTEM.format(target=target, system=system)}
    if facts.compiled is None:
        reason = _OF_ANOTHER_METHOD if facts.compiled_file.is_file() else _NO_COMPILE_RECORD
        names = {"name": facts.compiled_file.name, "method": facts.run.model.entry}
        yield {"path": "/vela", "reason": reason.format(**names)}
    for found in delegates.values():
        if found.reason:
            yield {"path": f"/delegates/{found.index}/operations", "reason": found.reason}
    for index, memory in enumerate(memories):
        if "bursts" not in memory:
            yield {"path": f"/memories/{index}/bursts", "reason": _NO_BURSTS}
    if any(row["runs_on"] == "CPU" and "instructions" not in row for row in rows):
        reasons = [row.reason for row in facts.run.unavailable if row.path == "/cpu/instructions"]
        reason = (
            reasons[0] if reasons else "the run did not count them: `profile MODEL` makes a run that does"
        )
        yield {"path": "/totals/cpu/instructions", "reason": reason}
    yield from _no_cpu_cycles(facts.run)
    cycles = (row.npu_cycles for row in facts.run.operators)
    if not any(row is not None and row.source == "measured" for row in cycles):
        yield {"path": "/totals/npu/cycles/measured", "reason": "no hardware and no FVP ran the program"}


def _no_cpu_cycles(run: Run) -> Iterator[Record]:
    for row in run.unavailable:
        if row.path == "/cpu/cycles" and run.cpu.cycles is None:
            yield {"path": "/totals/cpu/cycles", "reason": row.reason}


# ---- steps.profile.profile_command
# `ethosu-sdk profile`: a run, and where its cycles and bytes go.

CSV_NAME = "profile.csv"
_MAKE_A_RUN = "give the program itself: `ethosu-sdk profile MODEL.pte` runs it first"


@dataclass(frozen=True)
class _Asked:
    """What the user asked for: a board profile or Vela configuration file that has the system, the clocks of NPU and
    CPU, the time limit, the steps of the first phase."""

    vela_config: Path | None
    timeout_s: float
    system: str | None = None
    clock_mhz: float | None = None
    cpu_clock_mhz: float | None = None
    prefill: int | None = None


@dataclass(frozen=True)
class Profiled:
    """A profile: the folder that it was written to, the folder of its run, the program, and the record."""

    folder: Path
    run_folder: Path
    pte: Path
    record: Record

    @property
    def content(self) -> Profile:
        """What the record holds."""
        return kinds.PROFILE.convert(self.record)


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
    if Path(subject).is_dir() and options.split:
        raise UsageError("--split needs a new run and cannot use the folder of an earlier one", _MAKE_A_RUN)
    if Path(subject).is_dir():
        done = replace(_finished(Path(subject)), data=run_options.data)
    else:
        run_options = replace(
            run_options, count_instructions=True, cpu_cycles=options.cpu_cycles, split=options.split
        )
        done = run_command.run(subject, compile_options, run_options, out_dir, reporter.for_step())
    asked = _Asked(
        compile_options.vela_config,
        run_options.timeout_s,
        compile_options.system,
        options.clock_mhz,
        run_options.cpu_clock_mhz,
        options.prefill,
    )
    record = _record(done, asked)
    validation.check_record(record, "the profile")
    content = kinds.PROFILE.convert(record)
    folder = filesystem.make_directory(out_dir) if out_dir is not None else done.folder
    with filesystem.locked_folder(folder), bundle.writing_folder(folder, "profile") as add:
        table = result_files.csv_table(
            profile_words.CSV_COLUMNS, map(profile_words.csv_row, content.operations)
        )
        filesystem.write_bytes(folder / CSV_NAME, table.encode())
        json_text.write_json(folder / kinds.PROFILE.file, record)
        add(kinds.PROFILE.file, CSV_NAME)
    reporter.show(*profile_words.profile_tables(content, folder, options.rows))
    reporter.emit(record)
    return Profiled(folder, done.folder, done.pte, record)


def profile_of_run(
    folder: Path, vela_config: Path | None = None, *, prefill: int | None = None, timeout_s: float
) -> Record:
    """The record of the profile of the run in `folder`, priced with the file `vela_config` if there is one, with a
    phase of the first `prefill` steps; nothing is written."""
    return _record(_finished(folder), _Asked(vela_config, timeout_s, prefill=prefill))


def _record(done: RunResult, asked: _Asked) -> Record:
    run = done.record
    program = result_files.program_of_run(done.pte, run.provenance.inputs, done.data)
    if provenance.recorded_target(program.target()) != run.target:
        raise InputError(
            f"{done.folder / kinds.RUN.file} is of another target than {done.pte} was compiled for",
            _MAKE_A_RUN,
        )
    priced = _pricing(done.pte, program, run, asked)
    facts = ProfileFacts(
        path=done.pte,
        program=program,
        run=run,
        priced=priced,
        run_file=done.folder / kinds.RUN.file,
        compiled=_compile_record(done.pte, run),
        compiled_file=result_files.compile_record_path(done.pte),
        clock_hz=None if asked.clock_mhz is None else asked.clock_mhz * 1e6,
        cpu_clock=_cpu_clock(run, asked, priced),
        prefill=asked.prefill,
    )
    with errors.until(time.monotonic() + asked.timeout_s):
        return make_profile_record(facts)


def _cpu_clock(run: Run, asked: _Asked, priced: PricingSystem | None) -> CpuClock:
    """The clock that was asked for, else that of the run."""
    found = time_line.cpu_clock(asked.system, asked.cpu_clock_mhz, priced)
    known = run.time
    if known is None or found.was_asked_for(asked.system):
        return found
    clock = KnownClock(known.clocks.cpu.hz, known.clocks.cpu.source)
    return replace(found, clock=clock, reason="")


def _pricing(path: Path, program: pte.Pte, run: Run, asked: _Asked) -> PricingSystem | None:
    """The system of the board or file that was asked for, else that of the run, where it knew the program's own."""
    if asked.system is not None:
        return pricing_system.pricing_on_board(path, program, board_profiles.find_profile(asked.system))
    vela_config = asked.vela_config
    if vela_config is None and run.priced is not None and run.priced.compiled_for:
        system = pricing_system.system_of_record(run.priced.system)
        return PricingSystem(system, True, system.areas)
    return pricing_system.pricing_of_program(path, program, vela_config)


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


def _compile_record(program: Path, run: Run) -> Compilation | None:
    """What `compile` wrote of the program; None when there is nothing, or when it is about another.

    Its figures are of the program's first method, so it says nothing of a run of another one.
    """
    path = result_files.compile_record_path(program)
    found = bundle.compilation_of(path, run.model.sha256) if path.is_file() else None
    return found if found is not None and found.model.entry == run.model.entry else None
