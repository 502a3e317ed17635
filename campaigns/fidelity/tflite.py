"""TensorFlow Lite models of 8-bit layers with random weights: networks whose files are not at hand, rebuilt by shape.

Speed and traffic of an NPU depend on shapes and on how far weights can be compressed, not on what they compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from ethosu.vela.tflite import (
    AddOptions,
    ConcatenationOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    LeakyReluOptions,
    MulOptions,
    PadOptions,
    Pool2DOptions,
    QuantizeOptions,
    ReshapeOptions,
    ResizeNearestNeighborOptions,
    SoftmaxOptions,
    SplitOptions,
    SubOptions,
)
from ethosu.vela.tflite.ActivationFunctionType import ActivationFunctionType
from ethosu.vela.tflite.BuiltinOperator import BuiltinOperator
from ethosu.vela.tflite.Padding import Padding
from ethosu.vela.tflite.TensorType import TensorType

from campaigns.fidelity.flatbuffer import Layer, Shape, Tensor, serialised

Array = npt.NDArray[Any]
_ACTIVATION_SCALE, _ACTIVATION_ZERO = 0.0235, -128  # of a ReLU6's int8 result
TRAINED = 1.8
"""Exponent of the distribution of weights with which kws_micronet_m and yolo-fastest_192_face_v4 compress as well as
their files do, which are public."""


@dataclass
class Graph:
    """A graph that grows layer by layer. Methods take and give the numbers of feature maps.

    `spread` is the standard deviation of the Laplacian that weights are drawn from: it decides how far they can be
    compressed. `exponent` draws them from a generalised normal distribution instead (1: Laplacian, 2: normal) and
    scales each channel so that its largest weight is 127, as trained networks are quantised; a share of `pruned` of
    the smallest is 0. Without either they are uniform.
    """

    spread: float | None = None
    exponent: float | None = None
    pruned: float = 0.0
    seed: int = 1
    _tensors: list[Tensor] = field(default_factory=list)
    _layers: list[Layer] = field(default_factory=list)
    _inputs: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    def input(self, *shape: int) -> int:
        """An input of the network."""
        self._inputs.append(self._feature_map("input", shape))
        return self._inputs[-1]

    def shape(self, tensor: int) -> Shape:
        """The shape of a feature map."""
        return self._tensors[tensor].shape

    def conv(
        self,
        source: int,
        depth: int,
        kernel: tuple[int, int] = (1, 1),
        stride: tuple[int, int] = (1, 1),
        *,
        padding: str = "SAME",
        relu: str = "RELU6",
    ) -> int:
        """CONV_2D to `depth` channels."""
        batch, height, width, channels = self.shape(source)
        size = _output_size((height, width), kernel, stride, padding)
        weights = self._weights((depth, *kernel, channels))
        bias = self._bias(depth)
        target = self._feature_map("conv", (batch, *size, depth))
        return self._add(
            BuiltinOperator.CONV_2D,
            (source, weights, bias),
            target,
            Conv2DOptions,
            **_strides(padding, stride),
            DilationHFactor=1,
            DilationWFactor=1,
            **_activation(relu),
        )

    def depthwise(
        self,
        source: int,
        kernel: tuple[int, int] = (3, 3),
        stride: tuple[int, int] = (1, 1),
        *,
        multiplier: int = 1,
        padding: str = "SAME",
        relu: str = "RELU6",
    ) -> int:
        """DEPTHWISE_CONV_2D."""
        batch, height, width, channels = self.shape(source)
        depth = channels * multiplier
        size = _output_size((height, width), kernel, stride, padding)
        weights = self._weights((1, *kernel, depth), axis=3)
        bias = self._bias(depth)
        target = self._feature_map("depthwise", (batch, *size, depth))
        return self._add(
            BuiltinOperator.DEPTHWISE_CONV_2D,
            (source, weights, bias),
            target,
            DepthwiseConv2DOptions,
            **_strides(padding, stride),
            DepthMultiplier=multiplier,
            DilationHFactor=1,
            DilationWFactor=1,
            **_activation(relu),
        )

    def fully_connected(self, source: int, depth: int, *, relu: str = "NONE") -> int:
        """FULLY_CONNECTED over (batch, channels)."""
        batch, channels = self.shape(source)
        weights = self._weights((depth, channels))
        bias = self._bias(depth)
        target = self._feature_map("fully_connected", (batch, depth))
        return self._add(
            BuiltinOperator.FULLY_CONNECTED,
            (source, weights, bias),
            target,
            FullyConnectedOptions,
            **_activation(relu),
        )

    def add(self, first: int, second: int, *, relu: str = "NONE") -> int:
        """ADD of two feature maps of one shape."""
        return self._binary(BuiltinOperator.ADD, AddOptions, first, second, relu)

    def subtract(self, first: int, second: int) -> int:
        """SUB of two feature maps of one shape."""
        return self._binary(BuiltinOperator.SUB, SubOptions, first, second, "NONE")

    def multiply(self, first: int, second: int) -> int:
        """MUL of two feature maps of one shape."""
        return self._binary(BuiltinOperator.MUL, MulOptions, first, second, "NONE")

    def _binary(self, operator: int, options: Any, first: int, second: int, relu: str) -> int:
        target = self._feature_map("binary", self.shape(first))
        return self._add(operator, (first, second), target, options, **_activation(relu))

    def logistic(self, source: int) -> int:
        """LOGISTIC."""
        return self._add(BuiltinOperator.LOGISTIC, (source,), self._between(source, -128), None)

    def tanh(self, source: int) -> int:
        """TANH."""
        return self._add(BuiltinOperator.TANH, (source,), self._between(source, 0), None)

    def _between(self, source: int, zero_point: int) -> int:
        """A feature map of values from 0 or -1 to 1."""
        scale = 1 / (256 if zero_point else 128)
        return self._feature_map("curve", self.shape(source), scale, zero_point)

    def leaky_relu(self, source: int, alpha: float) -> int:
        """LEAKY_RELU."""
        target = self._feature_map("leaky_relu", self.shape(source))
        return self._add(BuiltinOperator.LEAKY_RELU, (source,), target, LeakyReluOptions, Alpha=alpha)

    def quantize(self, source: int) -> int:
        """QUANTIZE from one scale to another."""
        target = self._feature_map("quantize", self.shape(source), 2 * _ACTIVATION_SCALE)
        return self._add(BuiltinOperator.QUANTIZE, (source,), target, QuantizeOptions)

    def full(self, shape: Shape, value: int) -> int:
        """A constant feature map."""
        values = np.full(shape, value, np.int8)
        return self._constant("full", values, TensorType.INT8, (_ACTIVATION_SCALE,), 0)

    def pad(self, source: int, *widths: tuple[int, int]) -> int:
        """PAD by (before, after) of each axis."""
        shape = tuple(size + sum(width) for size, width in zip(self.shape(source), widths, strict=True))
        wanted = self._constant("widths", np.array(widths, np.int32), TensorType.INT32, (), 0)
        return self._add(BuiltinOperator.PAD, (source, wanted), self._like("pad", source, shape), PadOptions)

    def concatenate(self, *sources: int) -> int:
        """CONCATENATION along the last axis."""
        first = self.shape(sources[0])
        shape = (*first[:-1], sum(self.shape(source)[-1] for source in sources))
        target = self._like("concatenate", sources[0], shape)
        axis = {"Axis": len(first) - 1, **_activation("NONE")}
        return self._add(BuiltinOperator.CONCATENATION, sources, target, ConcatenationOptions, **axis)

    def split(self, source: int, parts: int) -> list[int]:
        """SPLIT along the last axis into equal parts."""
        shape = self.shape(source)
        axis = self._constant("axis", np.array(len(shape) - 1, np.int32), TensorType.INT32, (), 0)
        part = (*shape[:-1], shape[-1] // parts)
        targets = [self._like("split", source, part) for _ in range(parts)]
        values = {"NumSplits": parts}
        self._layers.append(
            Layer(BuiltinOperator.SPLIT, (axis, source), tuple(targets), SplitOptions, values)
        )
        return targets

    def enlarge(self, source: int, factor: int) -> int:
        """RESIZE_NEAREST_NEIGHBOR of rows and columns."""
        batch, height, width, depth = self.shape(source)
        size = (height * factor, width * factor)
        wanted = self._constant("size", np.array(size, np.int32), TensorType.INT32, (), 0)
        target = self._like("resize", source, (batch, *size, depth))
        operator = BuiltinOperator.RESIZE_NEAREST_NEIGHBOR
        return self._add(operator, (source, wanted), target, ResizeNearestNeighborOptions)

    def average_pool(self, source: int, kernel: tuple[int, int] | None = None) -> int:
        """AVERAGE_POOL_2D, VALID, with a stride as large as its window; by default over all of the plane."""
        return self._pool(BuiltinOperator.AVERAGE_POOL_2D, source, kernel, kernel, "VALID")

    def max_pool(
        self, source: int, kernel: tuple[int, int], stride: tuple[int, int], *, padding: str = "VALID"
    ) -> int:
        """MAX_POOL_2D."""
        return self._pool(BuiltinOperator.MAX_POOL_2D, source, kernel, stride, padding)

    def _pool(
        self,
        operator: int,
        source: int,
        kernel: tuple[int, int] | None,
        stride: tuple[int, int] | None,
        padding: str,
    ) -> int:
        batch, height, width, channels = self.shape(source)
        window = kernel or (height, width)
        step = stride or window
        size = _output_size((height, width), window, step, padding)
        target = self._feature_map("pool", (batch, *size, channels))
        return self._add(
            operator,
            (source,),
            target,
            Pool2DOptions,
            **_strides(padding, step),
            FilterHeight=window[0],
            FilterWidth=window[1],
        )

    def flatten(self, source: int) -> int:
        """RESHAPE to (batch, everything else)."""
        shape = self.shape(source)
        return self.reshape(source, (shape[0], int(np.prod(shape[1:]))))

    def reshape(self, source: int, shape: Shape) -> int:
        """RESHAPE."""
        target = self._like("reshape", source, shape)
        wanted = self._constant("shape", np.array(shape, np.int32), TensorType.INT32, (), 0)
        return self._add(BuiltinOperator.RESHAPE, (source, wanted), target, ReshapeOptions)

    def softmax(self, source: int) -> int:
        """SOFTMAX over the last axis."""
        target = self._feature_map("softmax", self.shape(source), 1 / 256)
        return self._add(BuiltinOperator.SOFTMAX, (source,), target, SoftmaxOptions, Beta=1.0)

    def _add(
        self,
        operator: int,
        inputs: tuple[int, ...],
        target: int,
        options: Any,
        **values: Any,
    ) -> int:
        """A layer with `options`, a module that flatc made of the schema (or None), whose fields have `values`."""
        self._layers.append(Layer(operator, inputs, (target,), options, values))
        return target

    def _feature_map(
        self,
        name: str,
        shape: Sequence[int],
        scale: float = _ACTIVATION_SCALE,
        zero_point: int = _ACTIVATION_ZERO,
    ) -> int:
        numbered = f"{name}_{len(self._tensors)}"
        self._tensors.append(Tensor(numbered, tuple(shape), TensorType.INT8, (scale,), zero_point, None))
        return len(self._tensors) - 1

    def _like(self, name: str, source: int, shape: Shape) -> int:
        """A feature map with the scale of another."""
        tensor = self._tensors[source]
        return self._feature_map(name, shape, tensor.scales[0], tensor.zero_point)

    def _constant(self, name: str, values: Array, kind: int, scales: tuple[float, ...], axis: int) -> int:
        numbered = f"{name}_{len(self._tensors)}"
        self._tensors.append(Tensor(numbered, values.shape, kind, scales, 0, values.tobytes(), axis))
        return len(self._tensors) - 1

    def _weights(self, shape: Shape, axis: int = 0) -> int:
        if self.exponent is not None:
            values = self._trained(shape, axis, 1 / self.exponent)
        elif self.spread is None:
            values = self._random.integers(-127, 128, shape)
        else:
            values = np.rint(self._random.laplace(0.0, self.spread / np.sqrt(2.0), shape)).clip(-127, 127)
        return self._constant(
            "weights", values.astype(np.int8), TensorType.INT8, self._scales(shape[axis]), axis
        )

    def _trained(self, shape: Shape, axis: int, power: float) -> Array:
        size = self._random.gamma(power, 1.0, shape) ** power
        if self.pruned:
            size[size < np.quantile(size, self.pruned)] = 0.0
        others = tuple(number for number in range(len(shape)) if number != axis)
        largest = size.max(axis=others, keepdims=True)
        return np.rint(127 * size / largest * self._random.choice((-1, 1), shape))

    def _bias(self, depth: int) -> int:
        values = self._random.integers(-10000, 10000, depth).astype(np.int32)
        return self._constant("bias", values, TensorType.INT32, self._scales(depth), 0)

    def _scales(self, depth: int) -> tuple[float, ...]:
        return tuple(float(value) for value in self._random.uniform(0.002, 0.006, depth).astype(np.float32))

    def build(self, *outputs: int) -> bytes:
        """The model as a TensorFlow Lite file with these outputs."""
        return serialised(self._tensors, self._layers, self._inputs, outputs)


def _strides(padding: str, stride: tuple[int, int]) -> dict[str, int]:
    return {"Padding": getattr(Padding, padding), "StrideH": stride[0], "StrideW": stride[1]}


def _activation(name: str) -> dict[str, int]:
    return {"FusedActivationFunction": getattr(ActivationFunctionType, name)}


def _output_size(
    size: tuple[int, int], kernel: tuple[int, int], stride: tuple[int, int], padding: str
) -> tuple[int, int]:
    covered = (0, 0) if padding == "SAME" else (kernel[0] - 1, kernel[1] - 1)
    return -(-(size[0] - covered[0]) // stride[0]), -(-(size[1] - covered[1]) // stride[1])
