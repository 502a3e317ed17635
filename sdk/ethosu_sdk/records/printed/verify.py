"""``verify-result/1``: schemas/verify-result.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records.common import Document, Host, Number
from ethosu_sdk.records.kind import Part, RecordKind


class Record(Part):
    file: str
    schema: Literal["build-result/1", "run-result/1"]
    sha256: str
    loose: Literal[True] | None = None


CheckStatus = Literal["agrees", "differs", "unknown"]


class Check(Part):
    name: str
    status: CheckStatus
    recorded: str
    found: str | None = None


class Verification(Document[Literal["pass", "fail"]], tag_field="schema", tag="verify-result/1"):
    """What `ethosu-sdk verify` found."""

    record: Record
    checks: tuple[Check, ...]
    causes: tuple[str, ...]
    wall_time_s: Number
    host: Host


def status_follows_differences(record: Verification) -> list[str]:
    """One difference fails the verification."""
    expected = "fail" if any(row.status == "differs" for row in record.checks) else "pass"
    if record.status != expected:
        return [f"the checks say '{expected}', the record says '{record.status}'"]
    return []


KIND = RecordKind(Verification, (status_follows_differences,))
