"""Random .tflite models of one operator each: every operator that Vela supports, with its data.

`make(operator, seed)` gives the same model for the same seed. Scales are powers of two in two of five models, so that
sums and products meet exact halves; else they are any numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.tflite_files import Model, Tensor

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
EIGHT = ("int8", "int8", "int8", "uint8")
UP_TO_16 = (*EIGHT, "int16", "int16")


@dataclass(frozen=True)
class Case:
    """One model with one input each for its inputs."""

    operator: str
    seed: int
    model: Model
    inputs: list[Array]
    types: tuple[str, ...]

    @property
    def outputs(self) -> list[tuple[Shape, str]]:
        """Shapes and types of the model's outputs."""
        return [(tensor.shape, tensor.dtype) for _, tensor in self.model.outputs]

    @property
    def named_inputs(self) -> dict[str, Array]:
        """The inputs by the names of their tensors."""
        return {name: data for (name, _), data in zip(self.model.inputs, self.inputs, strict=True)}


class Maker:
    """A model under construction, and its random numbers."""

    def __init__(self, seed: int, operator: str) -> None:
        self.rng = np.random.default_rng([seed, *operator.encode()])
        self.model = Model()
        self.data: list[Array] = []
        self.exact = self.rng.random() < 0.4

    def pick(self, choices: Any) -> Any:
        """One of `choices`."""
        return choices[int(self.rng.integers(len(choices)))]

    def size(self, low: int, high: int) -> int:
        """A number from `low` to `high`."""
        return int(self.rng.integers(low, high + 1))

    def chance(self, share: float = 0.5) -> bool:
        """True in `share` of all cases."""
        return bool(self.rng.random() < share)

    def scale(self, dtype: str = "int8") -> float:
        """A scale of a feature map."""
        least = -6 if dtype != "int16" else -13
        if self.exact:
            return float(2.0 ** self.size(least, least + 3))
        return float(np.float32(2.0 ** float(self.rng.uniform(least, least + 3))))

    def zero_point(self, dtype: str) -> int:
        """A zero point that TFLite allows for `dtype`."""
        if dtype in ("int16", "int32"):
            return 0
        return self.size(-128, 127) if dtype == "int8" else self.size(0, 255)

    def shape(self, rank: int = 4, most: int = 12) -> Shape:
        """Of batch 1."""
        return (1, *(self.size(1, most) for _ in range(rank - 1)))

    def values(self, shape: Shape, dtype: str) -> Array:
        """Over the whole range of the type, with its ends; 32 bits stay within what sums hold."""
        limits = np.iinfo(dtype) if dtype != "int32" else np.iinfo(np.int16)
        made = self.rng.integers(limits.min, limits.max + 1, shape).astype(dtype)
        ends = self.rng.random(shape)
        made[ends < 0.02] = limits.min
        made[ends > 0.98] = limits.max
        return made

    def input(
        self, shape: Shape, dtype: str, scale: float | None = None, zero_point: int | None = None
    ) -> Tensor:
        """An input with data."""
        self.data.append(self.values(shape, dtype))
        return self.model.input(
            f"x{len(self.data)}",
            shape,
            dtype,
            self.scale(dtype) if scale is None else scale,
            self.zero_point(dtype) if zero_point is None else zero_point,
        )

    def same(self, shape: Shape, like: Tensor) -> Tensor:
        """A tensor of the quantisation of `like`."""
        return self.model.tensor(shape, like.dtype, like.scale[0], like.zero_point[0])

    def free(self, shape: Shape, dtype: str, around: float | None = None) -> Tensor:
        """A tensor of a quantisation of its own; of a scale near `around`."""
        scale = self.scale(dtype)
        if around is not None:
            factor = 2.0 ** self.size(-1, 2) if self.exact else float(self.rng.uniform(0.5, 3))
            scale = float(np.float32(around * factor))
        return self.model.tensor(shape, dtype, scale, self.zero_point(dtype))

    def numbers(self, values: Any, dtype: str = "int32") -> Tensor:
        """Constants without quantisation: axes, sizes."""
        return self.model.constant(np.array(values, dtype))


Build = Callable[[Maker], Any]


def _broadcast(m: Maker, shape: Shape) -> Shape:
    if m.chance(0.6):
        return shape
    return tuple(1 if m.chance(0.5) else n for n in shape)


