"""The page of a sweep: one HTML file with the verdict, every cell, and what draws and sorts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ethosu_sdk.errors import InputError
from ethosu_sdk.files import writing
from ethosu_sdk.page import drawing
from ethosu_sdk.records.sweep import Sweep

FILE_NAME = "index.html"
_TOO_LARGE = "a number in the results of the sweep is too large to be drawn"


def require() -> None:
    """ToolError when the libraries that draw pages are not installed."""
    drawing.require()


def write(folder: Path, record: Sweep, rows: Sequence[Mapping[str, object]]) -> Path:
    """The page about `rows`, written into `folder`; `record` has name, verdict and provenance of the sweep."""
    require()
    from ethosu_sdk.sweep.page import content

    try:
        text = content.render(folder, record, rows)
    except OverflowError as error:
        raise InputError(_TOO_LARGE) from error
    path = folder / FILE_NAME
    writing.write_bytes(path, text.encode())
    return path
