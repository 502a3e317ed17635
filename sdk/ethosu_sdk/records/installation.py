"""The installation: ``doctor-report/1``, ``fvp-install/1`` and ``launchers/1``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from ethosu_sdk.records import common as c, rules
from ethosu_sdk.records.common import Document, Part, RecordKind, require


# The parts of doctor-report/1.
class Lock(Part):
    status: Literal["agrees", "differs", "unknown"]
    locked: c.Text | None = None
    installed: c.Text | None = None
    reason: c.Text | None = None  #: why it is unknown

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
    name: c.Text
    status: Literal["found", "missing", "too old", "broken"]
    needed_for: c.Text
    required: bool
    version: c.Text | None = None
    wanted: c.Text | None = None
    file: c.Text | None = None
    fix: c.Text | None = None
    detail: c.Text | None = None
    exercised: c.Text | None = None  #: what the tool was made to do, and did
    lock: Lock  #: whether it is the version that the SDK is built and tested with

    together: ClassVar[dict[str, Any]] = {
        "if": {"properties": {"status": {"const": "found"}}},
        "else": {"required": ["fix"]},
    }

    def __post_init__(self) -> None:
        require(self.status == "found" or self.fix is not None, "nothing says how to fix it")


class DoctorReport(Document[Literal["pass", "fail"]], tag_field="schema", tag="doctor-report/1"):
    """What `ethosu-sdk doctor` found."""

    checks: c.Some[Check]
    host: c.Host
    wall_time_s: c.Amount


def status_follows_tools(record: DoctorReport) -> Iterator[str]:
    """A required tool that was not found fails the report."""
    missing = any(row.required and row.status != "found" for row in record.checks)
    yield from rules.wrong_status(record, "fail" if missing else "pass", "the tools say")


DOCTOR = RecordKind(DoctorReport, (status_follows_tools,))


# The parts of fvp-install/1.
class Fvp(Part):
    name: Literal["corstone-300", "corstone-320"]
    version: c.Text
    machine: c.Text


class Archive(Part):
    file: c.Text
    bytes: c.PositiveCount
    md5: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
    sha256: c.Sha256
    #: whether the lock had this digest; otherwise it was taken when the archive was first installed, after
    #: its MD5 agreed
    sha256_locked: bool


class Eula(Part):
    accepted_by: c.Text
    accepted_at: c.Created
    accepted_with: Literal["--accept-eula"]
    #: licence texts that came with the archive; empty when the only one is inside of the installer
    texts: tuple[c.FileDigest, ...]


class Program(Part):
    name: c.Text
    file: c.Text
    sha256: c.Sha256


class FvpInstallation(Document[Literal["pass"]], tag_field="schema", tag="fvp-install/1"):
    """What `ethosu-sdk fvp install` installed, and who accepted Arm's licence for it."""

    fvp: Fvp
    archive: Archive
    eula: Eula
    programs: c.Some[Program]
    host: c.Host


FVP_INSTALL = RecordKind(FvpInstallation)


class Launchers(Document[Literal["pass"]], tag_field="schema", tag="launchers/1"):
    """The launchers that were installed."""

    folder: c.Text
    python: c.Text
    programs: c.Some[c.Text]


LAUNCHERS = RecordKind(Launchers)
