"""Quantised `.tflite` files for tests, written with the flatbuffers package and Vela's copy of TFLite's schema.

model = Model()
x = model.input("x", (1, 8, 8, 4), "int8", 0.05, -3)
w = model.constant(weights, scales, axis=0)
b = model.constant(bias, 0.05 * scales, axis=0)
y = model.tensor((1, 8, 8, 16), "int8", 0.1, 5)
    model.operator("CONV_2D", [x, w, b], y, padding="SAME", stride_w=1, stride_h=1)
model.output(y, name="y")
model.write(path)
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import flatbuffers
import numpy as np
from numpy.typing import NDArray

#: Operators whose table of options has another name than theirs.
OPTIONS = {
    **dict.fromkeys(("MAX_POOL_2D", "AVERAGE_POOL_2D", "L2_POOL_2D"), "Pool2DOptions"),
    **dict.fromkeys(
        ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL"),
        "ReducerOptions",
    ),
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), "MaximumMinimumOptions"),
}

#: Options whose values are names of an enumeration, and that enumeration.
ENUMERATIONS = {
    "padding": "Padding",
    "fused_activation_function": "ActivationFunctionType",
    "weights_format": "FullyConnectedOptionsWeightsFormat",
    "mode": "MirrorPadMode",
    **dict.fromkeys(
        ("in_data_type", "out_data_type", "output_type", "out_type", "quantized_bias_type"), "TensorType"
    ),
}


@dataclass(frozen=True)
class Tensor:
    """A tensor of a Model: what operators refer to."""

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: tuple[float, ...] = ()
    zero_point: tuple[int, ...] = ()
    axis: int = 0
    buffer: int = 0
    is_variable: bool = False


@dataclass
class _Operator:
    kind: str
    inputs: list[int]
    outputs: list[int]
    options: dict[str, Any]
    custom_options: bytes
    intermediates: list[int]
    version: int


@dataclass
class Model:
    """A .tflite with one subgraph; tensors and operators in the order in which they are added."""

    description: str = "made by a test"
    tensors: list[Tensor] = field(default_factory=list)
    operators: list[_Operator] = field(default_factory=list)
    inputs: list[tuple[str, Tensor]] = field(default_factory=list)
    outputs: list[tuple[str, Tensor]] = field(default_factory=list)
    buffers: list[bytes] = field(default_factory=lambda: [b""])  # the first one is empty by convention
    metadata: dict[str, bytes] = field(default_factory=dict)

    def tensor(
        self,
        shape: Sequence[int],
        dtype: str = "int8",
        scale: float | Sequence[float] | NDArray[Any] | None = None,
        zero_point: int | Sequence[int] | NDArray[Any] = 0,
        *,
        name: str | None = None,
        axis: int = 0,
        data: bytes | None = None,
        is_variable: bool = False,
    ) -> Tensor:
        """An activation; with `data` a constant. Several scales are scales along `axis`."""
        scales = () if scale is None else tuple(float(one) for one in np.atleast_1d(scale))
        zero_points = tuple(int(one) for one in np.broadcast_to(zero_point, len(scales)))
        if data is not None:
            self.buffers.append(data)
        buffer = 0 if data is None else len(self.buffers) - 1
        name = name or f"tensor_{len(self.tensors)}"
        made = Tensor(
            len(self.tensors),
            name,
            tuple(int(n) for n in shape),
            str(dtype),
            scales,
            zero_points,
            axis,
            buffer,
            is_variable,
        )
        self.tensors.append(made)
        return made

    def input(
        self,
        name: str,
        shape: Sequence[int],
        dtype: str = "int8",
        scale: float | None = None,
        zero_point: int = 0,
    ) -> Tensor:
        """An input of the model, called `name` in its signature too."""
        made = self.tensor(shape, dtype, scale, zero_point, name=name)
        self.inputs.append((name, made))
        return made

    def constant(
        self,
        array: NDArray[Any],
        scale: float | Sequence[float] | NDArray[Any] | None = None,
        zero_point: int | Sequence[int] | NDArray[Any] = 0,
        axis: int = 0,
        name: str | None = None,
    ) -> Tensor:
        """A constant with the values of `array`; weights, biases, axes and paddings are such."""
        return self.tensor(
            array.shape, array.dtype.name, scale, zero_point, name=name, axis=axis, data=array.tobytes()
        )

    def variable(
        self,
        shape: Sequence[int],
        dtype: str = "int8",
        scale: float | None = None,
        zero_point: int = 0,
        name: str | None = None,
    ) -> Tensor:
        """A variable tensor: state of an operator such as SVDF or UNIDIRECTIONAL_SEQUENCE_LSTM."""
        return self.tensor(shape, dtype, scale, zero_point, name=name, is_variable=True)

    def operator(
        self,
        kind: str,
        inputs: Sequence[Tensor | None],
        outputs: Tensor | Sequence[Tensor],
        *,
        custom_options: bytes = b"",
        intermediates: Sequence[Tensor] = (),
        version: int = 1,
        **options: Any,
    ) -> Any:
        """Add an operator of BuiltinOperator `kind` (another name: a custom operator); returns `outputs`.

        `options` are the members of its table of options, as the schema spells them; enumerations by their names.
        """
        made = [outputs] if isinstance(outputs, Tensor) else list(outputs)
        self.operators.append(
            _Operator(
                kind,
                [-1 if one is None else one.index for one in inputs],
                [one.index for one in made],
                options,
                custom_options,
                [one.index for one in intermediates],
                version,
            )
        )
        return outputs

    def output(self, *tensors: Tensor, name: str | None = None) -> None:
        """Make `tensors` outputs of the model; `name` of a single one is its name in the signature."""
        for one in tensors:
            self.outputs.append((name or one.name, one))

    def to_bytes(self) -> bytes:
        """The file's content."""
        return _Writer().file(self)

    def write(self, path: Path) -> Path:
        """Write the file; returns `path`."""
        path.write_bytes(self.to_bytes())
        return path


