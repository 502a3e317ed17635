"""``launchers/1``, from which schemas/launchers.v1.schema.json is made."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records.common import Document, Some, Text
from ethosu_sdk.records.kind import RecordKind


class Launchers(Document[Literal["pass"]], tag_field="schema", tag="launchers/1"):
    """The launchers that were installed."""

    folder: Text
    python: Text
    programs: Some[Text]


KIND = RecordKind(Launchers)
