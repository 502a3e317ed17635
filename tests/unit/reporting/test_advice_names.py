"""Modules are called as their model wants it: in the lines that `advise` gives a name is a text, and never code."""

import ast
import dataclasses
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ethosu_sdk.records import kinds
from ethosu_sdk.records.common import Metric
from ethosu_sdk.records.debug import Comparison, Debug, Layer
from ethosu_sdk.records.profile import Operation
from ethosu_sdk.reporting.advise import npu_rules
from ethosu_sdk.reporting.advise.advice_facts import Facts
from ethosu_sdk.reporting.advise.replacements import REPLACEMENTS
from tests.records import example
from tests.tables import each

Record = dict[str, Any]

PROFILE = kinds.PROFILE.convert(example("profile-digits_cnn"))
DEBUG = kinds.DEBUG.convert(example("debug-wrong-scale"))

NAMES = (
    "head",
    'a")\nimport os\n("',
    "a')\nimport os\n('",
    "a\\",
    "a\nimport os",
    "a\rimport os",
    "\ud800\u2028",
)
DISTANCE = {"elements": 1, "differing": 0}
LAYER = {
    **{
        "name": "layer000_t",
        "delegate": 0,
        "tensor": "t",
        "operations": {"names": ["CONV2D"], "offsets": [0]},
    },
    **{"shape": [1], "dtype": "int8", "zero_point": 0},
}
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


def _operation(index: int, row: Record) -> Operation:
    whole = {"index": index, "instruction": 0, "calls": 1, "runs_on": "NPU", "name": "CONV2D", "kind": "conv"}
    return msgspec.convert({**whole, "delegate": 0, "cycles": CYCLES, **row}, Operation)


def _facts(*rows: Record, debug: Debug | None = None) -> Facts:
    cycles = msgspec.convert([{**CYCLES[0], "value": 100 * len(rows)}], tuple[Metric, ...])
    totals = replace(PROFILE.totals, npu=replace(PROFILE.totals.npu, cycles=cycles))
    operations = tuple(_operation(*row) for row in enumerate(rows))
    return Facts(replace(PROFILE, operations=operations, totals=totals), debugging=debug)


@each("name", NAMES)
@each("kind", REPLACEMENTS)
@each("shape", [(1, 8, 1, 1), (1, 8, 2, 2)])
def test_replaced_modules(kind: str, name: str, shape: tuple[int, ...]) -> None:
    row = {"reason": "stride <= 3, got [4, 4]", "shapes": {"ofm": shape}}
    lines = REPLACEMENTS[kind].lines(name, [_operation(0, row)])
    assert lines is not None
    assert _texts(lines) == {name}


@each("name", NAMES)
def test_a_linear_layer_that_becomes_a_convolution(name: str) -> None:
    rows = [
        {"shapes": {"ofm": (4, 4, 8)}},
        {"tosa": {"index": 0, "operator": "TRANSPOSE"}},
        {
            "shapes": {"ifm": (1, 1, 128), "ofm": (1, 1, 10)},
            "source": {"module": name, "module_type": "Linear"},
        },
    ]
    (advice,) = npu_rules.flatten_as_convolution(_facts(*rows))
    assert _texts(advice.code) == {name}


@each("name", NAMES)
def test_sixteen_bits(name: str) -> None:
    layers = [
        {"float": {**DISTANCE, "sqnr_db": 40.0}, "source": {"module": f"before {name}"}},
        {"quantised": DISTANCE, "source": {"module": name}},
    ]
    step = {"layer": 1, "tensor": "t", "input_db": 40.0, "reliable_input_db": 40.0, "output_db": 10.0}
    debug = replace(
        DEBUG,
        layers=tuple(msgspec.convert({**LAYER, "index": n, **row}, Layer) for n, row in enumerate(layers)),
        comparisons=(msgspec.convert({"against": "float", "layers": 2, "first_break": step}, Comparison),),
    )
    (advice,) = npu_rules.sixteen_bits(_facts(debug=debug))
    assert _texts(advice.code) == {f"before {name}", name}


@each("name", NAMES)
def test_channels_are_a_comment(name: str) -> None:
    row = {
        **{"kind": "conv", "scheduled": 0, "bound_by": "MAC unit"},
        **{"shapes": {"ofm": (8, 8, 25)}, "source": {"module": name}},
    }
    (advice,) = npu_rules.channel_steps(dataclasses.replace(_facts(row), channel_step=8))
    assert _texts(advice.code) == set()
