"""``sweep-answer/1``: schemas/sweep-answer.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Any, Literal

from ethosu_sdk.records.common import Document
from ethosu_sdk.records.kind import RecordKind


class SweepAnswer(Document[Literal["pass"]], tag_field="schema", tag="sweep-answer/1"):
    """The answer to a query about a sweep."""

    query: str
    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]


KIND = RecordKind(SweepAnswer)
