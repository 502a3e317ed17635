"""`ethosu-sdk fvp install`: an FVP from an archive that the user has, once the user accepts Arm's licence."""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import os
import platform
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk import provenance, records, schema
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.console.terminal import escape
from ethosu_sdk.errors import InputError, SdkError, ToolError, UsageError
from ethosu_sdk.files import hashing, json_text, locks, opening, writing
from ethosu_sdk.installation.fvp import installer
from ethosu_sdk.installation.fvp.archive import unpack
from ethosu_sdk.installation.fvp.options import InstallOptions
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.results import host_facts
from ethosu_sdk.results.reading import read
from ethosu_sdk.simulators.fvp import discovery
from ethosu_sdk.simulators.fvp.models import models
from ethosu_sdk.targets import suggestion
from ethosu_sdk.toolchain_lock import FvpArchive

RECORD_NAME = "install.json"

_LICENCE_NAME = re.compile(r"licen[cs]e|eula", re.IGNORECASE)
_LICENCE_FOLDER = "eula"  # for licence texts that lie beside the installer
_ADDRESS = re.compile(r"(https?|ftp|s3|gs):/", re.IGNORECASE)
_PRODUCT_PAGE = "https://developer.arm.com/Tools%20and%20Software/Fixed%20Virtual%20Platforms"


@dataclass(frozen=True)
class _Digests:
    md5: str
    sha256: str


def install(options: InstallOptions, reporter: Reporter) -> None:
    """Install the FVP, with its record, below the prefix; nothing is left there when that fails.

    Raises UsageError without consent, InputError for an archive that the lock does not list or that is not safe to
    unpack, ToolError when its installer fails.
    """
    rows = _rows(options)
    _require_consent(options, rows)
    path = _archive(options, rows)
    with reporter.stage(f"checking {escape(path.name)}"):
        digests = _digests(path)
    row = _listed(path, digests, options, rows)
    final = (options.prefix or discovery.install_root()).absolute() / row.name / row.version
    if final.exists():
        _already_there(final, digests, reporter)
        return
    with _staging(final) as folder:
        with reporter.stage(f"unpacking {escape(path.name)}"):
            unpack(path, writing.make_directory(folder / "archive"), options.limits)
        with reporter.stage("running Arm's installer"):
            installed = installer.run(folder)
            _keep_licences(folder / "archive", installed)
        record = _record(path, digests, row, installed)
        schema.check(record, "the record of the installation")
        json_text.write_json(installed / RECORD_NAME, record)
        _give_final_name(installed, final)
    _show(record, final, reporter)


def _rows(options: InstallOptions) -> list[FvpArchive]:
    names = list(dict.fromkeys(row.name for row in options.archives))
    if not names:
        raise ToolError("this installation of ethosu-sdk lacks its toolchain.lock.json", "install it again")
    if options.name not in names:
        raise UsageError(f"unknown FVP '{options.name}'", suggestion(options.name, names))
    machine = platform.machine()
    rows = [row for row in options.archives if row.name == options.name and row.machine == machine]
    if not rows:
        raise UsageError(f"Arm publishes no {options.name} FVP for {machine}", "use --simulator qemu")
    return rows


def _require_consent(options: InstallOptions, rows: Sequence[FvpArchive]) -> None:
    if options.accept_eula:
        return
    archive = options.archive or options.mirror or Path(rows[0].file)
    given = "--mirror" if options.mirror else "--archive"
    raise UsageError(
        f"the FVP for {options.name} is Arm's, under Arm's End User Licence Agreement: nothing is unpacked before "
        "you accept it",
        f"read the agreement (its text is in the archive, and shown where you download it: {_PRODUCT_PAGE}), then "
        f"type: ethosu-sdk fvp install {options.name} --accept-eula {given} {archive}",
    )


def _archive(options: InstallOptions, rows: Sequence[FvpArchive]) -> Path:
    if (options.archive is None) == (options.mirror is None):
        raise UsageError(
            "give the archive with --archive FILE, or a mirror's folder with --mirror DIR: nothing is downloaded",
            f"Arm's download of {rows[0].file}: {rows[0].url}",
        )
    if options.archive is not None:
        if not options.archive.is_file():
            if _ADDRESS.match(str(options.archive)):
                raise UsageError(
                    f"--archive takes a file, but {options.archive} is an address: nothing is downloaded",
                    f"download it, then give the file; Arm's: {rows[0].url}",
                )
            raise InputError(f"there is no file {options.archive}", f"Arm's download: {rows[0].url}")
        return options.archive
    for row in rows:
        path = Path(options.mirror or "") / row.file
        if path.is_file():
            return path
    files = ", ".join(row.file for row in rows)
    raise InputError(f"{options.mirror} has none of {files}", f"Arm's download: {rows[0].url}")


def _digests(path: Path) -> _Digests:
    md5, sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()
    try:
        with opening.regular(path) as stream:
            while piece := stream.read(1 << 20):
                md5.update(piece)
                sha256.update(piece)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    return _Digests(md5.hexdigest(), sha256.hexdigest())


