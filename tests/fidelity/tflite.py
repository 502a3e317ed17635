"""TensorFlow Lite models of 8-bit layers with random weights: networks whose files are not at hand, rebuilt by shape.

Speed and traffic of an NPU depend on shapes and on how far weights can be compressed, not on what they compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import numpy.typing as npt
from ethosu.vela.tflite import (
    AddOptions,
    Buffer,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    Model,
    Operator,
    OperatorCode,
    Pool2DOptions,
    QuantizationParameters,
    ReshapeOptions,
    SoftmaxOptions,
    SubGraph,
    Tensor,
)
from ethosu.vela.tflite.ActivationFunctionType import ActivationFunctionType
from ethosu.vela.tflite.BuiltinOperator import BuiltinOperator
from ethosu.vela.tflite.BuiltinOptions import BuiltinOptions
from ethosu.vela.tflite.Padding import Padding
from ethosu.vela.tflite.TensorType import TensorType

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
_VERSION = 3
_ACTIVATION_SCALE, _ACTIVATION_ZERO = 0.0235, -128  # of a ReLU6's int8 result


@dataclass(frozen=True)
class _Tensor:
    name: str
    shape: Shape
    type: int
    scales: tuple[float, ...]
    zero_point: int
    data: bytes | None
    channel_axis: int = 0


@dataclass(frozen=True)
class _Layer:
    operator: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Any
    values: dict[str, Any]


@dataclass
class Graph:
    """A graph that grows layer by layer. Methods take and give the numbers of feature maps.

    `spread` is the standard deviation of the Laplacian that weights are drawn from: it decides how far they can be
    compressed; None draws them uniformly.
    """

    spread: float | None = None
    seed: int = 1
    _tensors: list[_Tensor] = field(default_factory=list)
    _layers: list[_Layer] = field(default_factory=list)
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
        target = self._feature_map("add", self.shape(first))
        return self._add(
            BuiltinOperator.ADD,
            (first, second),
            target,
            AddOptions,
            **_activation(relu),
        )

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
        target = self._feature_map("flatten", (shape[0], int(np.prod(shape[1:]))))
        wanted = self._constant("shape", np.array(self.shape(target), np.int32), TensorType.INT32, (), 0)
        return self._add(
            BuiltinOperator.RESHAPE,
            (source, wanted),
            target,
            ReshapeOptions,
        )

    def softmax(self, source: int) -> int:
        """SOFTMAX over the last axis."""
        self._tensors.append(
            _Tensor("softmax", self.shape(source), TensorType.INT8, (1 / 256,), _ACTIVATION_ZERO, None)
        )

        target = len(self._tensors) - 1
        return self._add(
            BuiltinOperator.SOFTMAX,
            (source,),
            target,
            SoftmaxOptions,
            Beta=1.0,
        )

    def _add(
        self,
        operator: int,
        inputs: tuple[int, ...],
        target: int,
        options: Any,
        **values: Any,
    ) -> int:
        """A layer with `options`, a module that flatc made of the schema, whose fields have `values`."""
        self._layers.append(_Layer(operator, inputs, (target,), options, values))
        return target

    def _feature_map(self, name: str, shape: Sequence[int]) -> int:
        numbered = f"{name}_{len(self._tensors)}"
        self._tensors.append(
            _Tensor(numbered, tuple(shape), TensorType.INT8, (_ACTIVATION_SCALE,), _ACTIVATION_ZERO, None)
        )
        return len(self._tensors) - 1

    def _constant(self, name: str, values: Array, kind: int, scales: tuple[float, ...], axis: int) -> int:
        numbered = f"{name}_{len(self._tensors)}"
        self._tensors.append(_Tensor(numbered, values.shape, kind, scales, 0, values.tobytes(), axis))
        return len(self._tensors) - 1

    def _weights(self, shape: Shape, axis: int = 0) -> int:
        if self.spread is None:
            values = self._random.integers(-127, 128, shape)
        else:
            values = np.rint(self._random.laplace(0.0, self.spread / np.sqrt(2.0), shape)).clip(-127, 127)
        return self._constant(
            "weights", values.astype(np.int8), TensorType.INT8, self._scales(shape[axis]), axis
        )

    def _bias(self, depth: int) -> int:
        values = self._random.integers(-10000, 10000, depth).astype(np.int32)
        return self._constant("bias", values, TensorType.INT32, self._scales(depth), 0)

    def _scales(self, depth: int) -> tuple[float, ...]:
        return tuple(float(value) for value in self._random.uniform(0.002, 0.006, depth).astype(np.float32))

    def build(self, output: int) -> bytes:
        """The model as a TensorFlow Lite file whose only output is `output`."""
        return _serialised(self._tensors, self._layers, self._inputs, (output,))


def _strides(padding: str, stride: tuple[int, int]) -> dict[str, int]:
    return {"Padding": getattr(Padding, padding), "StrideH": stride[0], "StrideW": stride[1]}


def _activation(name: str) -> dict[str, int]:
    return {"FusedActivationFunction": getattr(ActivationFunctionType, name)}


def _output_size(
    size: tuple[int, int], kernel: tuple[int, int], stride: tuple[int, int], padding: str
) -> tuple[int, int]:
    covered = (0, 0) if padding == "SAME" else (kernel[0] - 1, kernel[1] - 1)
    return -(-(size[0] - covered[0]) // stride[0]), -(-(size[1] - covered[1]) // stride[1])


def _serialised(
    tensors: Sequence[_Tensor], layers: Sequence[_Layer], inputs: Sequence[int], outputs: Sequence[int]
) -> bytes:
    b = flatbuffers.Builder(1 << 20)
    codes = sorted({layer.operator for layer in layers})
    buffers = [_buffer(b, b"")]
    tables = []
    for tensor in tensors:
        if tensor.data is not None:
            buffers.append(_buffer(b, tensor.data))
        tables.append(_tensor(b, tensor, 0 if tensor.data is None else len(buffers) - 1))
    operators = [_operator(b, layer, codes.index(layer.operator)) for layer in layers]
    subgraph = _subgraph(b, tables, operators, inputs, outputs)
    code_tables = []
    for code in codes:
        OperatorCode.Start(b)
        OperatorCode.AddDeprecatedBuiltinCode(b, code)
        OperatorCode.AddBuiltinCode(b, code)
        OperatorCode.AddVersion(b, 1)
        code_tables.append(OperatorCode.End(b))
    parts = {
        "OperatorCodes": _offsets(b, code_tables),
        "Subgraphs": _offsets(b, [subgraph]),
        "Buffers": _offsets(b, buffers),
    }
    Model.Start(b)
    Model.AddVersion(b, _VERSION)
    for name, part in parts.items():
        getattr(Model, f"Add{name}")(b, part)
    b.Finish(Model.End(b), b"TFL3")
    return bytes(b.Output())


def _offsets(b: Any, tables: Sequence[int]) -> int:
    b.StartVector(4, len(tables), 4)
    for table in reversed(tables):
        b.PrependUOffsetTRelative(table)
    return int(b.EndVector())


def _buffer(b: Any, data: bytes) -> int:
    content = None
    if data:
        b.StartVector(1, len(data), 16)
        b.head -= len(data)
        b.Bytes[b.head : b.head + len(data)] = data
        content = b.EndVector()
    Buffer.Start(b)
    if content is not None:
        Buffer.AddData(b, content)
    return int(Buffer.End(b))


def _tensor(b: Any, tensor: _Tensor, buffer: int) -> int:
    name = b.CreateString(tensor.name)
    shape = b.CreateNumpyVector(np.array(tensor.shape, np.int32))
    quantisation = None
    if tensor.scales:
        scales = b.CreateNumpyVector(np.array(tensor.scales, np.float32))
        zeros = b.CreateNumpyVector(np.full(len(tensor.scales), tensor.zero_point, np.int64))
        QuantizationParameters.Start(b)
        QuantizationParameters.AddScale(b, scales)
        QuantizationParameters.AddZeroPoint(b, zeros)
        QuantizationParameters.AddQuantizedDimension(b, tensor.channel_axis)
        quantisation = QuantizationParameters.End(b)
    Tensor.Start(b)
    Tensor.AddShape(b, shape)
    Tensor.AddType(b, tensor.type)
    Tensor.AddBuffer(b, buffer)
    Tensor.AddName(b, name)
    if quantisation is not None:
        Tensor.AddQuantization(b, quantisation)
    return int(Tensor.End(b))


def _operator(b: Any, layer: _Layer, code: int) -> int:
    layer.options.Start(b)
    for name, value in layer.values.items():
        getattr(layer.options, f"Add{name}")(b, value)
    options = layer.options.End(b)
    inputs = b.CreateNumpyVector(np.array(layer.inputs, np.int32))
    outputs = b.CreateNumpyVector(np.array(layer.outputs, np.int32))
    Operator.Start(b)
    Operator.AddOpcodeIndex(b, code)
    Operator.AddInputs(b, inputs)
    Operator.AddOutputs(b, outputs)
    Operator.AddBuiltinOptionsType(b, getattr(BuiltinOptions, layer.options.__name__.rpartition(".")[2]))
    Operator.AddBuiltinOptions(b, options)
    return int(Operator.End(b))


def _subgraph(
    b: Any,
    tensors: Sequence[int],
    operators: Sequence[int],
    inputs: Sequence[int],
    outputs: Sequence[int],
) -> int:
    name = b.CreateString("main")
    parts = {
        "Tensors": _offsets(b, tensors),
        "Operators": _offsets(b, operators),
        "Inputs": b.CreateNumpyVector(np.array(inputs, np.int32)),
        "Outputs": b.CreateNumpyVector(np.array(outputs, np.int32)),
    }
    SubGraph.Start(b)
    SubGraph.AddName(b, name)
    for key, part in parts.items():
        getattr(SubGraph, f"Add{key}")(b, part)
    return int(SubGraph.End(b))
