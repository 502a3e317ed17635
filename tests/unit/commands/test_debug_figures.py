"""Figures and findings of `debug`, with numbers worked out by hand."""

import math
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.aot.facts.layers import LayerValue
from ethosu_sdk.records.compile import Delegate, DelegateFiles
from ethosu_sdk.steps.debug import figures, findings
from ethosu_sdk.steps.debug.figures import Distance, Own
from ethosu_sdk.steps.debug.findings import BITS, CALIBRATION, FLOAT, QUANTISED
from ethosu_sdk.steps.debug.gathering import Gathered
from ethosu_sdk.steps.debug.layers import Layer
from ethosu_sdk.steps.debug.notes import DelegateNotes


def test_a_range_with_both_limits() -> None:
    found = figures.value_range(np.array([-128, -128, 0, 127], np.int8))
    assert (found.least, found.largest, found.distinct) == (-128, 127, 3)
    assert (found.low_share, found.high_share, found.used_share) == (0.5, 0.25, 1.0)
    assert figures.value_range(np.array([-1, 2], np.int16)).used_share == 4 / 65536


def test_a_distance() -> None:
    found = figures.distance(np.array([3.0, 5.0]), np.array([3.0, 4.0]), 0.5)
    assert found.sqnr_db == pytest.approx(10 * math.log10(25 / 1))
    assert (found.differing, found.largest_error, found.mean_error) == (1, 1.0, 0.5)
    assert found.bounded_db == pytest.approx(found.sqnr_db)
    equal = figures.distance(np.array([3.0, 4.0]), np.array([3.0, 4.0]), 0.5)
    assert equal.sqnr_db == math.inf
    assert equal.bounded_db == pytest.approx(10 * math.log10(12.5 / (0.25 / 12)))


def test_a_tensors_own_loss_is_rounding_or_clipping() -> None:
    found = figures.own(np.array([1.25, -2.0]), 0.5, 0, "int8")
    assert found is not None
    assert found.rounding_db == pytest.approx(10 * math.log10((1.25**2 + 4) / 0.25**2))
    assert found.clipping_db == math.inf
    clipped = figures.own(np.array([100.0, 1.0]), 0.5, 0, "int8")
    assert clipped is not None
    assert clipped.clipping_db == pytest.approx(10 * math.log10((100**2 + 1) / (100 - 63.5) ** 2))
    assert clipped.rounding_db == math.inf
    assert figures.own(np.zeros(3), 0.5, 0, "int8") is None


@pytest.mark.parametrize(
    ("shape", "wanted", "orders"),
    [
        ((1, 3, 4, 5), (1, 4, 5, 3), [(0, 2, 3, 1)]),
        ((1, 3, 4, 4), (1, 4, 4, 3), [(0, 2, 3, 1), (0, 3, 2, 1)]),
        ((1, 6), (6, 1, 1, 1), [(0, 1)]),
        ((2, 12), (4, 6), [(0, 1)]),
        ((1, 4, 6), (8, 3), [(0, 1, 2), (0, 2, 1)]),
        ((2, 3), (7,), []),
    ],
)
def test_orders_of_axes(
    shape: tuple[int, ...], wanted: tuple[int, ...], orders: list[tuple[int, ...]]
) -> None:
    assert list(figures.arrangements(shape, wanted)) == orders


def layer(index: int, name: str, db: float, steps: float = 9.0, **more: Any) -> Layer:
    value = LayerValue(name, "aten.conv2d", 1.0, 0, more.pop("dtype", "int8"), True, None)
    distance = Distance(4, 1, db, db, 1.0, steps, 0.0)
    return Layer(
        index,
        0,
        name,
        Gathered(name, None, "", ()),
        None,
        None,
        value=value,
        quantised=distance,
        float_=distance,
        **more,
    )


def test_names_of_others_become_names_of_arrays() -> None:
    assert layer(7, "a/b ä\n..\x1b[31m", 9.0).dump_name == "layer007_a_b___..__31m"
    assert len(layer(0, "x" * 100_000, 9.0).dump_name) < 200


DELEGATE = Delegate(
    index=0,
    payload_sha256="",
    payload_bytes=0,
    scratch_bytes=0,
    fast_scratch_bytes=0,
    files=DelegateFiles(tosa="", summary="", per_layer="", debug=""),
    estimates=(),
    operations=(),
)


def notes(**inputs: tuple[str, ...]) -> dict[int, DelegateNotes]:
    return {0: DelegateNotes(DELEGATE, (), {}, inputs)}


def test_the_first_break_has_inputs_that_are_right() -> None:
    layers = [layer(0, "a", 50.0), layer(1, "b", 15.0), layer(2, "c", 10.0), layer(3, "d", 12.0)]
    graph = notes(b=("between",), between=("a",), c=("b",), d=("a",))  # `between` is fused, and not seen
    for against in (QUANTISED, FLOAT):
        steps = findings.steps(layers, graph, against)
        assert [row.input_db for row in steps] == [None, 50.0, 15.0, 50.0]
        first = findings.first_break(steps, 20.0, against)
        worst = findings.largest_drop(steps, against)
        assert first is not None
        assert worst is not None
        assert (first.layer.name, worst.layer.name, worst.drop_db) == ("b", "d", 38.0)
        assert findings.first_break(steps, 5.0, against) is None


def test_an_error_of_one_step_is_no_break_against_the_quantised_model() -> None:
    layers = [layer(0, "a", 60.0), layer(1, "b", 3.0, steps=1.0)]
    steps = findings.steps(layers, notes(b=("a",)), QUANTISED)
    assert findings.first_break(steps, 20.0, QUANTISED) is None
    assert findings.largest_drop(steps, QUANTISED) is None
    found = findings.first_break(findings.steps(layers, notes(b=("a",)), FLOAT), 20.0, FLOAT)
    assert found is not None
    assert found.layer.name == "b"


def test_advice_by_what_helps() -> None:
    layers = [
        layer(0, "coarse", 9.0, own=Own(20.0, math.inf)),
        layer(1, "coarser", 9.0, own=Own(10.0, math.inf)),
        layer(2, "clipped", 9.0, own=Own(45.0, 12.0)),
        layer(3, "fine", 9.0, own=Own(45.0, math.inf)),
        layer(4, "wide", 9.0, own=Own(20.0, 11.0), dtype="int16"),
        layer(5, "coarse", 9.0, own=Own(20.0, math.inf)),
    ]
    found = [(row.remedy, row.layer.name, row.sqnr_db) for row in findings.advice(layers, 30.0)]
    assert found == [
        (BITS, "coarser", 10.0),
        (BITS, "coarse", 20.0),
        (CALIBRATION, "wide", 11.0),
        (CALIBRATION, "clipped", 12.0),
    ]
