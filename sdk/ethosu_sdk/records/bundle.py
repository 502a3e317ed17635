"""``bundle/1``, from which schemas/bundle.v1.schema.json is made."""

from __future__ import annotations

import collections
from typing import Annotated, Literal

from msgspec import Meta

from ethosu_sdk.records import rules
from ethosu_sdk.records.common import Count, Document, Sha256, Text
from ethosu_sdk.records.kind import Part, RecordKind, about

Status = Annotated[
    Literal["complete", "incomplete"],
    about("incomplete: a command writes in the folder, or ended without having written all"),
]


class File(Part):
    path: Annotated[Text, about("from the folder, with / between its parts")]
    role: Annotated[Text, about("what it is for")]
    media_type: Annotated[str, Meta(pattern="^[a-z]+/[a-z0-9.+-]+$")]
    bytes: Count
    sha256: Sha256
    schema: Annotated[Annotated[str, Meta(pattern="^[a-z-]+/[0-9]+$")] | None, about("of a record")] = None
    writer: Annotated[Text, about("the command that wrote it")]


class Manifest(Document[Status], tag_field="schema", tag="bundle/1"):
    """The files of a folder of results."""

    writer: Annotated[Text, about("the command that wrote last")]
    files: tuple[File, ...]


def paths_are_listed_once(record: Manifest) -> list[str]:
    """A manifest has one row for a file."""
    counts = collections.Counter(row.path for row in record.files)
    return [f"{path[:80]!r} is listed twice" for path, count in counts.items() if count > 1]


KIND = RecordKind(Manifest, (rules.files_stay_in_the_folder, paths_are_listed_once), file="manifest.json")
