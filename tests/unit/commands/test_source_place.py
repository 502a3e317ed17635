"""Where in the model something is, as the tables name it."""

import pytest

from ethosu_sdk.records.common import SourceLine
from ethosu_sdk.results import source_place

FILE, NUMBER = "net.py", 12


@pytest.mark.parametrize(
    ("source", "short", "whole"),
    [
        pytest.param(
            SourceLine(file=FILE, line=NUMBER, function="Net.forward", module="head"),
            "head",
            "net.py:12 in Net.forward (head)",
            id="all",
        ),
        pytest.param(
            SourceLine(file=FILE, line=NUMBER, module="head"), "head", "net.py:12 (head)", id="both"
        ),
        pytest.param(SourceLine(file=FILE, line=NUMBER), "net.py:12", "net.py:12", id="line"),
        pytest.param(SourceLine(module="head"), "head", "head", id="module"),
        pytest.param(
            SourceLine(file=FILE, line=NUMBER, module=""), "net.py:12", "net.py:12", id="the model itself"
        ),
        pytest.param(SourceLine(module=""), "", "", id="the model itself, no line"),
        pytest.param(SourceLine(), "", "", id="nothing"),
        pytest.param(None, "", "", id="no source"),
    ],
)
def test_what_is_known(source: SourceLine | None, short: str, whole: str) -> None:
    assert source_place.module_or_line(source) == short
    assert source_place.place(source) == whole
