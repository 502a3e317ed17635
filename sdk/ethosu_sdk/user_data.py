"""Where the SDK keeps what it cannot make again: FVPs that the user had it install."""

from __future__ import annotations

import os
from pathlib import Path


def fvp_root() -> Path:
    """The default folder of installed FVPs, ``<board>/<version>/`` below it; need not exist (XDG base directory
    specification: $XDG_DATA_HOME, else ~/.local/share)."""
    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser(
        "~/.local/share"
    )  # never fails, as Path.home() does
    return Path(base).absolute() / "ethosu-sdk" / "fvp"
