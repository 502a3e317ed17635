"""The options of `fvp install`. The module is imported for every `--help`: it must stay light."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ethosu_sdk.base.boards import BOARD_NAMES
from ethosu_sdk.compile.program_options import Option, argument, option

if TYPE_CHECKING:
    from ethosu_sdk.base.resources import FvpArchive
    from ethosu_sdk.installation.unpacking import Limits


LAYOUT_CHOICES = ("flat", "fvp")


def _published() -> "Sequence[FvpArchive]":
    from ethosu_sdk.base import resources

    return resources.fvp_archives()


@dataclass(frozen=True)
class InstallOptions:
    """What the user wants installed. Of `archive`, a file, and `mirror`, a folder of archives, one is given."""

    name: str = field(metadata=argument(Option("The board of the FVP.", choices=tuple(BOARD_NAMES))))
    _: KW_ONLY
    accept_eula: bool = option(False, Option("I have read and accept Arm's End User Licence Agreement."))
    archive: Path | None = option(
        None, Option("Arm's archive, which you have downloaded.", metavar="FILE.tgz")
    )
    mirror: Path | None = option(None, Option("A folder that contains Arm's archive.", metavar="DIR"))
    prefix: Path | None = option(
        None,
        Option("Install below this folder.", metavar="DIR", shown_default="~/.local/share/ethosu-sdk/fvp"),
    )
    archives: "Sequence[FvpArchive]" = field(default_factory=_published)
    limits: "Limits | None" = None
