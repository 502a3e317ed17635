"""Hand-built TOSA graphs whose arithmetic meets what random models never do: exact half-way ties, shifts above 31.

Quantised models scale by 31-bit multipliers, which practically never leave a remainder of exactly one half. These
graphs scale by powers of two, so that every odd value is a tie.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

NUMERIC = "numeric"  # the name of this group beside those of models.py
_SEED = 3


class Graph:
    """A TOSA graph under construction: every method adds an operator and returns its result's tensor."""

    def __init__(self) -> None:
        import tosa_serializer as ts

        self.ts = ts
        self._serializer = ts.TosaSerializer(targetMajor=1, targetMinor=0, targetPatch=0, targetDraft=False)
        self._count = 0

    def input(self, shape: Sequence[int], dtype: str) -> Any:
        """A new input tensor."""
        self._count += 1
        tensor = self.ts.TosaSerializerTensor(f"input{self._count}", list(shape), self._dtype(dtype))
        self._serializer.addInputTensor(tensor)
        return tensor

    def constant(self, shape: Sequence[int], dtype: str, values: Sequence[int]) -> Any:
        """A constant."""
        self._count += 1
        name = f"constant{self._count}"
        return self._serializer.addConst(list(shape), self._dtype(dtype), list(values), name=name)

    def add(self, op: str, inputs: Sequence[Any], shape: Sequence[int], dtype: str, **attributes: Any) -> Any:
        """Any operator; `attributes` are the arguments of its attribute."""
        attribute = self.ts.TosaSerializerAttribute()
        kind = "".join(word.capitalize() for word in op.split("_"))
        getattr(attribute, f"{kind}Attribute")(**attributes)
        output = self._serializer.addIntermediate(list(shape), self._dtype(dtype))
        names = [tensor.name for tensor in inputs]
        self._serializer.addOperator(getattr(self.ts.Op, op), names, [output.name], attribute)
        return output

    def rescale(
        self,
        value: Any,
        dtype: str,
        scales: Sequence[tuple[int, int]],
        zero_points: tuple[int, int] = (0, 0),
        rounding: str = "SINGLE_ROUND",
    ) -> Any:
        """RESCALE by (multiplier, shift), one pair or one per channel."""
        source = self._name(value.dtype)
        constants = [
            self.constant([len(scales)], "INT32", [multiplier for multiplier, _ in scales]),
            self.constant([len(scales)], "INT8", [shift for _, shift in scales]),
            self.constant([1], source, [zero_points[0]]),
            self.constant([1], dtype, [zero_points[1]]),
        ]
        return self.add(
            "RESCALE",
            [value, *constants],
            value.shape,
            dtype,
            scale32=True,
            rounding_mode=getattr(self.ts.RoundingMode, rounding),
            per_channel=len(scales) > 1,
            input_unsigned=False,
            output_unsigned=False,
        )

    def finish(self, *outputs: Any) -> bytes:
        """The flatbuffer with these tensors as its outputs."""
        for tensor in outputs:
            self._serializer.addOutputTensor(tensor)
        return bytes(self._serializer.serialize())

    def _dtype(self, name: str) -> Any:
        return getattr(self.ts.DType, name)

    def _name(self, dtype: Any) -> str:
        return next(name for name, member in self.ts.DType.__members__.items() if member == dtype)


_SHAPE = (1, 6, 5, 11)


def rescaled(
    source: str,
    target: str,
    scale: tuple[int, int],
    zero_points: tuple[int, int] = (0, 0),
    rounding: str = "SINGLE_ROUND",
) -> Callable[[], bytes]:
    """A single RESCALE."""

    def make() -> bytes:
        graph = Graph()
        return graph.finish(
            graph.rescale(graph.input(_SHAPE, source), target, [scale], zero_points, rounding)
        )

    return make


def convolution(depthwise: bool, rounding: str) -> Callable[[], bytes]:
    """A 3x3 convolution whose channels are scaled by 2^-3 to 2^-8: ties in every channel."""

    def make() -> bytes:
        import numpy as np

        graph = Graph()
        channels = 11
        shape = (3, 3, channels, 1) if depthwise else (channels, 3, 3, channels)
        weights = np.random.default_rng(_SEED).integers(-9, 10, shape).reshape(-1).tolist()
        value = graph.add(
            "DEPTHWISE_CONV2D" if depthwise else "CONV2D",
            [
                graph.input(_SHAPE, "INT8"),
                graph.constant(shape, "INT8", weights),
                graph.constant([channels], "INT32", [4 * channel - 20 for channel in range(channels)]),
                graph.constant([1], "INT8", [3]),
                graph.constant([1], "INT8", [0]),
            ],
            _SHAPE,
            "INT32",
            pad=[1, 1, 1, 1],
            stride=[1, 1],
            dilation=[1, 1],
            local_bound=False,
            acc_type=graph.ts.DType.INT32,
        )
        scales = [(1 << 30, 33 + channel % 6) for channel in range(channels)]
        return graph.finish(graph.rescale(value, "INT8", scales, (0, -2), rounding))

    return make


