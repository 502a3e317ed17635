"""``sweep-answer/1``, from which schemas/sweep-answer.v1.schema.json is made."""

from __future__ import annotations

from typing import Any, Literal

from ethosu_sdk.records.common import Distinct, Document, Text
from ethosu_sdk.records.kind import RecordKind, require_distinct


class SweepAnswer(Document[Literal["pass"]], tag_field="schema", tag="sweep-answer/1"):
    """The answer to a query about a sweep."""

    query: Text
    columns: Distinct[str]
    rows: tuple[dict[str, Any], ...]

    def __post_init__(self) -> None:
        require_distinct(self.columns)


KIND = RecordKind(SweepAnswer)
