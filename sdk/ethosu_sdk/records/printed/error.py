"""``error/1``: schemas/error.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

import msgspec

from ethosu_sdk.records.common import Document
from ethosu_sdk.records.kind import Part, RecordKind


class Problem(Part):
    class_name: str = msgspec.field(name="class")
    exit_code: Literal[2, 3, 4, 5, 6, 7, 130]
    message: str
    hint: str | None = None


class Error(Document[Literal["error"]], tag_field="schema", tag="error/1"):
    """Why a command ended without its result."""

    error: Problem


KIND = RecordKind(Error)
