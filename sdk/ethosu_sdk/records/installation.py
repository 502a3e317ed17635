"""The installation: ``doctor-report/1``, ``fvp-install/1`` and ``launchers/1``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from ethosu_sdk.records import rules
from ethosu_sdk.records.common import (
    Amount,
    Created,
    Document,
    FileDigest,
    Host,
    Part,
    PositiveCount,
    RecordKind,
    Sha256,
    Some,
    Text,
    require,
)


# The parts of doctor-report/1.
class Lock(Part):
    status: Literal["agrees", "differs", "unknown"]
    locked: Text | None = None
    installed: Text | None = None
    reason: Text | None = None  #: why it is unknown

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
    exercised: Text | None = None  #: what the tool was made to do, and did
    lock: Lock  #: whether it is the version that the SDK is built and tested with

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


def status_follows_tools(record: DoctorReport) -> Iterator[str]:
    """A required tool that was not found fails the report."""
    missing = any(row.required and row.status != "found" for row in record.checks)
    yield from rules.wrong_status(record, "fail" if missing else "pass", "the tools say")


DOCTOR = RecordKind(DoctorReport, (status_follows_tools,))


# The parts of fvp-install/1.
class Fvp(Part):
    name: Literal["corstone-300", "corstone-320"]
    version: Text
    machine: Text


class Archive(Part):
    file: Text
    bytes: PositiveCount
    md5: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
    sha256: Sha256
    #: whether the lock had this digest; otherwise it was taken when the archive was first installed, after
    #: its MD5 agreed
    sha256_locked: bool


class Eula(Part):
    accepted_by: Text
    accepted_at: Created
    accepted_with: Literal["--accept-eula"]
    #: licence texts that came with the archive; empty when the only one is inside of the installer
    texts: tuple[FileDigest, ...]


class Program(Part):
    name: Text
    file: Text
    sha256: Sha256


class FvpInstallation(Document[Literal["pass"]], tag_field="schema", tag="fvp-install/1"):
    """What `ethosu-sdk fvp install` installed, and who accepted Arm's licence for it."""

    fvp: Fvp
    archive: Archive
    eula: Eula
    programs: Some[Program]
    host: Host


FVP_INSTALL = RecordKind(FvpInstallation)


class Launchers(Document[Literal["pass"]], tag_field="schema", tag="launchers/1"):
    """The launchers that were installed."""

    folder: Text
    python: Text
    programs: Some[Text]


LAUNCHERS = RecordKind(Launchers)
