"""Where results that can be made again are kept."""

from __future__ import annotations

import os
from pathlib import Path

from ethosu_sdk import records
from ethosu_sdk.errors import BuildError

CACHE_VARIABLE = "ETHOSU_SDK_CACHE"


def directory(part: str) -> Path:
    """The cache folder for `part`, created: below $ETHOSU_SDK_CACHE, else the user's cache (XDG base
    directory specification). BuildError when it cannot be made or written."""
    root = os.environ.get(CACHE_VARIABLE)
    if root is None:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        root = str(Path(base) / "ethosu-sdk")
    hint = f"set {CACHE_VARIABLE} to a folder that can be written"
    try:
        folder = records.make_directory(Path(root).absolute() / part)
    except BuildError as error:
        raise BuildError(error.message, hint) from error
    if not os.access(folder, os.W_OK):
        raise BuildError(f"the cache folder {folder} cannot be written", hint)
    return folder
