"""A folder of results: its manifest, and how records are read from it. A command that is about to write says so
first, in a manifest that is ``incomplete``, and lists its files last. If it is interrupted, the manifest stays
incomplete."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Final

from ethosu_sdk.base import filesystem, json_text
from ethosu_sdk.base.errors import InputError, SdkError, UsageError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.records import kinds, provenance, validation
from ethosu_sdk.records.common import Part
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.kinds import File, Manifest, ManifestStatus
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Run
from ethosu_sdk.records.sequences import Generate

MANIFEST_NAME = kinds.MANIFEST.file
COMPLETE: Final = "complete"
INCOMPLETE: Final = "incomplete"
# Pattern of a path in the folder → role, media type, and the schema of a record. Records first.
_ROLES = (
    *((kind.file, kind.role, "application/json", kind.schema) for kind in kinds.IN_FOLDERS),
    ("cells.parquet", "table of the cells", "application/vnd.apache.parquet", ""),
    ("outputs*.npz", "outputs", "application/zip", ""),
    ("*.io.npz", "example inputs and outputs", "application/zip", ""),
    ("*.steps.npz", "outputs of fed steps in PyTorch", "application/zip", ""),
    ("fidelity.csv", "cycles beside the modelled ones", "text/csv", ""),
    ("profile.csv", "operations of the profile", "text/csv", ""),
    ("debug.csv", "layers", "text/csv", ""),
    ("*.html", "report", "text/html", ""),
    ("uart*.log", "what the firmware printed", "text/plain", ""),
    ("compile.log", "what the compiler's tools printed", "text/plain", ""),
    ("*.npz", "arrays", "application/zip", ""),
    ("*.etrecord", "ExecuTorch's record of the lowering", "application/zip", ""),
    ("*.pte", "program", "application/octet-stream", ""),
    ("*.elf", "firmware", "application/x-elf", ""),
    ("*.map", "the linker's map", "text/plain", ""),
    ("*.cmake", "definitions for ExecuTorch's runner", "text/plain", ""),
    ("*.conf", "fragment of Zephyr's configuration", "text/plain", ""),
    ("*.clayer.yml", "layer for CMSIS-Toolbox", "application/yaml", ""),
    ("*delegate*.tosa", "TOSA graph of a delegate", "application/octet-stream", ""),
    ("*delegate*.csv", "Vela's estimates of a delegate", "text/csv", ""),
    ("*delegate*.debug.xml", "Vela's debug database of a delegate", "application/xml", ""),
    ("*/current.json", "state of the build", "application/json", ""),
    ("*.log", "log", "text/plain", ""),
    ("*", "file", "application/octet-stream", ""),
)
_MOST_FILES = 10_000
_DEEPEST = 4

Add = Callable[..., None]


@contextlib.contextmanager
def writing_folder(
    folder: Path, writer: str, replaces: Sequence[str] | None = None, *, outdated: Collection[str] = ()
) -> Iterator[Add]:
    """Keep the manifest of `folder` incomplete while the block of the command `writer` runs; then complete it. The
    block gets a function that takes the files (names in the folder) that were written; those that are not there are
    left out. What other commands wrote stays listed as they listed it. With `replaces`, so does what `writer` wrote
    earlier, but for those files: they are removed where they are as listed and not written again. What the commands
    `outdated` made of the files that `writer` replaces is removed first, where it is as listed. When the block
    raises, the folder stays incomplete. The caller has locked the folder. InputError when another program's manifest
    lies there."""
    manifest = folder / MANIFEST_NAME
    is_first = not manifest.exists()
    if _is_foreign(manifest):
        raise InputError(
            f"{manifest} is not the manifest of a folder of results: the folder belongs to another program",
            "choose another folder with -o",
        )
    before = list(_without_outdated(folder, outdated))
    own = [row for row in before if row.writer == writer and (replaces is None or row.path in replaces)]
    kept = {row.path: row for row in before if row not in own}
    # What somebody changed and the block leaves as it is would become evidence: it is not listed again.
    changed = {
        row.path: _identity(folder / row.path)
        for row in own
        if _wrong(folder, row) and (folder / row.path).is_file()
    }
    written: dict[str, None] = {}
    _write(folder, writer, INCOMPLETE, kept)
    try:
        yield lambda *names: written.update(dict.fromkeys(map(str, names)))
    except BaseException:
        if is_first:  # what lay there before is as it was, and nothing came to it
            manifest.unlink(missing_ok=True)
        raise
    present = [name for name in written if (folder / name).is_file()]
    present = [name for name in present if changed.get(name) != _identity(folder / name)]
    kept |= {name: _entry(folder, name, writer) for name in present}
    for row in own if replaces is not None else ():
        if row.path not in kept and not _wrong(folder, row):
            (folder / row.path).unlink()
    _write(folder, writer, COMPLETE, kept)


def _without_outdated(folder: Path, writers: Collection[str]) -> Iterator[File]:
    """The files of `folder` but those that `writers` left and nobody changed: these are removed."""
    for row in _files(folder):
        if row.writer in writers and not _wrong(folder, row):
            (folder / row.path).unlink()
        else:
            yield row


def list_meanwhile(folder: Path, writer: str, name: str) -> None:
    """List the file `name`, which `writer` has just written, in a manifest that stays incomplete: it goes on."""
    kept = {row.path: row for row in _files(folder)}
    _write(folder, writer, INCOMPLETE, kept | {name: _entry(folder, name, writer)})


def _identity(path: Path) -> tuple[int, int]:
    """What is another for a file that was written since."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


