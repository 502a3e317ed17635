"""The processor that a program without an NPU was compiled for; the program itself does not say it."""

from __future__ import annotations

from pathlib import Path

from ethosu_sdk import pte
from ethosu_sdk.results import locations, reading as results


def of(path: Path, program: pte.Pte) -> str | None:
    """The processor that `compile` wrote down for the `program` at `path`, such as ``cortex-m85``; None where it had
    an NPU as its target, or its record is not there. InputError for a record that was changed."""
    record = locations.compile_record(path)
    if program.target() is not None or not record.is_file():
        return None
    found = results.of_program(record, program.sha256)
    return None if found is None else found.core
