"""Figures and findings of `debug` with numbers worked out by hand, and the tensors that they come from."""

import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk.analysis import debug_command, debug_findings, layer_pairing
from ethosu_sdk.analysis.debug_findings import BITS, CALIBRATION, FAULT, TO_FLOAT, TO_QUANTISED, WEIGHTS
from ethosu_sdk.analysis.debug_layers import DebuggedLayer, DelegateNotes, Gathered, gather_tensors
from ethosu_sdk.analysis.layer_pairing import Distance, Own, Pair
from ethosu_sdk.analysis.options import DebugOptions
from ethosu_sdk.base import npz
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.compile.compile_facts import LayerValue, WeightLoss
from ethosu_sdk.compile.graphs.tosa_graph import TosaMoves
from ethosu_sdk.compile.vela_database import WrittenTensor
from ethosu_sdk.npu.memory import Written
from ethosu_sdk.npu.operation import FeatureMap, Kind
from ethosu_sdk.program import pte
from ethosu_sdk.records.compile import Delegate, DelegateFiles
from tests.conformance.tosa_graph import Graph
from tests.places import GOLDEN_PTE
from tests.tables import each
from tests.unit.npu.operations import FAR, INT8, dense, operation


def test_ranges_and_distances() -> None:
    found = layer_pairing.value_range(np.array([-128, -128, 0, 127], np.int8))
    assert (found.least, found.largest, found.distinct) == (-128, 127, 3)
    assert (found.low_share, found.high_share, found.used_share) == (0.5, 0.25, 1.0)
    assert layer_pairing.value_range(np.array([-1, 2], np.int16)).used_share == 4 / 65536
    found = layer_pairing.distance_from(np.array([3.0, 5.0]), np.array([3.0, 4.0]), 0.5)
    assert found.sqnr_db == pytest.approx(10 * math.log10(25 / 1))
    assert (found.differing, found.largest_error, found.mean_error) == (1, 1.0, 0.5)
    assert found.shown_db == 14.0
    equal = layer_pairing.distance_from(np.array([3.0, 4.0]), np.array([3.0, 4.0]), 0.5)
    assert equal.sqnr_db == equal.shown_db == math.inf


def test_a_tensors_own_loss_is_rounding_or_clipping() -> None:
    found = layer_pairing.own_quantisation_loss(np.array([1.25, -2.0]), 0.5, 0, "int8")
    assert found is not None
    assert found.rounding_db == pytest.approx(10 * math.log10((1.25**2 + 4) / 0.25**2))
    assert found.clipping_db == math.inf
    clipped = layer_pairing.own_quantisation_loss(np.array([100.0, 1.0]), 0.5, 0, "int8")
    assert clipped is not None
    assert clipped.clipping_db == pytest.approx(10 * math.log10((100**2 + 1) / (100 - 63.5) ** 2))
    assert clipped.rounding_db == math.inf
    assert layer_pairing.own_quantisation_loss(np.zeros(3), 0.5, 0, "int8") is None