def average_pool(kernel: int, pad: int, edges: tuple[int, int]) -> Callable[[], bytes]:
    """An average of 4 or 9 values, also at padded borders, where TOSA divides by fewer."""

    def make() -> bytes:
        graph = Graph()
        size = [(edge + 2 * pad - kernel) // kernel + 1 for edge in edges]
        value = graph.add(
            "AVG_POOL2D",
            [
                graph.input((1, *edges, 11), "INT8"),
                graph.constant([1], "INT8", [5]),
                graph.constant([1], "INT8", [-7]),
            ],
            (1, *size, 11),
            "INT8",
            kernel=[kernel, kernel],
            stride=[kernel, kernel],
            pad=[pad] * 4,
            acc_type=graph.ts.DType.INT32,
        )
        return graph.finish(value)

    return make


def binary(op: str, dtype: str = "INT32", **attributes: Any) -> Callable[[], bytes]:
    """One elementwise operator on two inputs."""

    def make() -> bytes:
        graph = Graph()
        operands = [graph.input(_SHAPE, dtype), graph.input(_SHAPE, dtype)]
        if op == "MUL":
            operands.append(graph.constant([1], "INT8", [0]))
        return graph.finish(graph.add(op, operands, _SHAPE, "INT32", **attributes))

    return make


def shifted(op: str, **attributes: Any) -> Callable[[], bytes]:
    """A shift of an int32 input by constants of 0 to 31."""

    def make() -> bytes:
        graph = Graph()
        amounts = graph.constant((1, 1, 1, 11), "INT32", [0, 1, 2, 3, 5, 8, 13, 21, 30, 31, 4])
        value = graph.add(op, [graph.input(_SHAPE, "INT32"), amounts], _SHAPE, "INT32", **attributes)
        return graph.finish(value)

    return make


def leading_zeros() -> bytes:
    """CLZ of an int32 input."""
    graph = Graph()
    return graph.finish(graph.add("CLZ", [graph.input(_SHAPE, "INT32")], _SHAPE, "INT32"))


def added(rounding: str) -> Callable[[], bytes]:
    """Two int8 inputs on a common int32 scale, added, and halved: the sum's ties.

    The operand with the larger scale is multiplied by exactly 2^19, as ExecuTorch 1.5.1 does. Vela 5.1.0 relies on
    it: the operand that it does not scale itself is shifted by the hardware.
    """

    def make() -> bytes:
        graph = Graph()
        left, right = (
            graph.rescale(graph.input(_SHAPE, "INT8"), "INT32", [scale], (zero_point, 0), rounding)
            for scale, zero_point in (((1 << 30, 11), 4), ((1 << 30, 12), -9))
        )
        total = graph.add("ADD", [left, right], _SHAPE, "INT32")
        return graph.finish(graph.rescale(total, "INT8", [(1 << 30, 50)], (0, 1), rounding))

    return make


GRAPHS: Mapping[str, Callable[[], bytes]] = {
    **{
        f"rescale_{source}_{target}_{rounding}_{shift}".lower(): rescaled(
            source, target, (1 << 30, shift), rounding=rounding
        )
        for source, target, shift in (
            ("INT8", "INT8", 31),
            ("INT8", "INT8", 33),
            ("INT16", "INT8", 38),
            ("INT32", "INT8", 40),
            ("INT32", "INT16", 35),
            ("INT32", "INT32", 32),
            ("INT8", "INT32", 33),
            ("INT16", "INT16", 32),
        )
        for rounding in ("SINGLE_ROUND", "DOUBLE_ROUND")
    },
    "rescale_zero_points": rescaled("INT8", "INT8", (1 << 30, 32), (-11, 23)),
    "convolution_ties": convolution(False, "SINGLE_ROUND"),
    "convolution_double_round": convolution(False, "DOUBLE_ROUND"),
    "depthwise_ties": convolution(True, "SINGLE_ROUND"),
    "depthwise_double_round": convolution(True, "DOUBLE_ROUND"),
    "average_2x2": average_pool(2, 0, (8, 12)),
    "average_2x2_padded": average_pool(2, 1, (8, 12)),
    "average_3x3_padded": average_pool(3, 1, (7, 13)),
    "add_ties": added("SINGLE_ROUND"),
    "add_double_round": added("DOUBLE_ROUND"),
    "multiply": binary("MUL"),
    "shift_right": shifted("ARITHMETIC_RIGHT_SHIFT", round=True),
    "shift_left": shifted("LOGICAL_LEFT_SHIFT"),
    "leading_zeros": leading_zeros,
}