def _binary(operator: str, dtypes: tuple[str, ...], same: bool = False) -> Build:
    def build(m: Maker) -> None:
        dtype = m.pick(dtypes)
        shape = m.shape(m.pick((2, 3, 4, 4)))
        first = m.input(shape, dtype)
        quantisation = (first.scale[0], first.zero_point[0]) if same or m.chance(0.25) else (None, None)
        second_shape = _broadcast(m, shape)
        if m.chance(0.2):
            second = (
                m.model.constant(m.values(second_shape, dtype), m.scale(dtype), m.zero_point(dtype))
                if not same
                else m.model.constant(m.values(second_shape, dtype), *quantisation)
            )
        else:
            second = m.input(second_shape, dtype, *quantisation)
        around = (
            first.scale[0] * second.scale[0] * 100
            if operator == "MUL"
            else max(first.scale[0], second.scale[0])
        )
        out = m.same(shape, first) if same else m.free(shape, dtype, around)
        options = (
            {}
            if operator in ("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE")
            else {"fused_activation_function": m.pick(_FUSED)}
        )
        m.model.operator(operator, [first, second], out, **options)
        m.model.output(out, name="y")

    return build


_FUSED = ("NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1")


def _unary(operator: str, dtypes: tuple[str, ...], **fixed: Any) -> Build:
    """`fixed`: the scale and zero point that TFLite wants of 8 and 16 bits: out8, out16."""

    def build(m: Maker) -> None:
        dtype = m.pick(dtypes)
        if dtype == "int16":
            shape: Shape = (1, 16, 16, m.size(1, 20))
        else:
            shape = (1, 16, 16, m.size(1, 3))
        # Vela's table of EXP overflows where the result is far above the type.
        scale = (
            float(np.float32(m.rng.uniform(0.002, 0.03))) if operator == "EXP" and dtype == "int8" else None
        )
        x = m.input(shape, dtype, scale, fixed.get("zero"))
        if dtype != "int16":
            every = np.arange(256).astype(np.uint8).view(dtype)
            m.data[-1].reshape(-1)[:256] = every
        wanted = fixed.get(dtype)
        if wanted is not None:
            out = m.model.tensor(shape, dtype, *wanted)
        elif fixed.get("same"):
            out = m.same(shape, x)
        else:
            out = m.free(shape, dtype, x.scale[0])
        options = {"alpha": float(m.pick((0.1, 0.25, 0.01, 0.5, 1.5)))} if operator == "LEAKY_RELU" else {}
        m.model.operator(operator, [x], out, **options)
        m.model.output(out, name="y")

    return build


def _weights(m: Maker, shape: Shape, axis: int, x: Tensor, bias: bool = True) -> list[Tensor]:
    channels = shape[axis]
    per_channel = m.chance(0.6) and x.dtype != "uint8"
    count = channels if per_channel else 1
    scales = 2.0 ** m.rng.integers(-8, -5, count) if m.exact else m.rng.uniform(0.003, 0.03, count)
    scales = scales.astype(np.float32)
    if x.dtype == "uint8":
        weights = m.model.constant(m.values(shape, "uint8"), float(scales[0]), m.size(0, 255), axis=axis)
    else:
        low = m.pick((-127, -127, -3))
        values = m.rng.integers(low, -low + 1, shape).astype(np.int8)
        weights = m.model.constant(values, scales, axis=axis)
    if not bias:
        return [weights]
    wide = "int64" if x.dtype == "int16" else "int32"
    values = m.rng.integers(-20000, 20000, channels).astype(wide)
    products = (np.float32(x.scale[0]) * scales).astype(np.float32)
    return [weights, m.model.constant(values, products)]