@each(
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
    assert list(layer_pairing.arrangements(shape, wanted)) == orders


@pytest.mark.parametrize(
    ("shape", "wanted", "kept"),
    [
        ((1, 3, 4, 5), (1, 4, 5, 3), True),
        ((1, 6), (6, 1, 1, 1), True),
        ((4, 16, 24), (64, 1, 1, 24), True),  # a linear layer of several rows, as a convolution
        ((2, 12), (4, 6), False),
        ((1, 16, 3, 32), (2, 16, 3, 16), False),
    ],
)
def test_forms_that_are_sure(shape: tuple[int, ...], wanted: tuple[int, ...], kept: bool) -> None:
    assert layer_pairing.is_form_kept(shape, wanted) is kept


@pytest.mark.parametrize(
    ("order", "shape", "usual"),
    [
        ((0, 1, 2, 3), (1, 3, 4, 4), True),
        ((0, 2, 3, 1), (1, 3, 4, 4), True),
        ((0, 3, 2, 1), (1, 3, 4, 4), False),
        ((0, 3, 2, 1), (1, 3, 4, 1), True),  # an axis of one element has no place
        ((0, 1, 3, 2), (1, 3, 4, 4), False),
    ],
)
def test_usual_orders_of_axes(order: tuple[int, ...], shape: tuple[int, ...], usual: bool) -> None:
    assert layer_pairing.is_usual(order, shape) is usual


def layer(index: int, name: str, db: float, steps: float = 9.0, **more: Any) -> DebuggedLayer:
    weights = more.pop("weights", None)
    value = LayerValue(name, "aten.conv2d", 1.0, 0, more.pop("dtype", "int8"), True, None, weights=weights)
    distance = Distance(4, 1, db, 1.0, steps, 0.0)
    certain = more.pop("certain", True)
    return DebuggedLayer(
        index,
        0,
        name,
        Gathered(name, None, "", ()),
        None,
        None,
        value=value,
        pair=Pair(index, np.zeros(4, np.int8), None, (0,), certain=certain),
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
    graph = Graph()
    moves = TosaMoves(graph.finish(graph.input([1], "INT8")))
    return {0: DelegateNotes(DELEGATE, (), {}, inputs, (), (), moves)}


def test_the_first_break_has_inputs_that_are_right() -> None:
    layers = [layer(0, "a", 50.0), layer(1, "b", 15.0), layer(2, "c", 10.0), layer(3, "d", 12.0)]
    graph = notes(b=("between",), between=("a",), c=("b",), d=("a",))  # `between` is fused, and not seen
    for against in (TO_QUANTISED, TO_FLOAT):
        steps = debug_findings.compared_steps(layers, graph, against)
        assert [row.input_db for row in steps] == [None, 50.0, 15.0, 50.0]
        first = debug_findings.first_break(steps, 20.0, against)
        worst = debug_findings.largest_drop(steps, against)
        assert first is not None
        assert worst is not None
        assert (first.layer.name, worst.layer.name, worst.drop_db) == ("b", "d", 38.0)
        assert debug_findings.first_break(steps, 5.0, against) is None


def test_what_is_judged_is_what_is_printed_and_not_an_error_of_one_step() -> None:
    layers = [layer(0, "a", 60.0), layer(1, "b", 3.0, steps=1.0)]
    steps = debug_findings.compared_steps(layers, notes(b=("a",)), TO_QUANTISED)
    assert debug_findings.first_break(steps, 20.0, TO_QUANTISED) is None
    assert debug_findings.largest_drop(steps, TO_QUANTISED) is None
    found = debug_findings.first_break(
        debug_findings.compared_steps(layers, notes(b=("a",)), TO_FLOAT), 20.0, TO_FLOAT
    )
    assert found is not None
    assert found.layer.name == "b"
    layers = [layer(0, "a", 50.0), layer(1, "b", 19.96), layer(2, "c", 19.94)]
    steps = debug_findings.compared_steps(layers, notes(b=("a",), c=("a",)), TO_FLOAT)
    first = debug_findings.first_break(steps, 20.0, TO_FLOAT)
    assert first is not None
    assert (first.layer.name, first.output_db) == ("c", 19.9)  # 19.96 reads as 20.0


def test_what_is_equal_or_not_certain_is_not_blamed() -> None:
    layers = [
        layer(0, "a", -3.0),
        layer(1, "b", math.inf, steps=0.0),
        layer(2, "c", -3.0),
        layer(3, "d", 4.0),
    ]
    graph = notes(b=("between",), between=("a",), d=("c",))
    kept = debug_findings.without_refuted(layers, graph, 20.0)
    assert [row.quantised is not None for row in kept] == [False, True, True, True]
    assert "equals the model" in kept[0].reason
    first = debug_findings.first_break(
        debug_findings.compared_steps(kept, graph, TO_QUANTISED), 20.0, TO_QUANTISED
    )
    assert first is not None
    assert first.layer.name == "c"
    layers = [layer(0, "a", 50.0), layer(1, "b", 1.0, certain=False), layer(2, "c", 1.0)]
    layers.append(replace(layer(3, "e", 1.0).not_compared("no value"), index=3))
    graph = notes(b=("a",), c=("e",), e=("a",))
    (_, _, broken) = debug_findings.compared_steps(layers, graph, TO_QUANTISED)
    assert (
        debug_findings.first_break(
            debug_findings.compared_steps(layers, graph, TO_QUANTISED), 20.0, TO_QUANTISED
        )
        == broken
    )
    assert [row.name for row in broken.perhaps] == ["e"]


def test_the_layer_to_change_is_the_one_that_loses_by_itself() -> None:
    layers = [
        layer(0, "coarse", 21.0, own=Own(21.0, math.inf)),
        layer(1, "aside", 9.0, own=Own(9.0, math.inf)),
        layer(2, "breaks", 15.0, own=Own(45.0, math.inf), weights=WeightLoss(9, 23.0)),
    ]
    steps = debug_findings.compared_steps(layers, notes(breaks=("coarse",)), TO_FLOAT)
    found = debug_findings.first_change(None, steps, {2}, 30.0)
    assert found is not None
    assert (layers[found.layer].name, found.remedy, found.sqnr_db) == ("coarse", BITS, 21.0)
    assert debug_findings.first_change(None, steps, {2}, 15.0) is None
    fault = debug_findings.first_change(steps[2], steps, {2}, 30.0)
    assert fault is not None
    assert (layers[fault.layer].name, fault.remedy) == ("breaks", FAULT)


def test_advice_by_what_helps() -> None:
    layers = [
        layer(0, "coarse", 9.0, own=Own(20.0, math.inf)),
        layer(1, "coarser", 9.0, own=Own(10.0, math.inf)),
        layer(2, "clipped", 9.0, own=Own(45.0, 12.0)),
        layer(3, "fine", 9.0, own=Own(45.0, math.inf)),
        layer(4, "wide", 9.0, own=Own(20.0, 11.0), dtype="int16"),
        layer(5, "coarse", 9.0, own=Own(20.0, math.inf)),
        layer(6, "light", 9.0, weights=WeightLoss(4, 25.0)),
    ]
    advice = debug_findings.layer_advice(layers, 30.0)
    found = [(row.remedy, layers[row.layer].name, row.sqnr_db) for row in advice]
    assert found == [
        (BITS, "coarser", 10.0),
        (BITS, "coarse", 20.0),
        (CALIBRATION, "wide", 11.0),
        (CALIBRATION, "clipped", 12.0),
        (WEIGHTS, "light", 25.0),
    ]


# --- Tensors put together from what operations write, with places worked out by hand.

BASE = 0x100
WHOLE = np.arange(4 * 3 * 20, dtype=np.int64).reshape(1, 4, 3, 20).astype(np.int8)


def tensor(**changes: object) -> WrittenTensor:
    plain = WrittenTensor("t", (1, 4, 3, 20), "int8", False, (BASE, BASE + 4 * 3 * 20), (0, 8))
    return replace(plain, **changes)  # type: ignore[arg-type]


def nhwc(address: int) -> FeatureMap:
    return replace(dense(address, (4, 3, 20)), stride_c=1)


def bricks(address: int) -> FeatureMap:
    """Two bricks of 16 channels, three columns: 48 bytes to the next brick, 96 to the next row."""
    return FeatureMap(1, (address, 0, 0, 0), FAR, FAR, FAR, 96, 16, 48, INT8, True, 0)


def written(offset: int, ofm: FeatureMap, values: NDArray[np.int8]) -> Written:
    _, height, width, depth = values.shape
    made = operation(Kind.POOL, (height, width, depth), ofm, ofm, offset=offset)
    return Written(made, values)


def test_parts_of_every_layout_are_put_together() -> None:
    rows = [written(0, nhwc(BASE), WHOLE[:, :1]), written(8, nhwc(BASE + 60), WHOLE[:, 1:])]
    (found,) = gather_tensors(rows, [tensor()])
    np.testing.assert_array_equal(found.values, WHOLE)
    assert found.offsets == (0, 8)
    channels = [written(0, nhwc(BASE), WHOLE[..., :7]), written(8, nhwc(BASE + 7), WHOLE[..., 7:])]
    (found,) = gather_tensors(channels, [tensor()])
    np.testing.assert_array_equal(found.values, WHOLE)
    owner = tensor(bricks=True, span=(BASE, BASE + 4 * 96))
    parts = [written(0, bricks(BASE), WHOLE[..., :16]), written(8, bricks(BASE + 48), WHOLE[..., 16:])]
    (found,) = gather_tensors(parts, [owner])
    np.testing.assert_array_equal(found.values, WHOLE)
    owner = tensor(bricks=True, span=(BASE, BASE + 2 * 96), offsets=(0, 4, 8, 12))
    parts = [written(4 * row, bricks(BASE + row % 2 * 96), WHOLE[:, row : row + 1]) for row in range(4)]
    (found,) = gather_tensors(parts, [owner])
    np.testing.assert_array_equal(found.values, WHOLE)
    ofm = replace(nhwc(BASE), bases=(BASE, 0, BASE + 120, 0), height0=2)
    right = replace(ofm, bases=(BASE + 10, 0, BASE + 130, 0))
    (found,) = gather_tensors(
        [written(0, ofm, WHOLE[..., :10]), written(8, right, WHOLE[..., 10:])], [tensor()]
    )
    np.testing.assert_array_equal(found.values, WHOLE)
    old = written(0, nhwc(BASE), np.zeros_like(WHOLE))
    new = [written(0, nhwc(BASE), WHOLE[:, :2]), written(8, nhwc(BASE + 120), WHOLE[:, 2:])]
    (found,) = gather_tensors([old, *new], [tensor()])
    np.testing.assert_array_equal(found.values, WHOLE)


def test_steps_that_lie_elsewhere_are_inner_ones() -> None:
    inner = written(0, nhwc(BASE + 0x1000), WHOLE)
    last = written(8, nhwc(BASE), WHOLE)
    (found,) = gather_tensors([inner, last], [tensor(offsets=(8,))])
    assert (found.inner, found.offsets) == (1, (8,))
    steps = [written(0, nhwc(BASE), WHOLE[:, :2]), written(8, nhwc(BASE + 120), WHOLE[:, 2:])]
    (found,) = gather_tensors(steps, [tensor(offsets=(8,))])  # of many operations, Vela names the last
    assert (found.inner, found.offsets) == (0, (0, 8))
    np.testing.assert_array_equal(found.values, WHOLE)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([written(0, nhwc(BASE), WHOLE[:, :2])], "50.0%"),
        ([written(0, nhwc(BASE - 60), WHOLE[:, :2]), written(8, nhwc(BASE), WHOLE)], "outside"),
        ([written(0, nhwc(BASE + 180), WHOLE[:, :2]), written(8, nhwc(BASE), WHOLE)], "outside"),
        ([written(0, bricks(BASE), WHOLE[:, :2]), written(8, nhwc(BASE), WHOLE)], "another layout"),
    ],
    ids=["a half", "before", "behind", "layout"],
)
def test_what_does_not_fit_has_no_values_and_a_reason(parts: list[Written], reason: str) -> None:
    (found,) = gather_tensors(parts, [tensor()])
    assert found.values is None
    assert reason in found.reason


