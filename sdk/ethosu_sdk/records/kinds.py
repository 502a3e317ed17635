"""The table of all kinds of record, and the manifest's class."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta

from ethosu_sdk.base.json_text import Record
from ethosu_sdk.records import (
    advice,
    build,
    check,
    compare,
    compile,
    debug,
    inspection,
    installation,
    parsed_log,
    printed,
    profile,
    rules,
    run,
    sequences,
    sweep,
)
from ethosu_sdk.records.common import Count, Document, Part, RecordKind, Sha256, Text

ManifestStatus = Annotated[
    Literal["complete", "incomplete"],
    Meta(description="incomplete: a command writes in the folder, or ended without having written all"),
]


class File(Part):
    path: Text  #: from the folder, with / between its parts
    role: Text  #: what it is for
    media_type: Annotated[str, Meta(pattern="^[a-z]+/[a-z0-9.+-]+$")]
    bytes: Count
    sha256: Sha256
    schema: Annotated[str, Meta(pattern="^[a-z-]+/[0-9]+$")] | None = None  #: of a record
    writer: Text  #: the command that wrote it


class Manifest(Document[ManifestStatus], tag_field="schema", tag="bundle/1"):
    """The files of a folder of results."""

    writer: Text  #: the command that wrote last
    files: tuple[File, ...]


def paths_are_listed_once(record: Manifest) -> Iterator[str]:
    """A manifest has one row for a file."""
    for path, count in collections.Counter(row.path for row in record.files).items():
        if count > 1:
            yield f"{path[:80]!r} is listed twice"


MANIFEST = RecordKind(Manifest, (rules.files_stay_in_the_folder, paths_are_listed_once), file="manifest.json")


# A new kind is a module with its class and its row, and a line here.
RUN, PROFILE, BUILD, DEBUG = run.KIND, profile.KIND, build.BUILD, debug.KIND
COMPILE, EXPORT, ADVICE, COMPARE = compile.KIND, build.EXPORT, advice.KIND, compare.KIND
GENERATE, SCRIPT = sequences.GENERATE, sequences.SCRIPT
SWEEP, SWEEP_CELL, SWEEP_COMPARE = sweep.SWEEP, sweep.SWEEP_CELL, sweep.SWEEP_COMPARE
# Printed only.
INSPECT, VERIFY, LOG, CONVERSION = inspection.KIND, printed.VERIFY, parsed_log.KIND, printed.CONVERSION
CHECK = check.KIND
SWEEP_PLAN, SWEEP_ANSWER = sweep.SWEEP_PLAN, sweep.SWEEP_ANSWER
DOCTOR, FVP_INSTALL = installation.DOCTOR, installation.FVP_INSTALL
LAUNCHERS, ZOO, BOARDS = installation.LAUNCHERS, printed.ZOO, printed.BOARDS
EXPLANATION, ERROR = printed.EXPLANATION, printed.ERROR

# Those that lie in folders of results; first those that say what a folder is about.
IN_FOLDERS: tuple[RecordKind[Any], ...] = (
    *(RUN, PROFILE, BUILD, COMPILE, COMPARE, DEBUG, ADVICE, EXPORT, GENERATE),
    *(SWEEP, SWEEP_CELL, SWEEP_COMPARE, SCRIPT),
)
PRINTED: tuple[RecordKind[Any], ...] = (
    *(INSPECT, CHECK, VERIFY, LOG, CONVERSION, SWEEP_PLAN, SWEEP_ANSWER),
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
