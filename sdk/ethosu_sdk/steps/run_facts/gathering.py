"""All facts of a run's folder; only the known ones if it is unfinished or damaged."""

from __future__ import annotations

from pathlib import Path

from ethosu_sdk import pte
from ethosu_sdk.errors import SdkError
from ethosu_sdk.files import hashing
from ethosu_sdk.records import kinds
from ethosu_sdk.records.run import Run
from ethosu_sdk.results import program_files
from ethosu_sdk.results.reading import read, read_record
from ethosu_sdk.results.run_facts import RunFacts
from ethosu_sdk.steps.run.options import HOST
from ethosu_sdk.steps.run_facts import lifetimes, profiles, programs
from ethosu_sdk.steps.shared import systems


def of(folder: Path, vela_config: Path | None = None) -> RunFacts:
    """The facts of the run in `folder`, priced with the file `vela_config` if there is one.

    Whoever reads its records refuses a folder that holds no run.
    """
    if not (folder / kinds.RUN.file).is_file():
        return RunFacts()
    made = profiles.missing([folder], vela_config).get(folder)
    try:
        run = read_record(folder / kinds.RUN.file)
        program = _program(folder, run) if isinstance(run, Run) else None
        if not isinstance(run, Run) or program is None:
            return RunFacts(made)
        no_room = _no_room(folder, run, program, vela_config)
        found = lifetimes.of(program)
    except SdkError as error:
        return RunFacts(made, program_reason=error.message, lifetimes_reason=error.message)
    facts, why = None, made.reason if made is not None else ""
    try:
        profile = kinds.PROFILE.convert(read(folder / kinds.PROFILE.file)) if made is None else made.record
        facts = None if profile is None else programs.of(program, profile, vela_config)
    except SdkError as error:
        why = error.message
    return RunFacts(made, facts, why, found.lifetimes, found.reason, found.flows, no_room)


def _program(folder: Path, run: Run) -> pte.Pte | None:
    """The program of the run; None where it is not in the folder."""
    path = folder / Path(run.model.file).name
    if not path.is_file() or hashing.sha256_file(path) != run.model.sha256:
        return None
    return program_files.read_of_run(path, run.provenance.inputs)


def _no_room(folder: Path, run: Run, program: pte.Pte, vela_config: Path | None) -> str:
    """Which memory is too small of the board that a run on the host simulator did without."""
    if run.simulator.name != HOST:
        return ""
    from ethosu_sdk.steps.run_facts import room  # the firmware's builder, which only these runs need

    return room.lacking(program, systems.of_program(folder / Path(run.model.file).name, program, vela_config))
