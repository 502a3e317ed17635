"""`ethosu-sdk fvp install`: an FVP from an archive that the user has, once the user accepts Arm's licence; and
`install-launchers`: programs with the FVPs' names that run QEMU and the NPU model.

Arm's installer is run, and what it leaves is looked through before anybody follows it.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import itertools
import os
import platform
import re
import shlex
import shutil
import stat
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import convert

from ethosu_sdk.base import filesystem, proc, tools
from ethosu_sdk.base.errors import InputError, SdkError, ToolError, UsageError
from ethosu_sdk.base.resources import FvpArchive
from ethosu_sdk.base.targets import suggestion
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.installation.options import LAYOUT_CHOICES, InstallOptions
from ethosu_sdk.installation.unpacking import unpack
from ethosu_sdk.records import kinds, provenance, validation
from ethosu_sdk.records.bundle import read_raw_record
from ethosu_sdk.records.common import FileDigest
from ethosu_sdk.records.installation import Archive, Eula, Fvp, FvpInstallation, Launchers, Program
from ethosu_sdk.simulate import fvp_models, fvp_simulator
from ethosu_sdk.simulate.fvp_models import NOT_AN_FVP, models_by_program
from ethosu_sdk.simulate.fvp_simulator import is_launcher

_RECORD_NAME = "install.json"
_LICENCE_NAME = re.compile(r"licen[cs]e|eula", re.IGNORECASE)
_LICENCE_FOLDER = "eula"  # for licence texts that lie beside the installer
_ADDRESS = re.compile(r"(https?|ftp|s3|gs):/", re.IGNORECASE)
_PRODUCT_PAGE = "https://developer.arm.com/Tools%20and%20Software/Fixed%20Virtual%20Platforms"
_INSTALLER = "FVP_*.sh"
_TIMEOUT_S = 900.0
# ExecuTorch's backends/arm/scripts/fvp_utils.sh starts Arm's installers with these.
_ARGUMENTS = [
    "--i-agree-to-the-contained-eula",
    "--force",
    "--destination",
    "./",
    "--quiet",
    "--no-interactive",
]
_KINDS = {
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
# PYTHONHOME: callers of Corstone-320's FVP set it to the FVP's own Python, which is none of the launcher's.
# -P: modules in the caller's folder must not stand in for the SDK's.
_SCRIPT = """#!/bin/sh
# {program}: a launcher of ethosu-sdk, {not_an_fvp}.
unset PYTHONHOME
exec {python} -P -m ethosu_sdk.simulate.fvp_launcher {program} "$@"
"""
# What says beside the programs, in a folder that looks like an FVP's, that it is none.
_NOTE = "ETHOSU-SDK.txt"
_ABOUT = f"""Launchers of ethosu-sdk, {NOT_AN_FVP}

The programs below {{programs}} have the names and the command line of Arm's FVPs, and run firmware on QEMU and on
ethosu-sdk's own model of the Ethos-U. Nothing in this folder is Arm's. The launchers are part of ethosu-sdk: Apache
License 2.0.