def test_without_a_debug_database_each_operation_is_an_entry() -> None:
    rows = [written(0, nhwc(BASE), WHOLE[:, :1]), written(8, nhwc(BASE + 60), WHOLE[:, 1:])]
    assert [(row.name, row.offsets) for row in gather_tensors(rows, [])] == [("", (0,)), ("", (8,))]


# --- Inputs of `debug`: those of several inferences are refused by the name of the file that they are in.


@pytest.mark.parametrize("given", [None, "two.npz"])
def test_stacked_inputs_are_named(given: str | None, tmp_path: Path) -> None:
    path = shutil.copy(GOLDEN_PTE / "add_u55.pte", tmp_path / "add.pte")
    program = pte.read(path)
    arrays = {
        f"input{index}": np.zeros((2, *tensor.sizes), tensor.dtype)
        for index, tensor in enumerate(program.plan("forward").input_tensors())
    }
    name = given or "add.io.npz"
    npz.write_npz(tmp_path / name, arrays)
    options = DebugOptions(inputs=None if given is None else tmp_path / given)
    with pytest.raises(InputError) as caught:
        debug_command._inputs(path, None, program, options, Reporter(quiet=True))
    assert "the inputs of one inference, not 2" in caught.value.message
    assert name in caught.value.message
    assert "None" not in caught.value.message
