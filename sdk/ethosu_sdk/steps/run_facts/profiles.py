"""Profiles of runs in whose folders none lies."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ethosu_sdk.errors import SdkError
from ethosu_sdk.records import kinds
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Run
from ethosu_sdk.records.sequences.generate import Generate
from ethosu_sdk.results.reading import generated_in, is_of_run, read_record
from ethosu_sdk.results.run_facts import MadeProfile
from ethosu_sdk.steps.profile import profile_command

_TIMEOUT_S = 60.0


def missing(folders: Iterable[Path], vela_config: Path | None = None) -> dict[Path, MadeProfile]:
    """The profiles of those of `folders` that hold a run and no profile of it; of every run, priced with the file
    `vela_config`, if there is one. Nothing is written. SdkError when that file cannot be used."""
    return {
        folder: _made(folder, vela_config)
        for folder in folders
        if (vela_config is not None and (folder / kinds.RUN.file).is_file()) or not _is_whole(folder)
    }


def _is_whole(folder: Path) -> bool:
    """Whether no profile has to be made: there is one, or no run. Whoever reads the records refuses damaged ones."""
    run, profile = folder / kinds.RUN.file, folder / kinds.PROFILE.file
    if not run.is_file():
        return True
    if not profile.is_file():
        return False
    try:
        found, ran = read_record(profile), read_record(run)
    except SdkError:
        return True
    if not isinstance(found, Profile) or not isinstance(ran, Run):
        return False
    return found.model.sha256 == ran.model.sha256 and is_of_run(found, run)


def _made(folder: Path, vela_config: Path | None) -> MadeProfile:
    try:
        prefill = _steps_of_prompt(folder)
        record = profile_command.of_run(folder, vela_config, prefill=prefill, timeout_s=_TIMEOUT_S)
        return MadeProfile(kinds.PROFILE.convert(record))
    except SdkError as error:
        if vela_config is not None:
            raise
        return MadeProfile(None, error.message)


def _steps_of_prompt(folder: Path) -> int | None:
    """How many steps of the run took the prompt of `generate`; None where it did not make the run, or there are no
    others."""
    path = folder / kinds.GENERATE.file
    if not path.is_file():
        return None
    found, run = read_record(path), read_record(folder / kinds.RUN.file)
    if not isinstance(found, Generate) or not isinstance(run, Run) or not generated_in(found, run):
        return None
    return len(found.prompt) if len(found.prompt) < found.steps else None
