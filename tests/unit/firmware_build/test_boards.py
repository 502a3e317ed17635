"""The board table against the linker script, both ways."""

from __future__ import annotations

import itertools
import re

import pytest

from ethosu_sdk import resources
from ethosu_sdk.errors import UsageError
from ethosu_sdk.firmware_build import boards

_REGION = re.compile(r"^  (\w+)\s*\(\w+\)\s*: ORIGIN = (\w+), LENGTH = (\d+)([KM])$", re.MULTILINE)
_UNITS = {"K": 1 << 10, "M": 1 << 20}


@pytest.mark.parametrize("name", boards.BOARDS)
def test_memories_are_those_of_the_linker_script(name: str) -> None:
    script = (resources.directory("firmware") / "board" / name / "linker.ld").read_text()
    linked = {(row[0], int(row[1], 16), int(row[2]) * _UNITS[row[3]]) for row in _REGION.findall(script)}
    assert linked == {(row.name, row.origin, row.size_bytes) for row in boards.board(name).memories}


@pytest.mark.parametrize("name", boards.BOARDS)
def test_no_two_memories_overlap(name: str) -> None:
    rows = sorted(boards.board(name).memories, key=lambda row: row.origin)
    for low, high in itertools.pairwise(rows):
        assert low.origin + low.size_bytes <= high.origin
        assert not low.holds(high.origin)


def test_an_unknown_board_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="corstone-30") as caught:
        boards.board("corstone-30")
    assert "did you mean 'corstone-300'?" in caught.value.hint
