"""``check-result/1``, from which schemas/check-result.v1.schema.json is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ethosu_sdk.records import common as c
from ethosu_sdk.records.build import Size
from ethosu_sdk.records.common import Derived, Part, RecordKind

CheckName = Literal[
    "npu",
    "vela",
    "system",
    "commands",
    "addresses",
    "hazards",
    "kernels",
    "data files",
    "memory",
    "reach",
    "pools",
    "place",
]


class Row(Part):
    """One thing that was looked at. `shown` is what the board would show instead of it, `way_out` what to change."""

    name: CheckName
    status: Literal["pass", "fail", "unknown"]
    detail: c.Text
    shown: c.Text | None = None
    way_out: c.Text | None = None


class File(Part):
    name: c.Text
    sha256: c.Sha256
    bytes: c.Count


class Board(Part):
    name: c.Text
    title: c.Text
    sha256: c.Sha256  #: of the pack's values
    npus: c.Some[c.Text]
    hardware: c.Untested | None = None  #: absent for a simulator, and for a board that was proved


class Check(Derived[Literal["pass", "fail"]], tag_field="schema", tag="check-result/1"):
    """What would fail on a board (`ethosu-sdk check --json`)."""

    model: File
    accelerators: tuple[c.Text, ...]  #: of the command streams
    board: Board
    checks: c.Some[Row]
    sizes: tuple[Size, ...]  #: of pools, as `export` has them
    host: c.Host


def status_is_that_of_the_checks(record: Check) -> Iterator[str]:
    """A record passes if no check fails."""
    fails = any(row.status == "fail" for row in record.checks)
    if fails != (record.status == "fail"):
        yield f"the status is {record.status}, but {'a' if fails else 'no'} check fails"


def what_fails_has_a_way_out(record: Check) -> Iterator[str]:
    """What fails says what the board shows and what to change, and nothing else does."""
    for number, row in enumerate(record.checks):
        if {row.shown is None, row.way_out is None} != {row.status != "fail"}:
            yield f"/checks/{number}: what fails, and only that, has shown and way_out"


KIND = RecordKind(Check, (status_is_that_of_the_checks, what_fails_has_a_way_out))
