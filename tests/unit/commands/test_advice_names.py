"""Modules are called as their model wants it: in the lines that `advise` gives a name is a text, and never code."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from ethosu_sdk.readers.advise.facts import Facts
from ethosu_sdk.readers.advise.rules import channels, layout, numerics
from ethosu_sdk.readers.advise.rules.replacements import REPLACEMENTS

Record = dict[str, Any]

NAMES = (
    "head",
    'a")\nimport os\n("',
    "a')\nimport os\n('",
    "a\\",
    "a\nimport os",
    "a\rimport os",
    "\ud800\u2028",
)
CYCLES = [{"value": 100, "unit": "cycles", "source": "modelled"}]


def _texts(lines: Sequence[str]) -> set[str]:
    """The texts in `lines` of code, each of which is one line and imports nothing but ExecuTorch's quantiser."""
    assert all(len(line.splitlines()) == 1 for line in lines)
    tree = ast.parse("\n".join(lines))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    return {
        str(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def _facts(rows: list[Record], debug: Record | None = None, **profile: Any) -> Facts:
    for index, row in enumerate(rows):
        row |= {"index": index, "runs_on": "NPU", "calls": 1, "delegate": 0, "cycles": CYCLES}
    totals = {"npu": {"cycles": [{**CYCLES[0], "value": 100 * len(rows)}]}}
    return Facts({}, {"operations": rows, "totals": totals, **profile}, debug or {})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", REPLACEMENTS)
@pytest.mark.parametrize("shape", [(1, 8, 1, 1), (1, 8, 2, 2)])
def test_replaced_modules(kind: str, name: str, shape: tuple[int, ...]) -> None:
    row = {"reason": "stride <= 3, got [4, 4]", "shapes": {"ofm": shape}}
    lines = REPLACEMENTS[kind].lines(name, [row])
    assert lines is not None
    assert _texts(lines) == {name}


@pytest.mark.parametrize("name", NAMES)
def test_a_linear_layer_that_becomes_a_convolution(name: str) -> None:
    rows = [
        {"shapes": {"ofm": (4, 4, 8)}},
        {"tosa": {"operator": "TRANSPOSE"}},
        {
            "shapes": {"ifm": (1, 1, 128), "ofm": (1, 1, 10)},
            "source": {"module": name, "module_type": "Linear"},
        },
    ]
    (advice,) = layout.flatten_as_convolution(_facts(rows))
    assert _texts(advice.code) == {name}


@pytest.mark.parametrize("name", NAMES)
def test_sixteen_bits(name: str) -> None:
    layers = [
        {"float": {"sqnr_db": 40.0}, "source": {"module": f"before {name}"}},
        {"dtype": "int8", "quantised": {"differing": 0}, "source": {"module": name}},
    ]
    step = {"layer": 1, "input_db": 40.0, "output_db": 10.0}
    debug = {"layers": layers, "comparisons": [{"against": "float", "first_break": step}]}
    (advice,) = numerics.sixteen_bits(_facts([], debug))
    assert _texts(advice.code) == {f"before {name}", name}


@pytest.mark.parametrize("name", NAMES)
def test_channels_are_a_comment(name: str) -> None:
    row = {
        **{"kind": "conv", "scheduled": 0, "bound_by": "MAC unit"},
        **{"shapes": {"ofm": (8, 8, 25)}, "source": {"module": name}},
    }
    (advice,) = channels.channel_steps(dataclasses.replace(_facts([row]), channel_step=8))
    assert _texts(advice.code) == set()
