"""``doctor-report/1``, from which schemas/doctor-report.v1.schema.json is made."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from ethosu_sdk.records.common import Amount, Document, Host, Some, Text
from ethosu_sdk.records.kind import Part, RecordKind, about, require


class Lock(Part):
    status: Literal["agrees", "differs", "unknown"]
    locked: Text | None = None
    installed: Text | None = None
    reason: Annotated[Text | None, about("why it is unknown")] = None

    together: ClassVar[dict[str, Any]] = {
        "if": {"properties": {"status": {"const": "unknown"}}},
        "then": {"required": ["reason"]},
        "else": {"required": ["locked", "installed"]},
    }

    def __post_init__(self) -> None:
        if self.status == "unknown":
            require(self.reason is not None, "nothing says why it is unknown")
        else:
            require(None not in (self.locked, self.installed), "a version is not given")


class Check(Part):
    name: Text
    status: Literal["found", "missing", "too old", "broken"]
    needed_for: Text
    required: bool
    version: Text | None = None
    wanted: Text | None = None
    file: Text | None = None
    fix: Text | None = None
    detail: Text | None = None
    exercised: Annotated[Text | None, about("what the tool was made to do, and did")] = None
    lock: Annotated[Lock, about("whether it is the version that the SDK is built and tested with")]

    together: ClassVar[dict[str, Any]] = {
        "if": {"properties": {"status": {"const": "found"}}},
        "else": {"required": ["fix"]},
    }

    def __post_init__(self) -> None:
        require(self.status == "found" or self.fix is not None, "nothing says how to fix it")


class DoctorReport(Document[Literal["pass", "fail"]], tag_field="schema", tag="doctor-report/1"):
    """What `ethosu-sdk doctor` found."""

    checks: Some[Check]
    host: Host
    wall_time_s: Amount


def status_follows_tools(record: DoctorReport) -> list[str]:
    """A required tool that was not found fails the report."""
    expected = "fail" if any(row.required and row.status != "found" for row in record.checks) else "pass"
    if record.status != expected:
        return [f"the tools say '{expected}', the record says '{record.status}'"]
    return []


KIND = RecordKind(DoctorReport, (status_follows_tools,))
