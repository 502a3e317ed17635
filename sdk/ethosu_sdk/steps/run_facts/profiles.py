"""Profiles of runs in whose folders none lies."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ethosu_sdk.errors import SdkError
from ethosu_sdk.records import kinds
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Run
from ethosu_sdk.results.reading import is_of_run, read_record
from ethosu_sdk.results.run_facts import MadeProfile
from ethosu_sdk.steps.profile import profile_command

_TIMEOUT_S = 60.0


def missing(folders: Iterable[Path]) -> dict[Path, MadeProfile]:
    """The profiles of those of `folders` that hold a run and no profile of it. Nothing is written."""
    return {folder: _made(folder) for folder in folders if not _is_whole(folder)}


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


def _made(folder: Path) -> MadeProfile:
    try:
        return MadeProfile(kinds.PROFILE.convert(profile_command.of_run(folder, timeout_s=_TIMEOUT_S)))
    except SdkError as error:
        return MadeProfile(None, error.message)
