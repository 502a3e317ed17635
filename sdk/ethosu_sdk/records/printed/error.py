"""``error/1``, from which schemas/error.v1.schema.json is made."""

from __future__ import annotations

from typing import Literal

import msgspec

from ethosu_sdk.records.common import Document, Text
from ethosu_sdk.records.kind import Part, RecordKind


class Problem(Part):
    class_name: Text = msgspec.field(name="class")
    exit_code: Literal[2, 3, 4, 5, 6, 7, 130]
    message: Text
    hint: Text | None = None


class Error(Document[Literal["error"]], tag_field="schema", tag="error/1"):
    """Why a command ended without its result."""

    error: Problem


KIND = RecordKind(Error)
