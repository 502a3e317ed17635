"""Splits an FVP's standard output into the firmware's UART and the simulator's own lines, and finds errors in
both.
"""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from ethosu_sdk.base import error_catalogue
from ethosu_sdk.base.error_catalogue import KnownError

# The SDK's own launchers say this in answer to --version: their counters must not pass for an FVP's.
NOT_AN_FVP = "not Arm's FVP"


@dataclass(frozen=True)
class FvpOutput:
    """An FVP's output, split. `uart` is what the firmware printed, `simulator` the FVP's own lines.

    `errors` are known ones, `failures` the lines, known or not, that tell of a failure.
    """

    uart: bytes = field(repr=False)
    simulator: tuple[str, ...]
    errors: tuple[KnownError, ...]
    failures: tuple[str, ...]


@functools.cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Lines that are the firmware's, that are the simulator's, and with which its statistics begin."""
    table = tomllib.loads((Path(__file__).parent / "fvp_messages.toml").read_text(encoding="utf-8"))
    return (
        re.compile(table["payload"]),
        re.compile("|".join(table["noise"])),
        re.compile(table["statistics"]),
    )


def parted_output(output: bytes) -> FvpOutput:
    """Part the standard output of an FVP, line by line."""
    payload, noise, statistics = _patterns()
    uart: list[bytes] = []
    simulator: list[str] = []
    errors: dict[str, KnownError] = {}
    failures: list[str] = []
    in_statistics = False
    for raw in output.splitlines(keepends=True):
        line = raw.decode("utf-8", errors="replace").rstrip("\r\n\x04")
        if payload.match(line):
            uart.append(raw)
            continue
        in_statistics = in_statistics or statistics.match(line) is not None
        known = error_catalogue.in_line(line)
        grave = [error for error in known if not error.harmless]
        errors.update((error.id, error) for error in grave)
        if grave or error_catalogue.has_failure_form(line):
            failures.append(line)
        if in_statistics or noise.match(line) or any(error.area == "fvp" for error in known):
            simulator.append(line)
        else:
            uart.append(raw)
    return FvpOutput(b"".join(uart), tuple(simulator), tuple(errors.values()), tuple(failures))
