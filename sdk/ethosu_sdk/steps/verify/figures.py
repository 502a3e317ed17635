"""The figures of two records of the same thing, by their places in the record."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ethosu_sdk.files import hashing
from ethosu_sdk.records import Record
from ethosu_sdk.records.build import Build
from ethosu_sdk.records.run import Run

# What a run or a build that is done again must give again. Where a file lies and when it was made is no figure.
_MEMBERS = {
    Run: ("outputs", "repeats", "state", "sequence", "npu", "cpu", "memory", "operators", "pieces"),
    Build: ("sections", "kernels", "memory"),
}
# What was expected is no figure: steps are judged by a file that `verify` does not have.
_JUDGED = ("tolerance", "first_beyond", "status", "max_abs_error")
# How events were parted into groups follows from the order in which they were asked for. What the CPU did before and
# after an inference depends on how long the simulator took: interrupts of the clock, waits for the UART.
_LEFT_OUT = ("group", "groups", "outside", *_JUDGED)
_NOTHING = "nothing"
_LONGEST = 200


def of(record: Run | Build) -> Record:
    """The members of the record of a run or build that hold its figures."""
    content = record.to_json()
    return {name: content[name] for name in _MEMBERS[type(record)] if name in content}


def digest(part: Record) -> str:
    """SHA-256 over the figures in `part`."""
    return hashing.sha256_bytes(json.dumps(dict(_leaves(part))).encode())


def differences(recorded: Record, found: Record) -> Iterator[tuple[str, str, str]]:
    """The figures that are not the same: place, recorded and found."""
    ours, theirs = dict(_leaves(recorded)), dict(_leaves(found))
    for place in dict.fromkeys((*ours, *theirs)):
        values = [_text(side, place) for side in (ours, theirs)]
        if values[0] != values[1]:
            yield place, values[0], values[1]


def _text(figures: Mapping[str, Any], place: str) -> str:
    return json.dumps(figures[place])[:_LONGEST] if place in figures else _NOTHING


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if rows is None:
        yield place, value
        return
    for name, part in rows:
        if name not in _LEFT_OUT:
            yield from _leaves(part, f"{place}/{name}")