def _convolution(operator: str) -> Build:
    def build(m: Maker) -> None:
        dtype = m.pick(UP_TO_16)
        height, width = m.size(1, 16), m.size(1, 16)
        depth, channels = m.size(1, 20), m.size(1, 24)
        kernel = (m.size(1, min(5, height)), m.size(1, min(5, width)))
        stride = m.pick((1, 1, 2, 3))
        dilation = m.pick((1, 1, 1, 2)) if stride == 1 else 1
        spans = [(k - 1) * dilation + 1 for k in kernel]
        padding = "SAME" if spans[0] > height or spans[1] > width else m.pick(("SAME", "VALID"))
        x = m.input((1, height, width, depth), dtype)
        is_depthwise = operator == "DEPTHWISE_CONV_2D"
        multiplier = m.pick((1, 1, 2)) if depth == 1 else 1
        channels = depth * multiplier if is_depthwise else channels
        shape = (1, *kernel, channels) if is_depthwise else (channels, *kernel, depth)
        constants = _weights(m, shape, 3 if is_depthwise else 0, x)
        rows, columns = (
            -(-n // stride) if padding == "SAME" else (n - span) // stride + 1
            for n, span in zip((height, width), spans, strict=True)
        )
        elements = kernel[0] * kernel[1] * (1 if is_depthwise else depth)
        out = m.free((1, rows, columns, channels), dtype, x.scale[0] * float(np.sqrt(elements)))
        options = {"depth_multiplier": multiplier} if is_depthwise else {}
        m.model.operator(
            operator,
            [x, *constants],
            out,
            padding=padding,
            stride_w=stride,
            stride_h=stride,
            dilation_w_factor=dilation,
            dilation_h_factor=dilation,
            fused_activation_function=m.pick(_FUSED),
            **options,
        )
        m.model.output(out, name="y")

    return build


def _transpose_convolution(m: Maker) -> None:
    dtype = m.pick(("int8", "int8", "int16"))
    height, width, depth, channels = m.size(1, 8), m.size(1, 8), m.size(1, 16), m.size(1, 12)
    kernel, stride = m.pick(((2, 2), (3, 2), (3, 1), (4, 2)))
    padding = m.pick(("SAME", "VALID"))
    rows, columns = (n * stride if padding == "SAME" else (n - 1) * stride + kernel for n in (height, width))
    x = m.input((1, height, width, depth), dtype)
    constants = _weights(m, (channels, kernel, kernel, depth), 0, x)
    out = m.free((1, rows, columns, channels), dtype, x.scale[0] * kernel)
    m.model.operator(
        "TRANSPOSE_CONV",
        [m.numbers([1, rows, columns, channels]), constants[0], x, *constants[1:]],
        out,
        padding=padding,
        stride_w=stride,
        stride_h=stride,
        version=3,
    )
    m.model.output(out, name="y")


def _fully_connected(m: Maker) -> None:
    dtype = m.pick(UP_TO_16)
    batch, depth, channels = m.pick((1, 1, 2, 5)), m.size(1, 80), m.size(1, 40)
    x = m.input((batch, depth), dtype)
    constants = _weights(m, (channels, depth), 0, x)
    out = m.free((batch, channels), dtype, x.scale[0] * float(np.sqrt(depth)))
    m.model.operator(
        "FULLY_CONNECTED",
        [x, *constants],
        out,
        fused_activation_function=m.pick(_FUSED[:3]),
        keep_num_dims=False,
        version=4,
    )
    m.model.output(out, name="y")


def _batch_matmul(m: Maker) -> None:
    dtype = m.pick(("int8", "int8", "int16"))
    batch, rows, inner, columns = m.size(1, 4), m.size(1, 10), m.size(1, 20), m.size(1, 10)
    adj_y = m.chance(0.3)
    first = m.input((1, batch, rows, inner), dtype)
    second = m.input((1, batch, columns, inner) if adj_y else (1, batch, inner, columns), dtype)
    around = first.scale[0] * second.scale[0] * (100 if dtype == "int8" else 20000)
    out = m.free((1, batch, rows, columns), dtype, around)
    m.model.operator("BATCH_MATMUL", [first, second], out, adj_x=False, adj_y=adj_y)
    m.model.output(out, name="y")


def _pool(operator: str) -> Build:
    def build(m: Maker) -> None:
        dtype = m.pick(UP_TO_16)
        x = m.input(m.shape(4, 16), dtype)
        _, height, width, depth = x.shape
        kernel = (m.size(1, min(height, 8)), m.size(1, min(width, 8)))
        stride = m.size(1, 3)
        padding = m.pick(("SAME", "VALID"))
        rows, columns = (
            -(-n // stride) if padding == "SAME" else (n - k) // stride + 1
            for n, k in zip((height, width), kernel, strict=True)
        )
        out = m.same((1, rows, columns, depth), x)
        m.model.operator(
            operator,
            [x],
            out,
            padding=padding,
            stride_w=stride,
            stride_h=stride,
            filter_height=kernel[0],
            filter_width=kernel[1],
            fused_activation_function=m.pick(_FUSED),
        )
        m.model.output(out, name="y")

    return build


def _reduction(operator: str) -> Build:
    def build(m: Maker) -> None:
        dtype = m.pick(UP_TO_16 if operator == "MEAN" else ("int8", "int8", "int16"))
        x = m.input(m.shape(4, 10), dtype)
        # Vela 5 adds along one axis only, and takes extremes of the wrong elements where an inner axis goes.
        axes = m.pick(((1,), (2,), (3,)) if operator == "SUM" else ((1, 2), (1,), (2,), (3,), (1, 2)))
        keep = m.chance() or (operator.startswith("REDUCE") and axes[0] != 1)
        shape = tuple(1 if axis in axes else n for axis, n in enumerate(x.shape) if keep or axis not in axes)
        free = operator in ("MEAN", "SUM") and m.chance(0.6)
        out = m.free(shape, dtype, x.scale[0]) if free else m.same(shape, x)
        m.model.operator(operator, [x, m.numbers(axes)], out, keep_dims=keep)
        m.model.output(out, name="y")

    return build


def _softmax(m: Maker) -> None:
    dtype = m.pick(("int8", "int8", "uint8", "int16"))
    shape = m.pick(((m.size(1, 6), m.size(1, 60)), (1, m.size(1, 6), m.size(1, 6), m.size(1, 40))))
    x = m.input(
        shape, dtype, scale=float(np.float32(m.rng.uniform(0.01, 0.3) / (1 if dtype != "int16" else 100)))
    )
    out = m.model.tensor(
        shape, dtype, *{"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)}[dtype]
    )
    m.model.operator("SOFTMAX", [x], out, beta=float(m.pick((1.0, 1.0, 0.5, 2.0))))
    m.model.output(out, name="y")


def _resize(operator: str) -> Build:
    def build(m: Maker) -> None:
        dtype = m.pick(EIGHT if operator != "RESIZE_BILINEAR" else ("int8", "int8", "uint8", "int16"))
        factor = m.pick((2, 2, 4, 8))
        align, half = m.pick(((False, False), (False, True), (True, False)))
        x = m.input(m.shape(4, 8), dtype)
        _, height, width, depth = x.shape
        rows, columns = ((n - 1) * factor + 1 if align else n * factor for n in (height, width))
        out = m.same((1, rows, columns, depth), x)
        m.model.operator(
            operator,
            [x, m.numbers([rows, columns])],
            out,
            align_corners=align,
            half_pixel_centers=half,
            version=3,
        )
        m.model.output(out, name="y")

    return build


Arguments = tuple[Shape, list[Tensor], dict[str, Any]]  # the OFM's shape, what else is given, options


def _padded(m: Maker, operator: str, x: Tensor) -> Arguments:
    most = [0, *(max(0, min(3, n - 1)) if operator == "MIRROR_PAD" else 3 for n in x.shape[1:3]), 0]
    pads = [(m.size(0, n), m.size(0, n)) for n in most]
    shape = tuple(n + sum(pad) for n, pad in zip(x.shape, pads, strict=True))
    given = [m.numbers(pads)]
    if operator == "PADV2":
        value = np.array([m.zero_point(x.dtype)], x.dtype)
        given.append(m.model.constant(value, x.scale[0], x.zero_point[0]))
    return shape, given, {"mode": m.pick(("REFLECT", "SYMMETRIC"))} if operator == "MIRROR_PAD" else {}


def _sliced(m: Maker, operator: str, x: Tensor) -> Arguments:
    begin = [m.size(0, n - 1) for n in x.shape]
    end = [m.size(b + 1, n) for b, n in zip(begin, x.shape, strict=True)]
    shape = tuple(e - b for b, e in zip(begin, end, strict=True))
    if operator == "SLICE":
        return shape, [m.numbers(begin), m.numbers(shape)], {}
    return shape, [m.numbers(begin), m.numbers(end), m.numbers([1] * 4)], {}


def _reordered(m: Maker, operator: str, x: Tensor) -> Arguments:
    if operator == "TRANSPOSE":
        order = m.pick(((0, 2, 1, 3), (0, 3, 1, 2), (0, 3, 2, 1), (0, 1, 3, 2), (0, 2, 3, 1)))
        return tuple(x.shape[axis] for axis in order), [m.numbers(order)], {}
    if operator == "TILE":
        times = [1, *(m.size(1, 3) for _ in range(3))]
        return tuple(n * t for n, t in zip(x.shape, times, strict=True)), [m.numbers(times)], {}
    return x.shape, [m.numbers([m.size(1, 3)])], {}  # REVERSE_V2


def _reshaped(m: Maker, operator: str, x: Tensor) -> Arguments:
    if operator == "SQUEEZE":
        return x.shape[1:], [], {"squeeze_dims": [0]}
    if operator == "EXPAND_DIMS":
        return (1, *x.shape[:2], 1, *x.shape[2:]), [m.numbers(2)], {}
    flat = (1, int(np.prod(x.shape)))
    return flat, [m.numbers(flat)], {"new_shape": list(flat)}


_MOVES: dict[str, Callable[[Maker, str, Tensor], Arguments]] = {
    **dict.fromkeys(("PAD", "PADV2", "MIRROR_PAD"), _padded),
    **dict.fromkeys(("SLICE", "STRIDED_SLICE"), _sliced),
    **dict.fromkeys(("TRANSPOSE", "TILE", "REVERSE_V2"), _reordered),
    **dict.fromkeys(("RESHAPE", "SQUEEZE", "EXPAND_DIMS"), _reshaped),
}


def _moved(operator: str) -> Build:
    def build(m: Maker) -> None:
        x = m.input(m.shape(4, 10), m.pick(UP_TO_16))
        shape, given, options = _MOVES[operator](m, operator, x)
        out = m.model.operator(operator, [x, *given], m.same(shape, x), **options)
        # A copy alone is nothing to compute: a ReLU follows it.
        last = m.model.operator("RELU", [out], m.same(shape, x)) if operator in _COPIES else out
        m.model.output(last, name="y")

    return build


_COPIES = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")


def _joined(operator: str) -> Build:
    def build(m: Maker) -> None:
        dtype = m.pick(UP_TO_16)
        shape = m.shape(3, 8)
        axis = 1 if operator == "PACK" else m.size(1, 2)
        count = m.size(2, 4)
        first = m.input(shape, dtype)
        quantisation = (first.scale[0], first.zero_point[0])
        inputs, total = [first], shape[axis]
        for _ in range(count - 1):
            part = list(shape)
            if operator == "CONCATENATION":
                part[axis] = m.size(1, 8)
            total += part[axis]
            inputs.append(m.input(tuple(part), dtype, *quantisation))
        if operator == "PACK":
            whole = (*shape[:axis], count, *shape[axis:])
            options: dict[str, Any] = {"axis": axis, "values_count": count}
        else:
            whole = (*shape[:axis], total, *shape[axis + 1 :])
            options = {"axis": axis, "fused_activation_function": "NONE"}
        out = m.same(whole, first)
        m.model.operator(operator, inputs, out, **options)
        m.model.output(out, name="y")

    return build


def _split(operator: str) -> Build:
    def build(m: Maker) -> None:
        dtype = m.pick(UP_TO_16)
        count, part = m.size(2, 3), m.size(1, 5)
        axis = m.size(1, 3)
        shape = list(m.shape(4, 8))
        shape[axis] = count if operator == "UNPACK" else count * part
        x = m.input(tuple(shape), dtype)
        if operator == "UNPACK":
            parts = [n for index, n in enumerate(shape) if index != axis]
            inputs: list[Tensor | None] = [x]
            options: dict[str, Any] = {"num": count, "axis": axis}
        else:
            parts = [part if index == axis else n for index, n in enumerate(shape)]
            inputs = (
                [m.numbers(axis), x]
                if operator == "SPLIT"
                else [x, m.numbers([part] * count), m.numbers(axis)]
            )
            options = {"num_splits": count}
        outs = [m.same(tuple(parts), x) for _ in range(count)]
        m.model.operator(operator, inputs, outs, **options)
        m.model.output(*(m.model.operator("RELU", [out], m.same(out.shape, x)) for out in outs))

    return build


def _quantize(m: Maker) -> None:
    source, target = m.pick(
        (
            ("int8", "int8"),
            ("int16", "int8"),
            ("int8", "int16"),
            ("uint8", "int8"),
            ("int8", "uint8"),
            ("int16", "int16"),
        )
    )
    shape = (1, 16, 16, m.size(1, 4))
    x = m.input(shape, source)
    out = m.free(shape, target, x.scale[0])
    m.model.operator("QUANTIZE", [x], out)
    m.model.output(out, name="y")


def _prelu(m: Maker) -> None:
    dtype = m.pick(EIGHT[:3])
    shape = (1, 8, 8, m.size(1, 8))
    x = m.input(shape, dtype)
    alphas = m.model.constant(m.values((1, 1, shape[3]), dtype), m.scale() / 16, m.zero_point(dtype))
    out = m.free(shape, dtype, x.scale[0])
    m.model.operator("PRELU", [x, alphas], out)
    m.model.output(out, name="y")


def _arg_max(m: Maker) -> None:
    dtype = m.pick(("int8", "uint8", "int16"))
    x = m.input((1, m.size(1, 8), m.size(1, 8), m.size(1, 100)), dtype)
    out = m.model.tensor(x.shape[:3], "int32")
    m.model.operator("ARG_MAX", [x, m.numbers(3)], out, output_type="INT32")
    m.model.output(out, name="y")


def _compared(operator: str) -> Build:
    def build(m: Maker) -> None:
        shape = m.shape(4)
        x = m.input(shape, m.pick(EIGHT[:3]))
        y = m.input(_broadcast(m, shape), x.dtype, x.scale[0], x.zero_point[0])
        condition = m.model.tensor(shape, "bool")
        m.model.operator(operator, [x, y], condition)
        m.model.output(condition, name="y")

    return build


def _selected(m: Maker) -> None:
    shape = m.shape(4)
    x = m.input(shape, "int8")
    y = m.input(shape, "int8", x.scale[0], x.zero_point[0])
    condition = m.model.tensor(shape, "bool")
    m.model.operator("GREATER", [x, y], condition)
    out = m.same(shape, x)
    m.model.operator("SELECT_V2", [condition, y, x], out)
    m.model.output(out, name="y")


def _gather(m: Maker) -> None:
    x = m.input((1, m.size(2, 12), m.size(1, 16)), m.pick(("int8", "int16")))
    indices = m.model.input("indices", (1, m.size(1, 8)), "int32")
    m.data.append(m.rng.integers(0, x.shape[1], indices.shape).astype(np.int32))
    out = m.same((1, indices.shape[1], x.shape[2]), x)
    m.model.operator("GATHER", [x, indices], out, axis=1, batch_dims=1)
    m.model.output(out, name="y")


_TANH = {"int8": (1 / 128, 0), "uint8": (1 / 128, 128), "int16": (1 / 32768, 0)}
_SIGMOID = {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)}

OPERATORS: dict[str, Build] = {
    **{name: _binary(name, (*UP_TO_16, "int16")) for name in ("ADD", "SUB", "MUL")},
    **{name: _binary(name, UP_TO_16, same=True) for name in ("MAXIMUM", "MINIMUM")},
    "SQUARED_DIFFERENCE": _binary("SQUARED_DIFFERENCE", ("int8",)),
    **{name: _convolution(name) for name in ("CONV_2D", "DEPTHWISE_CONV_2D")},
    "TRANSPOSE_CONV": _transpose_convolution,
    "FULLY_CONNECTED": _fully_connected,
    "BATCH_MATMUL": _batch_matmul,
    **{name: _pool(name) for name in ("MAX_POOL_2D", "AVERAGE_POOL_2D")},
    **{name: _reduction(name) for name in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")},
    "SOFTMAX": _softmax,
    "LOGISTIC": _unary("LOGISTIC", UP_TO_16, **_SIGMOID),
    "TANH": _unary("TANH", UP_TO_16, **_TANH),
    "HARD_SWISH": _unary("HARD_SWISH", EIGHT),
    "LEAKY_RELU": _unary("LEAKY_RELU", UP_TO_16),
    "PRELU": _prelu,
    **{name: _unary(name, UP_TO_16) for name in ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")},
    "ABS": _unary("ABS", ("int8", "int16")),
    "EXP": _unary("EXP", ("int8", "int16")),
    "LOG": _unary("LOG", ("int8",)),
    "RSQRT": _unary("RSQRT", ("int8",), zero=-128),
    "QUANTIZE": _quantize,
    "ARG_MAX": _arg_max,
    **{name: _resize(name) for name in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")},
    **{name: _moved(name) for name in _MOVES},
    **{name: _joined(name) for name in ("CONCATENATION", "PACK")},
    **{name: _split(name) for name in ("SPLIT", "SPLIT_V", "UNPACK")},
    **{
        name: _compared(name)
        for name in ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
    },
    "SELECT_V2": _selected,
    "GATHER": _gather,
}


def make(operator: str, seed: int) -> Case:
    """The model number `seed` of `operator`."""
    maker = Maker(seed, operator)
    OPERATORS[operator](maker)
    types = tuple(sorted({tensor.dtype for _, tensor in maker.model.inputs}))
    return Case(operator, seed, maker.model, maker.data, types)
