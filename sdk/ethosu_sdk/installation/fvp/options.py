"""The options of `fvp install`. The module is imported for every `--help`: it must stay light."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ethosu_sdk.installation.fvp.archive import Limits
    from ethosu_sdk.toolchain_lock import FvpArchive

SANDBOX_CHOICES = ("auto", "require", "off")
LAYOUT_CHOICES = ("flat", "fvp")


def _published() -> Sequence[FvpArchive]:
    from ethosu_sdk import toolchain_lock

    return toolchain_lock.fvp_archives()


@dataclass(frozen=True)
class InstallOptions:
    """What the user wants installed. Of `archive`, a file, and `mirror`, a folder of archives, one is given."""

    name: str
    _: KW_ONLY
    accept_eula: bool = False
    archive: Path | None = None
    mirror: Path | None = None
    prefix: Path | None = None
    sandbox: str = "auto"  # of SANDBOX_CHOICES
    archives: Sequence[FvpArchive] = field(default_factory=_published)
    limits: Limits | None = None
