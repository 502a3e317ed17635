"""``fvp-install/1``, from which schemas/fvp-install.v1.schema.json is made."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from ethosu_sdk.records.common import Created, Document, FileDigest, Host, PositiveCount, Sha256, Some, Text
from ethosu_sdk.records.kind import Part, RecordKind, about


class Fvp(Part):
    name: Literal["corstone-300", "corstone-320"]
    version: Text
    machine: Text


class Archive(Part):
    file: Text
    bytes: PositiveCount
    md5: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
    sha256: Sha256
    sha256_locked: Annotated[
        bool,
        about(
            "whether the lock had this digest; otherwise it was taken when the archive was first "
            "installed, after its MD5 agreed"
        ),
    ]


class Eula(Part):
    accepted_by: Text
    accepted_at: Created
    accepted_with: Literal["--accept-eula"]
    texts: Annotated[
        tuple[FileDigest, ...],
        about("licence texts that came with the archive; empty when the only one is inside of the installer"),
    ]


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


KIND = RecordKind(FvpInstallation)
