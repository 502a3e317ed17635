"""``fvp-install/1``: schemas/fvp-install.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records.common import Document, FileDigest, Host
from ethosu_sdk.records.kind import Part, RecordKind


class Fvp(Part):
    name: Literal["corstone-300", "corstone-320"]
    version: str
    machine: str


class Archive(Part):
    file: str
    bytes: int
    md5: str
    sha256: str
    sha256_locked: bool


class Eula(Part):
    accepted_by: str
    accepted_at: str
    accepted_with: Literal["--accept-eula"]
    texts: tuple[FileDigest, ...]


class Program(Part):
    name: str
    file: str
    sha256: str


class FvpInstallation(Document[Literal["pass"]], tag_field="schema", tag="fvp-install/1"):
    """What `ethosu-sdk fvp install` installed, and who accepted Arm's licence for it."""

    fvp: Fvp
    archive: Archive
    eula: Eula
    programs: tuple[Program, ...]
    host: Host


KIND = RecordKind(FvpInstallation)
