"""``conversion/1``, from which schemas/conversion.v1.schema.json is made."""

from __future__ import annotations

from typing import Annotated, Literal

from ethosu_sdk.records.common import Derived, Host, PositiveCount, Sha256, Text
from ethosu_sdk.records.kind import Part, RecordKind, about


class File(Part):
    name: Text
    sha256: Sha256
    bytes: PositiveCount


class Conversion(Derived[Literal["pass"]], tag_field="schema", tag="conversion/1"):
    """Records in the format of another tool."""

    format: Literal["junit", "sarif", "perfetto", "parquet", "model-explorer", "etdump", "bpte"]
    file: File
    left_out: Annotated[tuple[Text, ...], about("what the records have and the format has no place for")]
    host: Host


KIND = RecordKind(Conversion)
