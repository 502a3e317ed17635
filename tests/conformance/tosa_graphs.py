"""Hand-built TOSA graphs whose arithmetic meets what random models never do: exact half-way ties, shifts above 31.

Quantised models scale by 31-bit multipliers, which practically never leave a remainder of exactly one half. These
graphs scale by powers of two, so that every odd value is a tie. This file holds those whose point is the scaling;
tosa_operators.py those of other operators.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.conformance.models.case import BOTH, U85
from tests.conformance.tosa_graph import Graph, Scale

Range = tuple[int, int]
SHAPE = (1, 6, 5, 11)
_SEED = 3


@dataclass(frozen=True)
class Tie:
    """A graph: `make()` builds it. `profiles` are those whose NPUs run it; `ranges` limit its int32 inputs."""

    make: Callable[[], bytes]
    profiles: tuple[str, ...] = BOTH
    ranges: Range = (-(1 << 15), (1 << 15) - 1)


def built(build: Callable[[Graph], Any]) -> Callable[[], bytes]:
    """A graph whose outputs are what `build` returns: a tensor or several."""

    def make() -> bytes:
        graph = Graph()
        outputs = build(graph)
        return graph.finish(*(outputs if isinstance(outputs, tuple) else (outputs,)))

    return make


def rescaled(
    source: str,
    target: str,
    scales: Sequence[Scale],
    zero_points: tuple[int, int] = (0, 0),
    rounding: str = "SINGLE_ROUND",
) -> Callable[[], bytes]:
    """A single RESCALE."""
    return built(
        lambda graph: graph.rescale(graph.input(SHAPE, source), target, scales, zero_points, rounding)
    )


def weights(graph: Graph, shape: Sequence[int]) -> Any:
    """Small random weights."""
    import numpy as np

    values = np.random.default_rng(_SEED).integers(-9, 10, tuple(shape))
    return graph.constant(shape, "INT8", values.reshape(-1).tolist())


def convolution(
    kind: str, rounding: str = "SINGLE_ROUND", ifm: str = "INT8", kernel: int = 3
) -> Callable[[], bytes]:
    """A convolution that keeps the size, its channels scaled by 2^-3 to 2^-8: ties in every channel.

    `kind` is CONV2D or DEPTHWISE_CONV2D. Of int16 values TOSA makes 48-bit sums, scaled by 16-bit multipliers.
    """
    channels = SHAPE[3]
    wide = ifm == "INT16"
    accumulator = "INT48" if wide else "INT32"
    depthwise = kind.startswith("DEPTHWISE")
    shape = (kernel, kernel, channels, 1) if depthwise else (channels, kernel, kernel, channels)
    offsets = [4 * channel - 20 for channel in range(channels)]

    def build(graph: Graph) -> Any:
        operands = [
            graph.input(SHAPE, ifm),
            weights(graph, shape),
            graph.constant([channels], accumulator, offsets),
            graph.constant([1], ifm, [0 if wide else 3]),
            graph.constant([1], "INT8", [0]),
        ]
        sums = graph.add(
            kind,
            operands,
            SHAPE,
            accumulator,
            pad=[kernel // 2] * 4,
            stride=[1, 1],
            dilation=[1, 1],
            local_bound=False,
            acc_type=getattr(graph.ts.DType, accumulator),
        )
        scales = [
            (1 << 14, 16 + channel % 6) if wide else (1 << 30, 33 + channel % 6)
            for channel in range(channels)
        ]
        return graph.rescale(sums, ifm, scales, (0, 0 if wide else -2), rounding)

    return built(build)


def layer(graph: Graph, kind: str, value: Any, channels: int, kernel: int) -> Any:
    """A convolution of int8 values that keeps the plane's size; `kind` as for :func:`convolution`."""
    depth = value.shape[-1]
    shape = (kernel, kernel, depth, 1) if kind.startswith("DEPTHWISE") else (channels, kernel, kernel, depth)
    operands = [
        value,
        weights(graph, shape),
        graph.constant([channels], "INT32", range(channels)),
        *(graph.constant([1], "INT8", [0]) for _ in range(2)),
    ]
    options = {"pad": [kernel // 2] * 4, "stride": [1, 1], "dilation": [1, 1], "local_bound": False}
    sums = graph.add(
        kind, operands, (*value.shape[:-1], channels), "INT32", **options, acc_type=graph.ts.DType.INT32
    )
    return graph.rescale(sums, "INT8", [(1 << 30, 36)])


def clamped(graph: Graph, value: Any, low: int, high: int, dtype: str = "INT8") -> Any:
    """CLAMP."""
    size = {"INT8": 1, "INT16": 2}[dtype]
    minimum, maximum = (list(limit.to_bytes(size, "little", signed=True)) for limit in (low, high))
    limits = {"min_val": minimum, "max_val": maximum}
    return graph.add("CLAMP", [value], value.shape, dtype, **limits, nan_mode=graph.nan_mode())


def looked_up(graph: Graph, value: Any) -> Any:
    """TABLE of int8 values."""
    entries = graph.constant([256], "INT8", [(7 * index) % 200 - 100 for index in range(256)])
    return graph.add("TABLE", [value, entries], value.shape, "INT8")


def average_pool(kernel: int, pad: int, edges: tuple[int, int], dtype: str = "INT8") -> Callable[[], bytes]:
    """An average of 4 or 9 values, also at padded borders, where TOSA divides by fewer."""
    zero_points = (5, -7) if dtype == "INT8" else (0, 0)

    def build(graph: Graph) -> Any:
        size = [(edge + 2 * pad - kernel) // kernel + 1 for edge in edges]
        return graph.add(
            "AVG_POOL2D",
            [
                graph.input((1, *edges, 11), dtype),
                *(graph.constant([1], dtype, [zero]) for zero in zero_points),
            ],
            (1, *size, 11),
            dtype,
            kernel=[kernel, kernel],
            stride=[kernel, kernel],
            pad=[pad] * 4,
            acc_type=graph.ts.DType.INT32,
        )

    return built(build)


def combined(op: str, dtype: str, rounding: str, shifts: tuple[int, int, int]) -> Callable[[], bytes]:
    """ADD or SUB of two inputs on a common int32 scale, scaled back: the result's ties.

    `shifts` belong to multipliers of 2^30. The operand with the larger scale is multiplied by exactly 2^19 (int8)
    or 2^14 (int16), as ExecuTorch 1.5.1 does: Vela 5.1.0 relies on it, since on Ethos-U55 the operand that it does
    not scale itself is shifted so by the hardware.
    """
    zero_points = (4, -9, 1) if dtype == "INT8" else (0, 0, 0)

    def build(graph: Graph) -> Any:
        left, right = (
            graph.rescale(graph.input(SHAPE, dtype), "INT32", [(1 << 30, shift)], (zero, 0), rounding)
            for shift, zero in zip(shifts[:2], zero_points[:2], strict=True)
        )
        total = graph.add(op, [left, right], SHAPE, "INT32")
        return graph.rescale(total, dtype, [(1 << 30, shifts[2])], (0, zero_points[2]), rounding)

    return built(build)


def product(dtype: str, shift: int, rounding: str) -> Callable[[], bytes]:
    """Two inputs multiplied and scaled back."""

    def build(graph: Graph) -> Any:
        operands = [graph.rescale(graph.input(SHAPE, dtype), "INT32", [(1 << 30, 30)]) for _ in range(2)]
        result = graph.add("MUL", [*operands, graph.constant([1], "INT8", [0])], SHAPE, "INT32")
        return graph.rescale(result, dtype, [(1 << 30, shift)], rounding=rounding)

    return built(build)


_INT32 = (-(1 << 31), (1 << 31) - 1)
_ROUNDINGS = ("SINGLE_ROUND", "DOUBLE_ROUND")
# From, to, shift of a multiplier of 2^30, range of an int32 input that leaves some of the results unsaturated.
_RESCALES: tuple[tuple[str, str, int, Range], ...] = (
    ("INT8", "INT8", 31, (0, 0)),
    ("INT8", "INT8", 33, (0, 0)),
    ("INT16", "INT8", 38, (0, 0)),
    ("INT32", "INT8", 40, (-(1 << 18), 1 << 18)),
    ("INT32", "INT8", 52, (-(1 << 30), 1 << 30)),
    ("INT32", "INT16", 35, (-(1 << 21), 1 << 21)),
    ("INT32", "INT16", 45, _INT32),
    ("INT32", "INT32", 31, (-(1 << 30), (1 << 30) - 1)),
    ("INT32", "INT32", 32, _INT32),
    ("INT32", "INT32", 38, _INT32),
    ("INT8", "INT32", 33, (0, 0)),
    ("INT8", "INT16", 31, (0, 0)),
    ("INT16", "INT32", 34, (0, 0)),
    ("INT16", "INT16", 32, (0, 0)),
)

SCALING: Mapping[str, Tie] = {
    **{
        f"rescale_{source}_{target}_{rounding}_{shift}".lower(): Tie(
            rescaled(source, target, [(1 << 30, shift)], rounding=rounding), ranges=ranges
        )
        for source, target, shift, ranges in _RESCALES
        for rounding in _ROUNDINGS
    },
    "rescale_zero_points": Tie(rescaled("INT8", "INT8", [(1 << 30, 32)], (-11, 23))),
    "rescale_per_channel": Tie(
        rescaled("INT32", "INT8", [(1 << 30, 33 + channel) for channel in range(SHAPE[3])], (0, 5))
    ),
    "rescale_per_channel_double_round": Tie(
        rescaled(
            "INT32", "INT8", [(1 << 30, 33 + channel) for channel in range(SHAPE[3])], (0, 5), "DOUBLE_ROUND"
        )
    ),
    "convolution_ties": Tie(convolution("CONV2D")),
    "convolution_double_round": Tie(convolution("CONV2D", "DOUBLE_ROUND")),
    "convolution_1x1_ties": Tie(convolution("CONV2D", kernel=1)),
    "convolution_int16_ties": Tie(convolution("CONV2D", ifm="INT16")),
    "depthwise_ties": Tie(convolution("DEPTHWISE_CONV2D")),
    "depthwise_double_round": Tie(convolution("DEPTHWISE_CONV2D", "DOUBLE_ROUND")),
    "depthwise_int16_ties": Tie(convolution("DEPTHWISE_CONV2D", ifm="INT16")),
    "average_2x2": Tie(average_pool(2, 0, (8, 12))),
    "average_2x2_padded": Tie(average_pool(2, 1, (8, 12))),
    "average_3x3_padded": Tie(average_pool(3, 1, (7, 13))),
    "average_4x4_padded": Tie(average_pool(4, 2, (8, 12)), U85),
    "average_2x2_int16": Tie(average_pool(2, 0, (8, 12), "INT16")),
    "average_2x2_padded_int16": Tie(average_pool(2, 1, (8, 12), "INT16")),
    "add_ties": Tie(combined("ADD", "INT8", "SINGLE_ROUND", (11, 12, 50))),
    "add_double_round": Tie(combined("ADD", "INT8", "DOUBLE_ROUND", (11, 12, 50))),
    "add_other_operand": Tie(combined("ADD", "INT8", "SINGLE_ROUND", (13, 11, 51))),
    "subtract_ties": Tie(combined("SUB", "INT8", "SINGLE_ROUND", (11, 12, 50))),
    "subtract_double_round": Tie(combined("SUB", "INT8", "DOUBLE_ROUND", (12, 11, 50))),
    "add_int16_ties": Tie(combined("ADD", "INT16", "SINGLE_ROUND", (16, 17, 46))),
    "add_int16_double_round": Tie(combined("ADD", "INT16", "DOUBLE_ROUND", (16, 17, 46))),
    "product_ties": Tie(product("INT8", 37, "SINGLE_ROUND")),
    "product_double_round": Tie(product("INT8", 37, "DOUBLE_ROUND")),
    "product_int16_ties": Tie(product("INT16", 45, "SINGLE_ROUND")),
}
