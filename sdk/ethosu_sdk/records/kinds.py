"""The table of all kinds of record: their schemas, file names, roles and media types stand here alone.

A new kind is a module with its class and its row, and a line here.
"""

from __future__ import annotations

from typing import Any

from ethosu_sdk.records import (
    Record,
    advice,
    build,
    bundle,
    compare,
    compile,
    debug,
    export,
    profile,
    run,
    sweep,
)
from ethosu_sdk.records.kind import Part, RecordKind
from ethosu_sdk.records.printed import (
    boards,
    conversion,
    doctor,
    error,
    explanation,
    fvp_install,
    inspect,
    launchers,
    log,
    sweep_answer,
    sweep_plan,
    verify,
    zoo,
)
from ethosu_sdk.records.sequences import generate, script
from ethosu_sdk.records.sweep import cell, comparison

RUN, PROFILE, BUILD, DEBUG = run.KIND, profile.KIND, build.KIND, debug.KIND
COMPILE, EXPORT, ADVICE, COMPARE = compile.KIND, export.KIND, advice.KIND, compare.KIND
GENERATE = generate.KIND
SWEEP, SWEEP_CELL, SWEEP_COMPARE = sweep.KIND, cell.KIND, comparison.KIND
MANIFEST = bundle.KIND
SCRIPT = script.KIND
# Printed only.
INSPECT, VERIFY, LOG, CONVERSION = inspect.KIND, verify.KIND, log.KIND, conversion.KIND
SWEEP_PLAN, SWEEP_ANSWER = sweep_plan.KIND, sweep_answer.KIND
DOCTOR, FVP_INSTALL, LAUNCHERS, ZOO = doctor.KIND, fvp_install.KIND, launchers.KIND, zoo.KIND
EXPLANATION, ERROR, BOARDS = explanation.KIND, error.KIND, boards.KIND

# Those that lie in folders of results; first those that say what a folder is about.
IN_FOLDERS: tuple[RecordKind[Any], ...] = (
    *(RUN, PROFILE, BUILD, COMPILE, COMPARE, DEBUG, ADVICE, EXPORT, GENERATE),
    *(SWEEP, SWEEP_CELL, SWEEP_COMPARE, SCRIPT),
)
PRINTED: tuple[RecordKind[Any], ...] = (
    *(INSPECT, VERIFY, LOG, CONVERSION, SWEEP_PLAN, SWEEP_ANSWER),
    *(DOCTOR, FVP_INSTALL, LAUNCHERS, ZOO, BOARDS, EXPLANATION, ERROR),
)
BY_SCHEMA = {kind.schema: kind for kind in (*IN_FOLDERS, MANIFEST, *PRINTED)}


def content(record: Record) -> Part:
    """What a valid record holds, as the class of its kind."""
    found: Part = BY_SCHEMA[record["schema"]].convert(record)
    return found


def schema(record: Part) -> str:
    """The member `schema` of a record, such as ``run-result/1``."""
    return str(record.__struct_config__.tag)
