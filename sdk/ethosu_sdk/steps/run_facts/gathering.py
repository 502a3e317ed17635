"""All facts of a run's folder; only the known ones if it is unfinished or damaged."""

from __future__ import annotations

from pathlib import Path

from ethosu_sdk import pte
from ethosu_sdk.errors import SdkError
from ethosu_sdk.files import hashing
from ethosu_sdk.records import kinds
from ethosu_sdk.records.run import Run
from ethosu_sdk.results.reading import read, read_record
from ethosu_sdk.results.run_facts import RunFacts
from ethosu_sdk.steps.run_facts import lifetimes, profiles, programs


def of(folder: Path, vela_config: Path | None = None) -> RunFacts:
    """The facts of the run in `folder`, priced with the file `vela_config` if there is one.

    Whoever reads its records refuses a folder that holds no run.
    """
    if not (folder / kinds.RUN.file).is_file():
        return RunFacts()
    made = profiles.missing([folder], vela_config).get(folder)
    try:
        program = _program(folder)
        if program is None:
            return RunFacts(made)
        found = lifetimes.of(program)
    except SdkError as error:
        return RunFacts(made, program_reason=error.message, lifetimes_reason=error.message)
    facts, why = None, made.reason if made is not None else ""
    try:
        profile = kinds.PROFILE.convert(read(folder / kinds.PROFILE.file)) if made is None else made.record
        facts = None if profile is None else programs.of(program, profile, vela_config)
    except SdkError as error:
        why = error.message
    return RunFacts(made, facts, why, found.lifetimes, found.reason, found.flows)


def _program(folder: Path) -> pte.Pte | None:
    """The program of the run; None where it is not in the folder."""
    run = read_record(folder / kinds.RUN.file)
    if not isinstance(run, Run):
        return None
    path = folder / Path(run.model.file).name
    if not path.is_file() or hashing.sha256_file(path) != run.model.sha256:
        return None
    return pte.read(path)