def _is_foreign(path: Path) -> bool:
    """Whether `path` is JSON of another program, which must not be written over; a damaged one is written anew."""
    try:
        return not str(json_text.read_json(path).get("schema")).startswith("bundle/")
    except InputError:
        return False


@contextlib.contextmanager
def listed(path: Path, writer: str) -> Iterator[None]:
    """The block writes the one file `path` for the command `writer`, wherever the user wants it: when that is in a
    folder of results, its manifest lists it then. UsageError when it is a file there that another command wrote."""
    place = _place(path)
    if place is None:
        yield
        return
    folder, name = place
    with filesystem.locked_folder(folder):
        manifest = read_manifest(folder)
        rows = {row.path: row for row in manifest.files} if manifest is not None else {}
        owner = rows[name].writer if name in rows else writer
        if owner != writer:
            raise UsageError(f"{path} is a file that `{owner}` wrote there", "choose another name")
        if name == MANIFEST_NAME:
            raise UsageError(f"{path} is a manifest", "choose another name")
        yield
        if manifest is not None:
            is_whole = manifest.status == COMPLETE
            last = writer if is_whole else manifest.writer
            _write(folder, last, manifest.status, rows | {name: _entry(folder, name, writer)})


def _place(path: Path) -> tuple[Path, str] | None:
    """The folder of results in which a file at `path` is to lie, and its name there; None when there is none."""
    path = path.parent.resolve() / path.name
    folder = next((parent for parent in path.parents if (parent / MANIFEST_NAME).is_file()), None)
    try:
        is_ours = folder is not None and read_manifest(folder) is not None
    except InputError:
        return None  # another program's, or damaged: `validate` says so
    return (folder, path.relative_to(folder).as_posix()) if folder is not None and is_ours else None


def keep(folder: Path, writer: str, names: list[str]) -> None:
    """List the files `names` that `writer` left in `folder` earlier, if its manifest is gone or damaged."""
    try:
        manifest = read_manifest(folder)
    except InputError:
        manifest = None  # a damaged one is written anew
    if manifest is None or (
        manifest.status == COMPLETE and not set(names) <= {row.path for row in manifest.files}
    ):
        with writing_folder(folder, writer) as add:
            add(*names)


