"""``bundle/1``: schemas/bundle.v1.schema.json says what each member means."""

from __future__ import annotations

import collections
from typing import Literal

from ethosu_sdk.records import rules
from ethosu_sdk.records.common import Document
from ethosu_sdk.records.kind import Part, RecordKind

Status = Literal["complete", "incomplete"]


class File(Part):
    path: str
    role: str
    media_type: str
    bytes: int
    sha256: str
    schema: str | None = None
    writer: str


class Manifest(Document[Status], tag_field="schema", tag="bundle/1"):
    """The files of a folder of results."""

    writer: str
    files: tuple[File, ...]


def paths_are_listed_once(record: Manifest) -> list[str]:
    """A manifest has one row for a file."""
    counts = collections.Counter(row.path for row in record.files)
    return [f"{path[:80]!r} is listed twice" for path, count in counts.items() if count > 1]


KIND = RecordKind(Manifest, (rules.files_stay_in_the_folder, paths_are_listed_once), file="manifest.json")
