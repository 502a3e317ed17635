"""``explanation/1``, from which schemas/explanation.v1.schema.json is made."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records.common import Count, Document, Some, Text
from ethosu_sdk.records.kind import Part, RecordKind


class KnownError(Part):
    id: Text
    area: Text
    harmless: bool
    cause: Text
    fix: Text
    code: Count | None = None
    name: Text | None = None


class Explanation(Document[Literal["pass"]], tag_field="schema", tag="explanation/1"):
    """What an error means and what to do about it."""

    asked: str
    errors: Some[KnownError]


KIND = RecordKind(Explanation)
