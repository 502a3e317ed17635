"""`ethosu-sdk fvp install-launchers`: programs with the FVPs' names that run QEMU and the NPU model."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from ethosu_sdk import provenance, records, schema, tools
from ethosu_sdk.commands.shared.reporter import Reporter
from ethosu_sdk.commands.shared.terminal import escape
from ethosu_sdk.errors import UsageError
from ethosu_sdk.records import Record
from ethosu_sdk.simulators.fvp import models
from ethosu_sdk.simulators.fvp.discovery import NOT_AN_FVP, is_launcher

_SCHEMA = "launchers/1"
# -P: modules in the caller's folder must not stand in for the SDK's.
_SCRIPT = """#!/bin/sh
# {program}: a launcher of ethosu-sdk, {not_an_fvp}.
exec {python} -P -m ethosu_sdk.fvp_launcher {program} "$@"
"""


def install(folder: Path, reporter: Reporter, *, force: bool = False) -> None:
    """Write one launcher for each FVP into `folder`; they start the Python that runs this.

    UsageError when a program of that name is there which is no launcher, unless `force` is given; ToolError without a
    QEMU that they can start.
    """
    tools.require("qemu-system-arm")
    paths = [folder / program for program in models.models()]
    for path in paths:
        if path.exists() and not is_launcher(path) and not force:
            raise UsageError(f"{path} exists and is no launcher", "choose another folder, or --force")
    records.make_directory(folder)
    for path in paths:
        records.write_bytes(path, script(path.name).encode())
        records.make_executable(path)
    record: Record = {
        "schema": _SCHEMA,
        "status": "pass",
        "created": records.timestamp(),
        "tool": provenance.tool(),
        "folder": str(folder.absolute()),
        "python": sys.executable,
        "programs": [path.name for path in paths],
    }
    schema.check(record, "the record of the launchers")
    for path in paths:
        reporter.show(escape(str(path)))
    reporter.note(f"they run QEMU and the SDK's NPU model; they are {NOT_AN_FVP}")
    reporter.emit(record)


def script(program: str) -> str:
    """The launcher called `program`."""
    return _SCRIPT.format(program=program, python=shlex.quote(sys.executable), not_an_fvp=NOT_AN_FVP)
