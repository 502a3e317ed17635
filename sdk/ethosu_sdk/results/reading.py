"""Records in a folder of results: where commands leave them, and which of them belong together."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from ethosu_sdk import schema
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.console.terminal import escape
from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.files import hashing, json_text
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.kind import Part
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Run
from ethosu_sdk.records.sequences.generate import Generate
from ethosu_sdk.results import bundle


@dataclass
class Reading:
    """How to read records that the user names one by one.

    `loose` takes one that is not as its manifest lists it. `differences` then says so, by the file: the command's
    output must.
    """

    loose: bool = False
    differences: dict[Path, str] = field(default_factory=dict)

    def check_folder(self, path: Path) -> None:
        """UsageError for a folder: its records are judged together."""
        if self.loose and path.is_dir():
            raise UsageError(f"--loose is for a single record, and {path} is a folder", "give a record in it")

    def warn(self, reporter: Reporter) -> None:
        """Warn of the records that were accepted although they differ from their manifest."""
        for path, reason in self.differences.items():
            reporter.warn(escape(f"loose: {path} {reason}"))

    def mark(self, path: Path) -> Record:
        """The members that mark a loosely read file at `path` in a record's row."""
        return {"loose": True} if path in self.differences else {}


def read(path: Path, reading: Reading | None = None) -> Record:
    """The record at `path`. InputError when it is not valid, or not as a manifest lists it: somebody may have changed
    it by hand. `reading` is for a file that the user named."""
    text = json_text.read_content(path)
    if reason := bundle.difference(path, hashing.sha256_bytes(text)):
        if reading is None or not reading.loose:
            way = "" if reading is None else "; --loose reads it anyway"
            raise InputError(f"{path} {reason}", f"run the command again that wrote it{way}")
        reading.differences[path] = reason
    record = json_text.parse_record(text, path)
    schema.check(record, str(path))
    return record


def read_record(path: Path, reading: Reading | None = None) -> Part:
    """The record at `path` as the class of its kind; see :func:`read`."""
    return kinds.content(read(path, reading))


def of_program(path: Path, sha256: str) -> Compilation | None:
    """What `compile` wrote at `path` of the program with the digest `sha256`; None when it is about another."""
    record = read_record(path)
    return record if isinstance(record, Compilation) and record.model.sha256 == sha256 else None


def present(folder: Path, schemas: Collection[str]) -> list[Path]:
    """Where records with one of `schemas` lie in `folder`, those first that say what it is about. InputError when its
    manifest does not agree with one of them."""
    patterns = [kind.file for kind in kinds.IN_FOLDERS if kind.schema in schemas]
    found = [path for pattern in patterns for path in sorted(folder.glob(pattern)) if path.is_file()]
    bundle.check(folder, [path.name for path in found])
    return found


def is_of_run(profile: Profile, run: Path) -> bool:
    """Whether `profile` was made from the record of a run at `run`."""
    digest = hashing.sha256_file(run)
    return any(row.role == "run" and row.sha256 == digest for row in profile.provenance.inputs)


def generated_in(generated: Generate, run: Run) -> bool:
    """Whether `run` is the sequence that generated the tokens: a later run leaves the record in the folder."""
    cycles = None if run.npu is None else run.npu.cycles
    steps = 0 if run.sequence is None else len(run.sequence.steps)
    return steps == generated.steps and cycles == generated.npu_cycles
