"""``conversion/1``: schemas/conversion.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records.common import Derived, Host
from ethosu_sdk.records.kind import Part, RecordKind


class File(Part):
    name: str
    sha256: str
    bytes: int


class Conversion(Derived[Literal["pass"]], tag_field="schema", tag="conversion/1"):
    """Records in the format of another tool."""

    format: Literal["junit", "sarif", "perfetto", "parquet", "model-explorer", "etdump", "bpte"]
    file: File
    left_out: tuple[str, ...]
    host: Host


KIND = RecordKind(Conversion)
