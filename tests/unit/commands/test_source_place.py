"""Where in the model something is, in each of the orders that tables have."""

import pytest

from ethosu_sdk.records.common import SourceLine
from ethosu_sdk.results import source_place

FILE, NUMBER = "net.py", 12


@pytest.mark.parametrize(
    ("source", "module_first", "line_first"),
    [
        pytest.param(SourceLine(file=FILE, line=NUMBER, module="head"), "head", "net.py:12", id="both"),
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
def test_the_first_that_is_known(source: SourceLine | None, module_first: str, line_first: str) -> None:
    assert source_place.module_or_line(source) == module_first
    assert source_place.line_or_module(source) == line_first
