"""The file format of TensorFlow Lite, as far as models of this package need it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import flatbuffers
import numpy as np
from ethosu.vela.tflite import (
    Buffer,
    Model,
    Operator,
    OperatorCode,
    QuantizationParameters,
    SubGraph,
    Tensor as TensorTable,
)
from ethosu.vela.tflite.BuiltinOptions import BuiltinOptions

Shape = tuple[int, ...]
_VERSION = 3


@dataclass(frozen=True)
class Tensor:
    """A feature map (without `data`) or a constant; `scales` are those of the channels along `channel_axis`."""

    name: str
    shape: Shape
    type: int
    scales: tuple[float, ...]
    zero_point: int
    data: bytes | None
    channel_axis: int = 0


@dataclass(frozen=True)
class Layer:
    """A layer: `values` are the fields of `options`, a module that flatc made of the schema, or None."""

    operator: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Any
    values: dict[str, Any]


def serialised(
    tensors: Sequence[Tensor], layers: Sequence[Layer], inputs: Sequence[int], outputs: Sequence[int]
) -> bytes:
    """A TensorFlow Lite file; inputs and outputs are numbers of tensors."""
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


def _tensor(b: Any, tensor: Tensor, buffer: int) -> int:
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
    TensorTable.Start(b)
    TensorTable.AddShape(b, shape)
    TensorTable.AddType(b, tensor.type)
    TensorTable.AddBuffer(b, buffer)
    TensorTable.AddName(b, name)
    if quantisation is not None:
        TensorTable.AddQuantization(b, quantisation)
    return int(TensorTable.End(b))


def _operator(b: Any, layer: Layer, code: int) -> int:
    kind, options = 0, None
    if layer.options is not None:
        kind = getattr(BuiltinOptions, layer.options.__name__.rpartition(".")[2])
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
    if options is not None:
        Operator.AddBuiltinOptionsType(b, kind)
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
