"""What a report is about: the folder of a run, with all records in it that are about the same program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.program import pte
from ethosu_sdk.records import bundle, kinds, result_files
from ethosu_sdk.records.advice import Advice
from ethosu_sdk.records.build import Build
from ethosu_sdk.records.bundle import generated_in, is_of_run, read_record, records_in
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.debug import Debug
from ethosu_sdk.records.kinds import Manifest
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Run
from ethosu_sdk.records.run_facts import RunFacts
from ethosu_sdk.records.sequences import Generate

Kind = TypeVar("Kind")
Shown = Run | Profile | Build | Compilation | Debug | Advice | Generate
RUN, PROFILE, BUILD, COMPILE, DEBUG, ADVICE = "run", "profile", "build", "compile", "debug", "advice"
GENERATE = "generate"
_KINDS = {
    kinds.RUN.schema: RUN,
    kinds.PROFILE.schema: PROFILE,
    kinds.BUILD.schema: BUILD,
    kinds.COMPILE.schema: COMPILE,
    kinds.DEBUG.schema: DEBUG,
    kinds.ADVICE.schema: ADVICE,
    kinds.GENERATE.schema: GENERATE,
}
_ADVISE = "`ethosu-sdk advise MODEL --try -o RUN_DIR` writes the record beside the run"
_GIVE = "give the folder of a run: ethosu-sdk run MODEL -o RUN_DIR makes one"


@dataclass(frozen=True)
class ReportInputs:
    """A run with the records of its program, and the program itself where it lies in the folder. `facts` are what
    only a step can tell of it.

    `records` has them by kind. `missing` says why something that a report shows is not there. `stale` are files of
    the folder that are of another program.
    """

    label: str
    folder: Path
    run: Run
    records: Mapping[str, Shown]
    program: pte.Pte | None
    manifest: Manifest | None
    facts: RunFacts
    missing: Mapping[str, str] = field(default_factory=dict)
    stale: Sequence[str] = ()

    @property
    def profile(self) -> Profile | None:
        return self.record(Profile)

    @property
    def built(self) -> Build | None:
        """The record of the firmware that ran; one that was built for another board is not."""
        record = self.record(Build)
        return record if record is not None and record.board == self.run.board else None

    def record(self, kind: type[Kind]) -> Kind | None:
        return next((row for row in self.records.values() if isinstance(row, kind)), None)


def read_runs(
    folders: Sequence[Path], facts: Sequence[RunFacts], advice: Sequence[Path] = ()
) -> list[ReportInputs]:
    """The runs in `folders` with the facts of each, labelled apart. InputError when one is no folder of a run, or is
    damaged. `advice` are records of `advise`, each of which takes the place of that of a run's folder."""
    given = []
    for path in advice:
        record = read_record(path)
        if not isinstance(record, Advice):
            raise InputError(f"{path} is a {kinds.schema(record)}, not an {kinds.ADVICE.schema}", _ADVISE)
        given.append(record)
    names = [folder.resolve().name for folder in folders]
    labels = names if len(names) == 1 else [f"{number}: {name}" for number, name in enumerate(names, start=1)]
    found = [_read(*row, given) for row in zip(folders, labels, facts, strict=True)]
    for path, record in zip(advice, given, strict=True):
        if all(row.record(Advice) is not record for row in found):
            raise InputError(f"{path} is about another program than the run", _ADVISE)
    return found


def _read(folder: Path, label: str, facts: RunFacts, advice: Sequence[Advice]) -> ReportInputs:
    if not (folder / kinds.RUN.file).is_file():
        raise _no_run(folder)
    found: dict[str, Shown] = {}
    missing: dict[str, str] = {}
    stale: list[str] = []
    for path in records_in(folder, _KINDS):
        _add(path, found, missing, stale)
    run = found[RUN]
    assert isinstance(run, Run)
    for record in advice:
        if record.model.sha256 == run.model.sha256:
            found[ADVICE] = record
            missing.pop(ADVICE, None)
    _complete(folder, facts, found, missing)
    program, manifest = _program(folder, run, missing, stale), bundle.read_manifest(folder)
    return ReportInputs(label, folder, run, found, program, manifest, facts, missing, tuple(stale))


def _no_run(folder: Path) -> InputError:
    head = f"{folder} holds no {kinds.RUN.file}"
    if (folder / kinds.SCRIPT.file).is_file():
        calls = " ".join(str(path.parent) for path in sorted(folder.glob(f"calls/*/{kinds.RUN.file}"))[:2])
        hint = f"give the folders of its calls: {calls}"
        return InputError(f"{head}: each call of a script is a run", hint)
    what = "it is not the folder of a run" if folder.is_dir() else "there is no such folder"
    return InputError(f"{head}: {what}", _GIVE)


def _add(path: Path, found: dict[str, Shown], missing: dict[str, str], stale: list[str]) -> None:
    record = read_record(path)
    if not found and not isinstance(record, Run):
        raise InputError(f"{path} is not a record of a run", _GIVE)
    if not isinstance(record, Shown):
        return
    kind = _KINDS[kinds.schema(record)]
    if kind in found:
        return
    if found and record.model.sha256 != found[RUN].model.sha256:
        missing[kind] = f"{path.name} is about another program"
        stale.append(path.name)
        return
    if isinstance(record, Profile) and not is_of_run(record, path.with_name(kinds.RUN.file)):
        return
    run = found.get(RUN)
    if isinstance(record, Generate) and isinstance(run, Run) and not generated_in(record, run):
        return
    found[kind] = record


def _complete(folder: Path, facts: RunFacts, found: dict[str, Shown], missing: dict[str, str]) -> None:
    """Take the profile that was made, in place of the folder's; say what other commands would add."""
    if facts.profile is not None:
        if facts.profile.record is not None:
            found[PROFILE] = facts.profile.record
        else:
            missing[PROFILE] = facts.profile.reason
    if COMPILE not in found:
        missing.setdefault(COMPILE, "there is no record of `compile` in the folder")
    if DEBUG not in found:
        missing.setdefault(
            DEBUG,
            f"there is no {kinds.DEBUG.file} in the folder: `ethosu-sdk debug MODEL -o {folder}` makes one",
        )
    if getattr(found.get(ADVICE), "tried", None) is None:
        missing.setdefault(
            ADVICE,
            f"no change was tried: `ethosu-sdk advise {folder} --try` compiles and runs the program with each "
            "change, and shows what each one got",
        )


def _program(folder: Path, run: Run, missing: dict[str, str], stale: list[str]) -> pte.Pte | None:
    path = folder / Path(run.model.file).name
    is_there = path.is_file()
    if not is_there or filesystem.sha256_file(path) != run.model.sha256:
        missing["program"] = f"the program of the run is not in the folder: {path.name}"
        if is_there:
            stale.append(path.name)
        return None
    try:
        return result_files.program_of_run(path, run.provenance.inputs)
    except InputError as error:  # its data files, as the program itself is the one that ran
        missing["program"] = error.message
        return None
