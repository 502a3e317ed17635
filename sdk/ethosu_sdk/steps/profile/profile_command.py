"""`ethosu-sdk profile`: a run, and where its cycles and bytes go."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from ethosu_sdk import pte, schema
from ethosu_sdk.boards import profiles
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.files import csv_text, hashing, json_text, locks, writing
from ethosu_sdk.npu import deadline
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Run
from ethosu_sdk.results import bundle, locations, program_files, reading as results, target_record
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.profile import profile_record
from ethosu_sdk.steps.profile.options import ProfileOptions
from ethosu_sdk.steps.profile.profile_record import ProfileFacts
from ethosu_sdk.steps.run import run_command
from ethosu_sdk.steps.run.options import RunOptions
from ethosu_sdk.steps.run.run_command import RunResult
from ethosu_sdk.steps.shared import systems, time_line
from ethosu_sdk.steps.shared.systems import Priced
from ethosu_sdk.steps.shared.time_line import Clock, CpuClock
from ethosu_sdk.tables import profile_columns, profile_tables

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
    schema.check(record, "the profile")
    content = kinds.PROFILE.convert(record)
    folder = writing.make_directory(out_dir) if out_dir is not None else done.folder
    with locks.locked(folder), bundle.published(folder, "profile") as add:
        table = csv_text.table(profile_columns.COLUMNS, map(profile_columns.row, content.operations))
        writing.write_bytes(folder / CSV_NAME, table.encode())
        json_text.write_json(folder / kinds.PROFILE.file, record)
        add(kinds.PROFILE.file, CSV_NAME)
    reporter.show(*profile_tables.tables(content, folder, options.rows))
    reporter.emit(record)
    return Profiled(folder, done.folder, done.pte, record)


def of_run(
    folder: Path, vela_config: Path | None = None, *, prefill: int | None = None, timeout_s: float
) -> Record:
    """The record of the profile of the run in `folder`, priced with the file `vela_config` if there is one, with a
    phase of the first `prefill` steps; nothing is written."""
    return _record(_finished(folder), _Asked(vela_config, timeout_s, prefill=prefill))


def _record(done: RunResult, asked: _Asked) -> Record:
    run = kinds.RUN.convert(done.record)
    program = program_files.read_of_run(done.pte, run.provenance.inputs, done.data)
    if target_record.content(program.target()) != run.target:
        raise InputError(
            f"{done.folder / kinds.RUN.file} is of another target than {done.pte} was compiled for",
            _MAKE_A_RUN,
        )
    priced = _priced(done.pte, program, run, asked)
    facts = ProfileFacts(
        path=done.pte,
        program=program,
        run=run,
        priced=priced,
        run_file=done.folder / kinds.RUN.file,
        compiled=_compile_record(done.pte, run),
        compiled_file=locations.compile_record(done.pte),
        clock_hz=None if asked.clock_mhz is None else asked.clock_mhz * 1e6,
        cpu_clock=_cpu_clock(run, asked, priced),
        prefill=asked.prefill,
    )
    with deadline.until(time.monotonic() + asked.timeout_s):
        return profile_record.make(facts)


def _cpu_clock(run: Run, asked: _Asked, priced: Priced | None) -> CpuClock:
    """The clock that was asked for, else that of the run."""
    found = time_line.cpu_clock(asked.system, asked.cpu_clock_mhz, priced)
    known = run.time
    if known is None or found.was_asked_for(asked.system):
        return found
    clock = Clock(known.clocks.cpu.hz, known.clocks.cpu.source)
    return replace(found, clock=clock, reason="")


def _priced(path: Path, program: pte.Pte, run: Run, asked: _Asked) -> Priced | None:
    """The system of the board or file that was asked for, else that of the run, where it knew the program's own."""
    if asked.system is not None:
        return systems.on_board(path, program, profiles.find(asked.system))
    vela_config = asked.vela_config
    if vela_config is None and run.priced is not None and run.priced.compiled_for:
        system = systems.of_record(run.priced.system)
        return Priced(system, True, system.areas)
    return systems.of_program(path, program, vela_config)


def _finished(folder: Path) -> RunResult:
    """The run in `folder`. InputError when there is none, or not its program."""
    path = folder / kinds.RUN.file
    if not path.is_file():
        raise InputError(f"{folder} is not the folder of a run: it has no {path.name}", _MAKE_A_RUN)
    record = results.read(path)
    run = kinds.content(record)
    if not isinstance(run, Run):
        raise InputError(f"{path} is not a record of a run", _MAKE_A_RUN)
    program = folder / Path(run.model.file).name
    if not program.is_file() or hashing.sha256_file(program) != run.model.sha256:
        raise InputError(f"the program of the run is not in {folder}: {run.model.file}", _MAKE_A_RUN)
    return RunResult(folder, record, program)


def _compile_record(program: Path, run: Run) -> Compilation | None:
    """What `compile` wrote of the program; None when there is nothing, or when it is about another.

    Its figures are of the program's first method, so it says nothing of a run of another one.
    """
    path = locations.compile_record(program)
    found = results.of_program(path, run.model.sha256) if path.is_file() else None
    return found if found is not None and found.model.entry == run.model.entry else None