def _listed(path: Path, digests: _Digests, options: InstallOptions, rows: Sequence[FvpArchive]) -> FvpArchive:
    """The row of the lock that the archive is, by every digest that is known: its name says nothing."""
    for row in options.archives:
        if (row.md5 or digests.md5, row.sha256 or digests.sha256) != (digests.md5, digests.sha256):
            continue
        if row not in rows:
            raise InputError(
                f"{path.name} is {row.name} {row.version} for {row.machine}",
                f"needed is {options.name} for {platform.machine()}: {rows[0].url}",
            )
        return row
    known = ", ".join(f"{row.sha256 or row.md5} ({row.file})" for row in rows)
    raise InputError(
        f"{path.name} is not an archive that the lock lists: its SHA-256 is {digests.sha256}, its MD5 {digests.md5}; "
        f"known are {known}",
        f"it may be cut, changed, or a version that the SDK was not tested with; Arm's download: {rows[0].url}",
    )


def _already_there(final: Path, digests: _Digests, reporter: Reporter) -> None:
    """Accept an installation that is there if it was made from the same archive and is whole."""
    try:
        record = read(final / RECORD_NAME)
        same = record["archive"]["sha256"] == digests.sha256
        whole = all(hashing.sha256_file(final / row["file"]) == row["sha256"] for row in record["programs"])
    except InputError:
        same = whole = False
    if not (same and whole):
        raise UsageError(
            f"{final} already exists and differs from what this archive contains",
            "remove that folder, or choose another with --prefix",
        )
    reporter.note(f"{escape(str(final))} was installed before, from the same archive")
    _show(record, final, reporter)


@contextlib.contextmanager
def _staging(final: Path) -> Iterator[Path]:
    """A folder on the file system of `final`, gone at the end, as are folders that were made for it and are empty."""
    made = [parent for parent in final.parents if not parent.exists()]
    writing.make_directory(final.parent)
    try:
        with locks.temporary_directory(".install-", final.parent) as folder:
            yield folder
    except OSError as error:
        raise InputError(
            f"cannot install below {final.parent}: {error.strerror or error}", "choose another --prefix"
        ) from error
    finally:
        for parent in made:
            with contextlib.suppress(OSError):  # not empty: something was installed
                parent.rmdir()


def _keep_licences(archive: Path, installed: Path) -> None:
    for path in _licences(archive):
        if path.suffix != ".sh":
            place = installed / _LICENCE_FOLDER / path.relative_to(archive)
            writing.make_directory(place.parent)
            shutil.copyfile(path, place)


def _licences(folder: Path) -> list[Path]:
    """Files whose path speaks of a licence, links left out."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not path.is_symlink()
        and _LICENCE_NAME.search(path.relative_to(folder).as_posix())
    ]


def _programs(name: str, installed: Path) -> list[Path]:
    wanted = [row.program for row in models().values() if row.board == name]
    found = [path for program in wanted for path in sorted(installed.rglob(program)) if path.is_file()]
    missing = set(wanted) - {path.name for path in found}
    if missing:
        raise ToolError(
            f"Arm's installer succeeded, but {', '.join(sorted(missing))} is missing",
            "run it by hand and set ETHOSU_FVP_DIR to its folder",
        )
    return found


def _record(path: Path, digests: _Digests, row: FvpArchive, installed: Path) -> Record:
    accepted = records.timestamp()
    return {
        "schema": kinds.FVP_INSTALL.schema,
        "status": "pass",
        "created": accepted,
        "tool": provenance.tool().to_json(),
        "fvp": {"name": row.name, "version": row.version, "machine": row.machine},
        "archive": {
            "file": path.name,
            "bytes": path.stat().st_size,
            "md5": digests.md5,
            "sha256": digests.sha256,
            "sha256_locked": bool(row.sha256),
        },
        "eula": {
            "accepted_by": _user(),
            "accepted_at": accepted,
            "accepted_with": "--accept-eula",
            "texts": [_file(text, installed) for text in _licences(installed)],
        },
        "programs": [
            {"name": program.name, **_file(program, installed)} for program in _programs(row.name, installed)
        ],
        "host": host_facts.host(),
    }


def _file(path: Path, folder: Path) -> Record:
    return {"file": path.relative_to(folder).as_posix(), "sha256": hashing.sha256_file(path)}


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no entry for the user, as in a container
        return f"uid {os.getuid()}"


def _give_final_name(installed: Path, final: Path) -> None:
    try:
        installed.rename(final)
    except OSError as error:  # another installation was faster
        raise SdkError(f"cannot move the installation to {final}: {error.strerror}", "try again") from error


def _show(record: Record, final: Path, reporter: Reporter) -> None:
    eula, fvp = record["eula"], record["fvp"]
    reporter.show(f"FVP {fvp['name']} {fvp['version']} is in {escape(str(final))}")
    reporter.show(
        f"Arm's EULA was accepted by {escape(eula['accepted_by'])} at {eula['accepted_at']} ({RECORD_NAME})"
    )
    for text in eula["texts"]:
        reporter.show(f"  its text: {escape(str(final / text['file']))}")
    for program in record["programs"]:
        reporter.show(f"  program: {escape(str(final / program['file']))}")
    reporter.emit(record)
