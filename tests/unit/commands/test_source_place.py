"""Where in the model something is, in each of the orders that tables have."""

from __future__ import annotations

import pytest

from ethosu_sdk.results import source_place

LINE = {"file": "net.py", "line": 12}


@pytest.mark.parametrize(
    ("source", "module_first", "line_first"),
    [
        pytest.param(LINE | {"module": "head"}, "head", "net.py:12", id="both"),
        pytest.param(LINE, "net.py:12", "net.py:12", id="line"),
        pytest.param({"module": "head"}, "head", "head", id="module"),
        pytest.param(LINE | {"module": ""}, "net.py:12", "net.py:12", id="the model itself"),
        pytest.param({"module": ""}, "", "", id="the model itself, no line"),
        pytest.param({}, "", "", id="nothing"),
    ],
)
def test_the_first_that_is_known(source: dict[str, object], module_first: str, line_first: str) -> None:
    row = {"source": source}
    assert source_place.module_or_line(row) == module_first
    assert source_place.line_or_module(row) == line_first


def test_a_row_without_a_source_has_no_place() -> None:
    assert source_place.module_or_line({}) == source_place.line_or_module({}) == source_place.line({}) == ""
