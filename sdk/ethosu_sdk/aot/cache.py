"""Where results that can be made again are kept, and how arrays get there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk import records

CACHE_VARIABLE = "ETHOSU_SDK_CACHE"


def directory(part: str) -> Path:
    """The cache folder for `part`, created: below $ETHOSU_SDK_CACHE, else the user's cache (XDG base
    directory specification)."""
    root = os.environ.get(CACHE_VARIABLE)
    if root is None:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        root = str(Path(base) / "ethosu-sdk")
    return records.make_directory(Path(root) / part)


def save_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write `arrays` as an `.npz` under exactly the name `path` (numpy would append a suffix)."""
    with path.open("wb") as stream:
        np.savez(stream, **arrays)