def _schema(name: str) -> ModuleType:
    return importlib.import_module(f"ethosu.vela.tflite.{name}")


def _enumerated(enumeration: str, value: str) -> int:
    return int(getattr(getattr(_schema(enumeration), enumeration), value.upper()))


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:].lower() for part in name.split("_"))


def options_table(kind: str) -> str | None:
    """The name of the table of options of a BuiltinOperator; None: it has no options."""
    wanted = OPTIONS.get(kind, kind.replace("_", "") + "Options").lower()
    return next(
        (name for name in vars(_schema("BuiltinOptions").BuiltinOptions) if name.lower() == wanted), None
    )


def builtin_code(kind: str) -> int:
    """The number of a BuiltinOperator; a name that is none is a custom operator."""
    codes = _schema("BuiltinOperator").BuiltinOperator
    return int(getattr(codes, kind, codes.CUSTOM))


class _Writer:
    """One file under construction."""

    def __init__(self) -> None:
        self.builder = flatbuffers.Builder(1024)

    def file(self, model: Model) -> bytes:
        codes = sorted({(one.kind, one.version) for one in model.operators})
        buffers = list(model.buffers)
        metadata = []
        for name, content in model.metadata.items():
            buffers.append(content)
            metadata.append(self.table("Metadata", name=name, buffer=len(buffers) - 1))
        root = self.table(
            "Model",
            version=3,
            operator_codes=self.offsets([self.operator_code(*code) for code in codes]),
            subgraphs=self.offsets([self.subgraph(model, codes)]),
            description=model.description,
            buffers=self.offsets(
                [self.table("Buffer", data=self.aligned(one) if one else None) for one in buffers]
            ),
            metadata=self.offsets(metadata) if metadata else None,
            signature_defs=self.offsets([self.signature(model)]),
        )
        self.builder.Finish(root, file_identifier=b"TFL3")
        return bytes(self.builder.Output())

    def subgraph(self, model: Model, codes: list[tuple[str, int]]) -> int:
        return self.table(
            "SubGraph",
            tensors=self.offsets([self.tensor(one) for one in model.tensors]),
            inputs=_indices(one.index for _, one in model.inputs),
            outputs=_indices(one.index for _, one in model.outputs),
            operators=self.offsets(
                [self.operator(one, codes.index((one.kind, one.version))) for one in model.operators]
            ),
            name="main",
        )

    def tensor(self, tensor: Tensor) -> int:
        quantization = None
        if tensor.scale:
            quantization = self.table(
                "QuantizationParameters",
                scale=np.array(tensor.scale, np.float32),
                zero_point=np.array(tensor.zero_point, np.int64),
                quantized_dimension=tensor.axis,
            )
        return self.table(
            "Tensor",
            shape=_indices(tensor.shape),
            type=_enumerated("TensorType", tensor.dtype),
            buffer=tensor.buffer,
            name=tensor.name,
            quantization=quantization,
            is_variable=tensor.is_variable,
            has_rank=True,
        )

    def operator_code(self, kind: str, version: int) -> int:
        code = builtin_code(kind)
        custom = kind if code == builtin_code("CUSTOM") else None
        return self.table(
            "OperatorCode",
            deprecated_builtin_code=min(code, 127),
            builtin_code=code,
            version=version,
            custom_code=custom,
        )

    def operator(self, operator: _Operator, code: int) -> int:
        table = options_table(operator.kind)
        if table is None and operator.options:
            raise TypeError(f"{operator.kind} has no options: {', '.join(operator.options)}")
        kind = getattr(_schema("BuiltinOptions").BuiltinOptions, table) if table else 0
        values = {
            name: _enumerated(ENUMERATIONS[name], value)
            if isinstance(value, str) and name in ENUMERATIONS
            else value
            for name, value in operator.options.items()
        }
        return self.table(
            "Operator",
            opcode_index=code,
            inputs=_indices(operator.inputs),
            outputs=_indices(operator.outputs),
            builtin_options_type=kind,
            builtin_options=self.table(table, **values) if table else None,
            custom_options=np.frombuffer(operator.custom_options, np.uint8)
            if operator.custom_options
            else None,
            intermediates=_indices(operator.intermediates) if operator.intermediates else None,
        )

    def signature(self, model: Model) -> int:
        def maps(pairs: list[tuple[str, Tensor]]) -> int:
            return self.offsets(
                [self.table("TensorMap", name=name, tensor_index=one.index) for name, one in pairs]
            )

        return self.table(
            "SignatureDef",
            inputs=maps(model.inputs),
            outputs=maps(model.outputs),
            signature_key="serving_default",
            subgraph_index=0,
        )

    def table(self, kind: str, **members: Any) -> int:
        """A table of the schema; strings, arrays and lists of numbers among `members` become vectors before it."""
        module = _schema(kind)
        written = {name: self.written(value) for name, value in members.items() if value is not None}
        module.Start(self.builder)
        for name, value in written.items():
            getattr(module, f"Add{_camel(name)}")(self.builder, value)
        return int(module.End(self.builder))

    def written(self, value: Any) -> Any:
        """A scalar or an offset as it is; the offset of a vector that is written now."""
        if isinstance(value, str):
            return self.builder.CreateString(value)
        if isinstance(value, np.ndarray | list | tuple):
            return self.builder.CreateNumpyVector(
                value if isinstance(value, np.ndarray) else np.array(value, np.int32)
            )
        return value

    def offsets(self, tables: list[int]) -> int:
        self.builder.StartVector(4, len(tables), 4)
        for one in reversed(tables):
            self.builder.PrependUOffsetTRelative(one)
        return int(self.builder.EndVector())

    def aligned(self, content: bytes) -> int:
        """The data of a buffer: the schema asks for an alignment of 16 bytes."""
        self.builder.StartVector(1, len(content), 16)
        self.builder.head -= len(content)
        self.builder.Bytes[self.builder.head : self.builder.head + len(content)] = content
        return int(self.builder.EndVector())


def _indices(numbers: Any) -> NDArray[Any]:
    return np.array(list(numbers), np.int32)
