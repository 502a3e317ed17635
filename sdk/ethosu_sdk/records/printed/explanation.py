"""``explanation/1``: schemas/explanation.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records.common import Document
from ethosu_sdk.records.kind import Part, RecordKind


class KnownError(Part):
    id: str
    area: str
    harmless: bool
    cause: str
    fix: str
    code: int | None = None
    name: str | None = None


class Explanation(Document[Literal["pass"]], tag_field="schema", tag="explanation/1"):
    """What an error means and what to do about it."""

    asked: str
    errors: tuple[KnownError, ...]


KIND = RecordKind(Explanation)
