"""``doctor-report/1``: schemas/doctor-report.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records.common import Document, Host, Number
from ethosu_sdk.records.kind import Part, RecordKind


class Lock(Part):
    status: Literal["agrees", "differs", "unknown"]
    locked: str | None = None
    installed: str | None = None
    reason: str | None = None


class Check(Part):
    name: str
    status: Literal["found", "missing", "too old", "broken"]
    needed_for: str
    required: bool
    version: str | None = None
    wanted: str | None = None
    file: str | None = None
    fix: str | None = None
    detail: str | None = None
    exercised: str | None = None
    lock: Lock


class DoctorReport(Document[Literal["pass", "fail"]], tag_field="schema", tag="doctor-report/1"):
    """What `ethosu-sdk doctor` found."""

    checks: tuple[Check, ...]
    host: Host
    wall_time_s: Number


def status_follows_tools(record: DoctorReport) -> list[str]:
    """A required tool that was not found fails the report."""
    expected = "fail" if any(row.required and row.status != "found" for row in record.checks) else "pass"
    if record.status != expected:
        return [f"the tools say '{expected}', the record says '{record.status}'"]
    return []


KIND = RecordKind(DoctorReport, (status_follows_tools,))
