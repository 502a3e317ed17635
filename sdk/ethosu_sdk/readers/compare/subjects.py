"""What is compared: the folder of a run with the records in it, or one record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ethosu_sdk import provenance
from ethosu_sdk.errors import InputError
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.records.build import Build
from ethosu_sdk.records.compare import KindName
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Run
from ethosu_sdk.results.reading import Reading, is_of_run, present, read_record
from ethosu_sdk.results.run_facts import MadeProfile

Compared = Run | Profile | Build | Compilation
# Kinds of records by their schema, in the order in which one says what a folder is about.
KINDS: dict[str, KindName] = {
    kinds.RUN.schema: "run",
    kinds.PROFILE.schema: "profile",
    kinds.BUILD.schema: "build",
    kinds.COMPILE.schema: "compile",
}
_GIVE = "give the folder of a run, or a record of run, profile, build or compile"
_NO_PROFILE = MadeProfile(None, "there is no profile of the run")


@dataclass(frozen=True)
class Subject:
    """Records of one program by their kinds, and the files they come from. `missing` says why there is no profile.

    `folder` is where outputs lie; None for a record alone.
    """

    path: Path
    records: Mapping[KindName, Compared]
    files: Mapping[KindName, Path]
    folder: Path | None
    missing: Mapping[KindName, str] = field(default_factory=dict)
    reading: Reading = field(default_factory=Reading)

    @property
    def name(self) -> str:
        """What it is called: the folder, and the file in it that was given."""
        path = self.path.absolute()
        return path.name if self.folder is not None else f"{path.parent.name}/{path.name}".lstrip("/")

    @property
    def first(self) -> Compared:
        """The record that says what this is about."""
        return next(iter(self.records.values()))

    def inputs(self, label: str) -> list[Record]:
        """Rows of a record's provenance: the files that were read."""
        return [
            {**provenance.file_entry(f"{label}: {kind}", path), **self.reading.mark(path)}
            for kind, path in self.files.items()
        ]


def read(path: Path, made: MadeProfile | None = None, *, loose: bool = False) -> Subject:
    """What is at `path`; `made` is the profile of its run where the folder has none. InputError when that is nothing
    to compare."""
    reading = Reading(loose)
    reading.check_folder(path)
    if path.is_dir():
        return _folder(path, made or _NO_PROFILE)
    if not path.exists():
        raise InputError(f"there is no file or folder {path}", _GIVE)
    kind, record = record_of(path, reading)
    return Subject(path, {kind: record}, {kind: path}, None, reading=reading)


def record_of(path: Path, reading: Reading | None = None) -> tuple[KindName, Compared]:
    """The record at `path` and its kind. InputError when it is of a kind that cannot be compared."""
    record = read_record(path, reading)
    if not isinstance(record, Compared):
        raise InputError(f"{path} is a {kinds.schema(record)}, which cannot be compared", _GIVE)
    return KINDS[kinds.schema(record)], record


def _folder(folder: Path, made: MadeProfile) -> Subject:
    found: dict[KindName, tuple[Path, Compared]] = {}
    for path in present(folder, KINDS):
        kind, record = record_of(path)
        about = next((other.model.sha256 for _, other in found.values()), None)
        if kind not in found and about in (None, record.model.sha256):
            found[kind] = path, record
    if not found:
        raise InputError(f"{folder} holds no record of a run, profile, build or compilation", _GIVE)
    missing: dict[KindName, str] = {}
    profile = found.get("profile")
    if "run" in found and not (profile and _is_of(profile[1], found["run"][0])):
        found.pop("profile", None)
        if made.record is not None:
            found["profile"] = folder, made.record
        else:
            missing["profile"] = made.reason
    order = [kind for kind in KINDS.values() if kind in found]
    return Subject(
        folder,
        {kind: found[kind][1] for kind in order},
        {kind: found[kind][0] for kind in order if found[kind][0] is not folder},
        folder,
        missing,
    )


def _is_of(profile: Compared, run: Path) -> bool:
    return isinstance(profile, Profile) and is_of_run(profile, run)
