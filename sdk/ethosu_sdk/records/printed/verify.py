"""``verify-result/1``, from which schemas/verify-result.v1.schema.json is made."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from ethosu_sdk.records.common import Amount, Document, Host, Sha256, Some, Text
from ethosu_sdk.records.kind import Part, RecordKind, about, require


class Record(Part):
    file: Text
    schema: Literal["build-result/1", "run-result/1"]
    sha256: Sha256
    loose: Annotated[
        Literal[True] | None,
        about("The file is not as the manifest beside it lists it; the user let it be read all the same"),
    ] = None


CheckStatus = Literal["agrees", "differs", "unknown"]


class Check(Part):
    name: Text
    status: CheckStatus
    recorded: Text
    found: Text | None = None

    together: ClassVar[dict[str, Any]] = {
        "if": {"properties": {"status": {"const": "unknown"}}},
        "then": {"properties": {"found": False}},
        "else": {"required": ["found"]},
    }

    def __post_init__(self) -> None:
        unknown = self.status == "unknown"
        require(unknown == (self.found is None), "what was found is given if it is known, and only then")


class Verification(Document[Literal["pass", "fail"]], tag_field="schema", tag="verify-result/1"):
    """What `ethosu-sdk verify` found."""

    record: Record
    checks: Some[Check]
    causes: Annotated[tuple[Text, ...], about("why something differs, as far as that can be told")]
    wall_time_s: Amount
    host: Host


def status_follows_differences(record: Verification) -> list[str]:
    """One difference fails the verification."""
    expected = "fail" if any(row.status == "differs" for row in record.checks) else "pass"
    if record.status != expected:
        return [f"the checks say '{expected}', the record says '{record.status}'"]
    return []


KIND = RecordKind(Verification, (status_follows_differences,))
