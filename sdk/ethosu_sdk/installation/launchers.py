"""`ethosu-sdk fvp install-launchers`: programs with the FVPs' names that run QEMU and the NPU model."""

from __future__ import annotations

import platform
import shlex
import sys
from pathlib import Path

from ethosu_sdk.base import filesystem, tools
from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.targets import suggestion
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.installation.options import LAYOUT_CHOICES
from ethosu_sdk.records import provenance, validation
from ethosu_sdk.records.installation import Launchers
from ethosu_sdk.simulate import fvp_models
from ethosu_sdk.simulate.fvp_output import NOT_AN_FVP
from ethosu_sdk.simulate.fvp_simulator import is_launcher

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
