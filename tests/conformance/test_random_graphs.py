"""Random convolutions and pools, compiled by Vela in this process, against the TOSA reference model: shapes, strides,
dilations, paddings, scales and weights."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings, strategies as st

from ethosu_sdk import npu
from tests.conformance.comparison import random_inputs
from tests.conformance.lower import compile_for
from tests.conformance.selection import FULL, TARGETS
from tests.conformance.tosa_graph import Graph
from tests.oracles.tosa import TosaModel

pytestmark = pytest.mark.torch

CONVOLUTION, DEPTHWISE, MAX_POOL, AVERAGE_POOL = "CONV2D", "DEPTHWISE_CONV2D", "MAX_POOL2D", "AVG_POOL2D"
_ROUNDINGS = ("SINGLE_ROUND", "DOUBLE_ROUND")
Pair = tuple[int, int]


@dataclass(frozen=True)
class Window:
    """One axis of a kernel that moves over a feature map."""

    kernel: int
    stride: int
    dilation: int
    pad: Pair
    ofm: int

    @property
    def ifm(self) -> int:
        """The size of the IFM that gives exactly `ofm` results, as TOSA demands."""
        return (self.ofm - 1) * self.stride + (self.kernel - 1) * self.dilation + 1 - sum(self.pad)


@dataclass(frozen=True)
class Layer:
    """A convolution or pool, `vertical` and `horizontal`, of `dtype` values."""

    kind: str
    dtype: str
    vertical: Window
    horizontal: Window
    ifm_channels: int
    ofm_channels: int
    zero_points: Pair
    scale: Pair  # multiplier and shift
    per_channel: bool
    rounding: str
    weight_seed: int
    zero_weights: float


@st.composite
def windows(draw: st.DrawFn, *, convolves: bool) -> Window:
    """A window with at least one element of the IFM."""
    kernel = draw(st.integers(1, 7))
    stride = draw(st.integers(1, 3))
    dilation = draw(st.integers(1, 2)) if convolves else 1
    widest = (kernel - 1) * dilation if convolves else (kernel - 1) // 2
    pad = (draw(st.integers(0, widest)), draw(st.integers(0, widest)))
    window = Window(kernel, stride, dilation, pad, 1)
    smallest = max(0, -(-(1 - window.ifm) // stride)) + 1
    return Window(kernel, stride, dilation, pad, smallest + draw(st.integers(0, 9)))


@st.composite
def graphs(draw: st.DrawFn) -> Layer:
    """Any layer that TOSA allows and whose compiled form is small."""
    kind = draw(st.sampled_from((CONVOLUTION, DEPTHWISE, MAX_POOL, AVERAGE_POOL)))
    dtype = draw(st.sampled_from(("INT8", "INT8", "INT16")))
    convolves = kind in (CONVOLUTION, DEPTHWISE)
    channels = draw(st.integers(1, 70))
    wide = dtype == "INT16"
    zero = st.just(0) if wide else st.integers(-128, 127)
    return Layer(
        kind,
        dtype,
        draw(windows(convolves=convolves)),
        draw(windows(convolves=convolves)),
        channels,
        draw(st.integers(1, 90)) if kind == CONVOLUTION else channels,
        (draw(zero), draw(zero)),
        (
            draw(st.integers(1 << 14, (1 << 15) - 1) if wide else st.integers(1 << 30, (1 << 31) - 1)),
            draw(st.integers(18, 34) if wide else st.integers(34, 46)),
        ),
        draw(st.booleans()),
        "SINGLE_ROUND" if wide else draw(st.sampled_from(_ROUNDINGS)),
        draw(st.integers(0, 1 << 16)),
        draw(st.sampled_from((0.0, 0.5, 0.95))),
    )


def serialized(layer: Layer) -> bytes:
    """The layer as a TOSA flatbuffer."""
    graph = Graph()
    rows, columns = layer.vertical, layer.horizontal
    ifm = graph.input((1, rows.ifm, columns.ifm, layer.ifm_channels), layer.dtype)
    if layer.kind in (CONVOLUTION, DEPTHWISE):
        return graph.finish(_convolved(graph, layer, ifm))
    shape = (1, rows.ofm, columns.ofm, layer.ofm_channels)
    options: dict[str, Any] = {
        "kernel": [rows.kernel, columns.kernel],
        "stride": [rows.stride, columns.stride],
        "pad": [*rows.pad, *columns.pad],
    }
    if layer.kind == MAX_POOL:
        return graph.finish(
            graph.add(MAX_POOL, [ifm], shape, layer.dtype, nan_mode=graph.nan_mode(), **options)
        )
    zeros = [graph.constant([1], layer.dtype, [zero]) for zero in layer.zero_points]
    return graph.finish(
        graph.add(AVERAGE_POOL, [ifm, *zeros], shape, layer.dtype, acc_type=graph.ts.DType.INT32, **options)
    )


def _convolved(graph: Graph, layer: Layer, ifm: Any) -> Any:
    rows, columns = layer.vertical, layer.horizontal
    generator = np.random.default_rng(layer.weight_seed)
    kernel = (rows.kernel, columns.kernel)
    shape = (
        (*kernel, layer.ifm_channels, 1)
        if layer.kind == DEPTHWISE
        else (layer.ofm_channels, *kernel, layer.ifm_channels)
    )
    weights = generator.integers(-127, 128, shape) * (generator.random(shape) >= layer.zero_weights)
    accumulator = "INT48" if layer.dtype == "INT16" else "INT32"
    biases = generator.integers(-5000, 5001, layer.ofm_channels)
    operands = [
        ifm,
        graph.constant(shape, "INT8", weights.reshape(-1).tolist()),
        graph.constant([layer.ofm_channels], accumulator, biases.tolist()),
        graph.constant([1], layer.dtype, [layer.zero_points[0]]),
        graph.constant([1], "INT8", [0]),
    ]
    sums = graph.add(
        layer.kind,
        operands,
        (1, rows.ofm, columns.ofm, layer.ofm_channels),
        accumulator,
        pad=[*rows.pad, *columns.pad],
        stride=[rows.stride, columns.stride],
        dilation=[rows.dilation, columns.dilation],
        local_bound=False,
        acc_type=getattr(graph.ts.DType, accumulator),
    )
    multiplier, shift = layer.scale
    count = layer.ofm_channels if layer.per_channel else 1
    scales = [(multiplier, shift + int(extra)) for extra in generator.integers(0, 3, count)]
    return graph.rescale(sums, layer.dtype, scales, (0, layer.zero_points[1]), layer.rounding)


EXAMPLES = 400 if FULL else 25
PARTS = 8 if FULL else 1  # of which each runs as a test of its own
# Vela refuses what the NPU cannot do.
_REFUSALS = ("could not run on NPU",)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("profile", TARGETS)
def test_outputs_equal_the_reference(tosa: TosaModel, profile: str, part: int) -> None:
    compared = 0

    @seed(part)  # the same examples in every run, others in every part
    @settings(
        max_examples=EXAMPLES // PARTS,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(layer=graphs(), target=st.sampled_from(TARGETS[profile]), inputs_seed=st.integers(0, 99))
    def compare(layer: Layer, target: str, inputs_seed: int) -> None:
        nonlocal compared
        graph = serialized(layer)
        try:
            payload = compile_for(target, graph).payload
        except RuntimeError as error:
            if any(text in str(error) for text in _REFUSALS):
                return
            raise
        program = npu.load(payload)
        inputs = random_inputs(graph, program.blocks.inputs, inputs_seed, (0, 0))
        (expected,) = tosa.run(graph, inputs)
        (output,) = npu.run(program, inputs).outputs
        np.testing.assert_array_equal(output.reshape(-1), expected.reshape(-1))
        compared += 1

    compare()
    assert compared > EXAMPLES // PARTS / 2, "Vela refuses most of the layers"