The folders are those in which programs that start FVPs, such as Arm's ML Inference Advisor, look for one. {{python}}
is one of them: Corstone-320's FVP has a Python of its own there. The launchers have none and need none.
"""
_ABOUT_PYTHON = "There is no Python here: ../{note} says why this folder is.\n"


class _Digests(NamedTuple):
    md5: str
    sha256: str


def install_fvp(options: InstallOptions, reporter: Reporter) -> None:
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
    final = (options.prefix or fvp_simulator.install_root()).absolute() / row.name / row.version
    if final.exists():
        _already_there(final, digests, reporter)
        return
    with _staging(final) as folder:
        with reporter.stage(f"unpacking {escape(path.name)}"):
            unpack(path, filesystem.make_directory(folder / "archive"), options.limits)
        with reporter.stage("running Arm's installer"):
            installed, archive = _run_installer(folder), folder / "archive"
            for text in (text for text in _licences(archive) if text.suffix != ".sh"):
                place = installed / _LICENCE_FOLDER / text.relative_to(archive)
                filesystem.make_directory(place.parent)
                shutil.copyfile(text, place)
        record = _record(path, digests, row, installed)
        validation.write_record(installed / _RECORD_NAME, record, "the record of the installation")
        try:
            installed.rename(final)
        except OSError as error:  # another installation was faster
            message = f"cannot move the installation to {final}: {error.strerror}"
            raise SdkError(message, "try again") from error
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
        with filesystem.open_regular(path) as stream:
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
        record = kinds.FVP_INSTALL.convert(read_raw_record(final / _RECORD_NAME))
        same = record.archive.sha256 == digests.sha256
        whole = all(filesystem.sha256_file(final / row.file) == row.sha256 for row in record.programs)
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
    filesystem.make_directory(final.parent)
    try:
        with filesystem.temporary_directory(".install-", final.parent) as folder:
            yield folder
    except OSError as error:
        raise InputError(
            f"cannot install below {final.parent}: {error.strerror or error}", "choose another --prefix"
        ) from error
    finally:
        for parent in made:
            with contextlib.suppress(OSError):  # not empty: something was installed
                parent.rmdir()


def _licences(folder: Path) -> list[Path]:
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and _LICENCE_NAME.search(_relative(path, folder))
    ]


def _programs(name: str, installed: Path) -> list[Path]:
    wanted = [row.program for row in models_by_program().values() if row.board == name]
    found = [path for program in wanted for path in sorted(installed.rglob(program)) if path.is_file()]
    missing = set(wanted) - {path.name for path in found}
    if missing:
        raise ToolError(
            f"Arm's installer succeeded, but {', '.join(sorted(missing))} is missing",
            "run it by hand and set ETHOSU_FVP_DIR to its folder",
        )
    return found


def _record(path: Path, digests: _Digests, row: FvpArchive, installed: Path) -> FvpInstallation:
    accepted = provenance.timestamp()
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # no entry for the user, as in a container
        user = f"uid {os.getuid()}"
    return FvpInstallation(
        status="pass",
        created=accepted,
        tool=provenance.tool(),
        fvp=convert({"name": row.name, "version": row.version, "machine": row.machine}, Fvp),
        archive=Archive(
            file=path.name,
            bytes=path.stat().st_size,
            md5=digests.md5,
            sha256=digests.sha256,
            sha256_locked=bool(row.sha256),
        ),
        eula=Eula(
            accepted_by=user,
            accepted_at=accepted,
            accepted_with="--accept-eula",
            texts=tuple(
                FileDigest(file=_relative(text, installed), sha256=filesystem.sha256_file(text))
                for text in _licences(installed)
            ),
        ),
        programs=tuple(
            Program(name=found.name, file=_relative(found, installed), sha256=filesystem.sha256_file(found))
            for found in _programs(row.name, installed)
        ),
        host=provenance.this_host(),
    )


def _relative(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _show(record: FvpInstallation, final: Path, reporter: Reporter) -> None:
    eula, fvp = record.eula, record.fvp
    reporter.show(
        f"FVP {fvp.name} {fvp.version} is in {escape(str(final))}",
        f"Arm's EULA was accepted by {escape(eula.accepted_by)} at {eula.accepted_at} ({_RECORD_NAME})",
        *(f"  its text: {escape(str(final / text.file))}" for text in eula.texts),
        *(f"  program: {escape(str(final / program.file))}" for program in record.programs),
    )
    reporter.emit(record.to_json())


def _run_installer(folder: Path) -> Path:
    """Run the one installer below `folder`/archive; the folder that it filled. InputError when there is no installer
    or it leaves what is refused, ToolError when it fails."""
    found = sorted((folder / "archive").glob(_INSTALLER))
    if len(found) != 1 or found[0].is_symlink() or not found[0].is_file():
        message = f"the archive has no installer {_INSTALLER}, or several"
        raise InputError(message, "give the archive of an FVP for Linux")
    filesystem.make_executable(found[0])
    target = filesystem.make_directory(folder / "installed")
    home = str(filesystem.make_directory(folder / "home"))
    # All that the installer gets to know of the user's environment.
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": home, "TMPDIR": home, "LC_ALL": "C"}
    proc.run([str(found[0]), *_ARGUMENTS], timeout_s=_TIMEOUT_S, cwd=target, env=environment, error=ToolError)
    _refuse_unsafe(target)
    return target


def _refuse_unsafe(folder: Path) -> None:
    """InputError for a link below `folder` that leaves it, a device or pipe, and what would run as another user."""
    inside: Counter[tuple[int, int]] = Counter()
    hard_links: dict[tuple[int, int], tuple[Path, int]] = {}
    names = ((root, name) for root, *names in os.walk(folder) for name in itertools.chain(*names))
    for path in sorted(Path(*row) for row in names):
        state = path.lstat()
        if path.is_symlink():
            target = Path(os.path.realpath(path))  # by way of whatever others
            if os.readlink(path).startswith("/") or not target.is_relative_to(folder.resolve()):
                _refuse(path, folder, f"is a link out of its folder, to {os.readlink(path)[:200]!r}")
        elif kind := _KINDS.get(stat.S_IFMT(state.st_mode)):
            _refuse(path, folder, f"is {kind}")
        elif stat.S_ISREG(state.st_mode):
            if state.st_mode & (stat.S_ISUID | stat.S_ISGID):
                _refuse(path, folder, "would run as another user (set-user-ID)")
            inside[state.st_dev, state.st_ino] += 1
            hard_links[state.st_dev, state.st_ino] = path, state.st_nlink
    for key, (path, links) in hard_links.items():
        if inside[key] != links:
            _refuse(path, folder, "is a hard link to a file outside")


def _refuse(path: Path, folder: Path, problem: str) -> None:
    name = _relative(path, folder)
    raise InputError(
        f"a file from Arm's installer is refused: {name[:200]!r} {problem}",
        "nothing was installed; get the archive from Arm again",
    )


def install_launchers(
    folder: Path, reporter: Reporter, *, force: bool = False, layout: str = LAYOUT_CHOICES[0]
) -> None:
    """Write launchers for the FVPs, and for programs of their command line, into `folder`.

    With the `layout` "fvp" they lie where Arm's installer puts an FVP's programs in the folder that it is given. They
    start the Python that runs this.

    UsageError for an unknown layout, or when a program of that name is there which is no launcher, unless `force` is
    given; ToolError without a QEMU that they can start.
    """
    if layout not in LAYOUT_CHOICES:
        raise UsageError(f"unknown layout '{layout}'", suggestion(layout, LAYOUT_CHOICES))
    tools.require("qemu-system-arm")
    top = folder
    if layout == "fvp":
        folder = top / fvp_models.installed_programs(platform.machine())
    paths = [folder / program for program in fvp_models.launchers()]
    for path in paths:
        if path.exists() and not is_launcher(path) and not force:
            raise UsageError(f"{path} exists and is not a launcher", "choose another folder, or --force")
    filesystem.make_directory(folder)
    for path in paths:
        filesystem.write_bytes(path, launcher_script(path.name).encode())
        filesystem.make_executable(path)
    if layout == "fvp":
        # What an FVP's folder has beside its programs, and that it is none.
        python = filesystem.make_directory(top / fvp_models.installed_python())
        about = _ABOUT.format(programs=folder.relative_to(top), python=python.name)
        filesystem.write_bytes(top / _NOTE, about.encode())
        filesystem.write_bytes(python / _NOTE, _ABOUT_PYTHON.format(note=_NOTE).encode())
    record = Launchers(
        status="pass",
        created=provenance.timestamp(),
        tool=provenance.tool(),
        folder=str(folder.absolute()),
        python=sys.executable,
        programs=tuple(path.name for path in paths),
    ).to_json()
    validation.check_record(record, "the record of the launchers")
    for path in paths:
        reporter.show(escape(str(path)))
    reporter.note(f"they run QEMU and the SDK's NPU model; they are {NOT_AN_FVP}")
    reporter.emit(record)


def launcher_script(program: str) -> str:
    return _SCRIPT.format(program=program, python=shlex.quote(sys.executable), not_an_fvp=NOT_AN_FVP)