def _files(folder: Path) -> list[File]:
    try:
        manifest = read_manifest(folder)
    except SdkError:
        return []
    return list(manifest.files) if manifest is not None else []


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of `folder`; None when it has none. InputError when it is damaged, or no file."""
    path = folder / MANIFEST_NAME
    if not os.path.lexists(path):
        return None
    record = json_text.read_json(path)
    validation.check_record(record, str(path))
    if record["schema"] != kinds.MANIFEST.schema:
        raise InputError(f"{path} is a {record['schema']}, not the manifest of a folder")
    return kinds.MANIFEST.convert(record)


def _write(folder: Path, writer: str, status: ManifestStatus, files: dict[str, File]) -> None:
    record = Manifest(
        status=status,
        created=provenance.timestamp(),
        tool=provenance.tool(),
        writer=writer,
        files=tuple(files[name] for name in sorted(files)),
    ).to_json()
    validation.check_record(record, "the manifest")
    json_text.write_json(folder / MANIFEST_NAME, record)


def _entry(folder: Path, name: str, writer: str) -> File:
    path = folder / name
    role, media_type, known = next(row[1:] for row in _ROLES if fnmatchcase(name, row[0]))
    return File(
        path=name,
        role=role,
        media_type=media_type,
        bytes=path.stat().st_size,
        sha256=filesystem.sha256_file(path),
        schema=known or None,
        writer=writer,
    )


def folder_problems(folder: Path, manifest: Manifest, depth: int = 0) -> list[str]:
    """How `folder` differs from its manifest, one sentence each, including nested folders with manifests."""
    found = []
    if manifest.status != COMPLETE:
        found.append(f"incomplete: `{manifest.writer}` did not finish writing")
    listed = {row.path for row in manifest.files}
    found += [f"{row.path} {reason}" for row in manifest.files if (reason := _wrong(folder, row))]
    nested: list[Path] = []
    found += [
        f"{name} is extra: no command lists it" for name in _present(folder, nested) if name not in listed
    ]
    for path in nested:
        name = path.relative_to(folder)
        found += [f"{name}: {text}" for text in _nested_problems(path, depth + 1)]
    return found


def _nested_problems(folder: Path, depth: int) -> list[str]:
    if depth > _DEEPEST:
        return [f"more than {_DEEPEST} folders of results lie inside one another"]
    try:
        manifest = read_manifest(folder)
        return [] if manifest is None else folder_problems(folder, manifest, depth)
    except InputError as error:
        return [error.message]


def _wrong(folder: Path, row: File) -> str:
    path = folder / row.path
    try:
        status = path.lstat()
        inside = path.resolve().is_relative_to(folder.resolve())
    except OSError:
        return "is missing"
    if not stat.S_ISREG(status.st_mode) or not inside:
        return "is not a regular file of the folder"
    if status.st_size != row.bytes:
        return f"has changed: {status.st_size:,} bytes instead of {row.bytes:,}"
    try:
        same = filesystem.sha256_file(path) == row.sha256
        reason = _wrong_record(path, row.schema) if same and row.schema is not None else ""
    except InputError as error:
        return f"cannot be read: {error.message}"
    return reason if same else "has changed: its SHA-256 differs"


def _wrong_record(path: Path, name: str) -> str:
    record = json_text.read_json(path)
    if record.get("schema") != name:
        return f"is a {record.get('schema')}, listed as {name}"
    found = validation.quick_problems(record)
    return f"is not a valid record: {found[0]}" if found else ""


def _present(folder: Path, nested: list[Path]) -> Iterator[str]:
    """The files below `folder` but hidden ones and the manifest; folders with their own manifest go to `nested`."""
    count = 0
    for root, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(root, name))]
        own = [name for name in folders if name not in links and (Path(root, name) / MANIFEST_NAME).is_file()]
        nested += [Path(root, name) for name in sorted(own)]
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in own)
        for name in sorted((*files, *links)):
            path = PurePosixPath(Path(root, name).relative_to(folder))
            if name.startswith(".") or str(path) == MANIFEST_NAME:
                continue
            count += 1
            if count > _MOST_FILES:
                raise InputError(
                    f"{folder} holds more than {_MOST_FILES:,} files: it is not a folder of results"
                )
            yield str(path)


def difference(path: Path, sha256: str) -> str:
    """How the file at `path`, with this digest, differs from its manifest; empty if it agrees or is not listed.
    `path` may be a link: neither where it lies nor what it leads to may be listed otherwise."""
    places = dict.fromkeys((path.parent.resolve() / path.name, path.resolve()))
    return next(filter(None, (_difference(place, sha256) for place in places)), "")


def _difference(path: Path, sha256: str) -> str:
    folder = next((parent for parent in path.parents if os.path.lexists(parent / MANIFEST_NAME)), None)
    if folder is None or path == folder / MANIFEST_NAME:
        return ""
    try:
        manifest = read_manifest(folder)
    except InputError as error:
        # Further up, or of another program, it does not tell of this file.
        tells = folder == path.parent and not _is_foreign(folder / MANIFEST_NAME)
        return f"cannot be checked: {error.message}" if tells else ""
    name = path.relative_to(folder).as_posix()
    row = next((row for row in manifest.files if row.path == name), None) if manifest else None
    same = row is None or row.sha256 == sha256
    return "" if same else f"is not what {folder / MANIFEST_NAME} lists: its SHA-256 differs"


def confirm_listed(path: Path) -> None:
    """Raise InputError if the file at `path` differs from the manifest that lists it."""
    if reason := difference(path, filesystem.sha256_file(path)):
        raise InputError(f"{path} {reason}", "run the command again that wrote it")


def check_listed(folder: Path, names: list[str]) -> None:
    """InputError when `folder` has a manifest by which the files `names` are not what was written, or not all."""
    manifest = read_manifest(folder)
    if manifest is None:
        return
    listed = {row.path for row in manifest.files}
    if manifest.status != COMPLETE and not (names and listed.issuperset(names)):
        raise InputError(
            f"{folder} is incomplete: `{manifest.writer}` did not finish writing",
            "run it again; `ethosu-sdk validate` names what is missing",
        )
    for row in manifest.files:
        if row.path in names and (reason := _wrong(folder, row)):
            raise InputError(
                f"{folder / row.path} {reason}",
                "run it again; a record that was changed on purpose can be given as a file, with --loose",
            )


@dataclass
class ReadPolicy:
    """How to read named records: `loose` takes those that differ from their manifest, and notes the difference."""

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


def read_raw_record(path: Path, reading: ReadPolicy | None = None) -> Record:
    """The record at `path`. InputError when it is not valid, or not as a manifest lists it: somebody may have changed
    it by hand. `reading` is for a file that the user named."""
    text = json_text.read_content(path)
    if reason := difference(path, filesystem.sha256_bytes(text)):
        if reading is None or not reading.loose:
            way = "" if reading is None else "; --loose reads it anyway"
            raise InputError(f"{path} {reason}", f"run the command again that wrote it{way}")
        reading.differences[path] = reason
    record = json_text.parse_record(text, path)
    validation.check_record(record, str(path))
    return record


def read_record(path: Path, reading: ReadPolicy | None = None) -> Part:
    """The record at `path` as the class of its kind; see :func:`read_raw_record`."""
    return kinds.content(read_raw_record(path, reading))


def compilation_of(path: Path, sha256: str) -> Compilation | None:
    """What `compile` wrote at `path` of the program with the digest `sha256`; None when it is about another."""
    record = read_record(path)
    return record if isinstance(record, Compilation) and record.model.sha256 == sha256 else None


def records_in(folder: Path, schemas: Collection[str]) -> list[Path]:
    """Where records with one of `schemas` lie in `folder`, those first that say what it is about. InputError when its
    manifest does not agree with one of them."""
    patterns = [kind.file for kind in kinds.IN_FOLDERS if kind.schema in schemas]
    found = [path for pattern in patterns for path in sorted(folder.glob(pattern)) if path.is_file()]
    check_listed(folder, [path.name for path in found])
    return found


def is_of_run(profile: Profile, run: Path) -> bool:
    """Whether `profile` was made from the record of a run at `run`."""
    digest = filesystem.sha256_file(run)
    return any(row.role == "run" and row.sha256 == digest for row in profile.provenance.inputs)


def generated_in(generated: Generate, run: Run) -> bool:
    """Whether `run` is the sequence that generated the tokens: a later run leaves the record in the folder."""
    cycles = None if run.npu is None else run.npu.cycles
    steps = 0 if run.sequence is None else len(run.sequence.steps)
    return steps == generated.steps and cycles == generated.npu_cycles
