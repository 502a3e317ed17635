"""``launchers/1``: schemas/launchers.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records.common import Document
from ethosu_sdk.records.kind import RecordKind


class Launchers(Document[Literal["pass"]], tag_field="schema", tag="launchers/1"):
    """The launchers that were installed."""

    folder: str
    python: str
    programs: tuple[str, ...]


KIND = RecordKind(Launchers)
