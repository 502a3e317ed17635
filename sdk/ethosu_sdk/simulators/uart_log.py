"""The file that a run writes the UART's output to."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ethosu_sdk.errors import InputError
from ethosu_sdk.files import opening


@contextlib.contextmanager
def open_log(path: Path) -> Iterator[IO[bytes]]:
    """The new file at `path`, open for the time of a `with` block. InputError when it cannot be written."""
    try:
        log = opening.replacing(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    with log:
        yield log
