"""Reads `.tflite` files as files that may be hostile: every index, shape and size is checked before use.

What comes out is what the file says: subgraphs of tensors and operators by index, with the options of operators that
the SDK reads (:mod:`ethosu_sdk.program.tflite_schema`), constants as views of the file, and names of signatures.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.program import tflite_schema
from ethosu_sdk.program.flatbuffer import FlatBuffer, Table, file_bytes, make_schema

SUFFIX = ".tflite"
NPU_OPERATOR = "ethos-u"  # the custom operator that Vela writes
CUSTOM = tflite_schema.OPERATORS.index("CUSTOM")

_HINT = "the file is damaged; convert the model again"
_SCHEMA = make_schema(tflite_schema.TABLES, tflite_schema.UNIONS, tflite_schema.ENUMS, is_open=True)
_MAX_RANK = 8
_MAX_ELEMENTS = 1 << 30  # of a tensor; what is larger fits no board
_ABSENT = -1  # an optional input that is not given
# Elements of less than a byte, in bits.
_PACKED = {"INT4": 4, "UINT4": 4, "INT2": 2}


@dataclass(frozen=True)
class Quantisation:
    """real = scale * (q - zero point): one pair, or one for each index of `axis`."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int = 0


@dataclass(frozen=True)
class TfliteTensor:
    """`type` is the schema's name, `dtype` NumPy's, empty where it has none; `data` are the bytes of a constant,
    empty for what is computed. Dimensions that the file leaves open are 1 in `shape` and -1 in `signature`."""

    index: int
    name: str
    shape: tuple[int, ...]
    type: str
    quantisation: Quantisation | None = None
    data: memoryview = field(default=memoryview(b""), repr=False)
    is_variable: bool = False
    is_sparse: bool = False
    signature: tuple[int, ...] = ()

    @property
    def dtype(self) -> str:
        return tflite_schema.NUMPY_TYPES.get(self.type, "")

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        return _size_bytes(self.type, self.shape) or 0

    @property
    def array(self) -> npt.NDArray[Any]:
        """A constant as an array that cannot be written; of a type that NumPy has."""
        return np.frombuffer(self.data, np.dtype(self.dtype).newbyteorder("<")).reshape(self.shape)


@dataclass(frozen=True)
class TfliteOperator:
    """`name` is the schema's, or the code of a custom operator. An input that is not given is -1."""

    index: int
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Any]
    version: int = 1
    is_custom: bool = False
    custom_options: memoryview = field(default=memoryview(b""), repr=False)
    intermediates: tuple[int, ...] = ()


@dataclass(frozen=True)
class TfliteSubgraph:
    index: int
    name: str
    tensors: tuple[TfliteTensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[TfliteOperator, ...]

    @property
    def input_tensors(self) -> tuple[TfliteTensor, ...]:
        return tuple(self.tensors[index] for index in self.inputs)

    @property
    def output_tensors(self) -> tuple[TfliteTensor, ...]:
        return tuple(self.tensors[index] for index in self.outputs)


@dataclass(frozen=True)
class Signature:
    """Names of inputs and outputs, and the tensors of the subgraph that they stand for."""

    key: str
    subgraph: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


@dataclass(frozen=True)
class TfliteModel:
    path: Path
    sha256: str
    description: str
    subgraphs: tuple[TfliteSubgraph, ...]
    signatures: tuple[Signature, ...]
    metadata: Mapping[str, memoryview] = field(repr=False)
    data: memoryview = field(repr=False)

    @property
    def main(self) -> TfliteSubgraph:
        return self.subgraphs[0]

    @property
    def npu_operators(self) -> tuple[TfliteOperator, ...]:
        """What Vela compiled."""
        return tuple(row for row in self.main.operators if row.is_custom and row.name == NPU_OPERATOR)

    @property
    def vela_version(self) -> str | None:
        """The version of Vela that wrote the file, if one did and says so (since 3.9)."""
        if "vela_version" not in self.metadata:
            return None
        return bytes(self.metadata["vela_version"][:64]).rstrip(b"\0").decode("ascii", errors="replace")

    def names(self, tensors: Sequence[int], *, of: str) -> tuple[str, ...]:
        """What `tensors`, the main subgraph's `of` ("inputs" or "outputs"), are called: by the first signature that
        names them all, else by themselves."""
        for row in self.signatures:
            known = {index: name for name, index in getattr(row, of).items()}
            if row.subgraph == 0 and set(tensors) <= known.keys():
                return tuple(known[index] for index in tensors)
        return tuple(self.main.tensors[index].name for index in tensors)


def read_tflite(path: Path) -> TfliteModel:
    """Read and check the model at `path`. Raises InputError that says what is wrong and where."""
    data = file_bytes(path, SUFFIX, tflite_schema.FILE_IDENTIFIER, _HINT)
    try:
        return replace(parse_tflite(data), path=path)
    except InputError as error:
        raise InputError(f"{path}: {error.message}", error.hint) from error


def parse_tflite(data: bytes | bytearray | memoryview) -> TfliteModel:
    """Check the content of a model; InputError for anything that is malformed or contradicts itself."""
    file = memoryview(data).toreadonly().cast("B")
    root = FlatBuffer(file, _SCHEMA, SUFFIX, _HINT).root(tflite_schema.ROOT_TABLE)
    if root.integer("version") != tflite_schema.VERSION:
        raise root.error(f"is {root.integer('version')}, the SDK reads version 3", field="version")
    buffers = [_buffer(table, file) for table in root.tables("buffers")]
    codes = [_operator_code(table) for table in root.tables("operator_codes")]
    subgraphs = tuple(
        _subgraph(index, table, codes, buffers) for index, table in enumerate(root.tables("subgraphs"))
    )
    if not subgraphs:
        raise root.error("is empty", field="subgraphs")
    signatures = tuple(_signature(table, subgraphs) for table in root.tables("signature_defs"))
    metadata = {
        table.string("name"): buffers[_index(table, "buffer", len(buffers))]
        for table in root.tables("metadata")
    }
    sha256 = hashlib.sha256(file).hexdigest()
    return TfliteModel(Path(), sha256, root.string("description"), subgraphs, signatures, metadata, file)


def _index(table: Table, name: str, count: int) -> int:
    found = table.integer(name)
    if found >= count:
        raise table.error(f"is {found}, there are {count}", field=name)
    return found


def _buffer(table: Table, file: memoryview) -> memoryview:
    """The bytes of a buffer, in its table or, in large files, behind all tables."""
    data = table.octets("data")
    offset, size = table.integer("offset"), table.integer("size")
    if len(data) or offset <= 1:  # 0 and 1 mean that it has none
        return data
    if offset + size > len(file):
        raise table.error(f"ends at byte {offset + size} of {len(file)}")
    return file[offset : offset + size]


def _operator_code(table: Table) -> tuple[str, int, bool]:
    """Name, version, and whether it is a custom operator."""
    # Files from before 2020 have the first, which ends at 127; those since have both.
    number = max(table.integer("deprecated_builtin_code"), table.integer("builtin_code"))
    if not 0 <= number < len(tflite_schema.OPERATORS):
        raise table.error(f"is {number}, which is no operator of the SDK's schema", field="builtin_code")
    version = table.integer("version") if table.has("version") else 1
    if number == CUSTOM:
        return table.string("custom_code") or "CUSTOM", version, True
    return tflite_schema.OPERATORS[number], version, False


def _subgraph(
    index: int, table: Table, codes: Sequence[tuple[str, int, bool]], buffers: Sequence[memoryview]
) -> TfliteSubgraph:
    tensors = tuple(_tensor(number, row, buffers) for number, row in enumerate(table.tables("tensors")))
    inputs, outputs = (_tensor_indices(table, name, tensors) for name in ("inputs", "outputs"))
    operators = tuple(
        _operator(number, row, codes, tensors) for number, row in enumerate(table.tables("operators"))
    )
    return TfliteSubgraph(index, table.string("name"), tensors, inputs, outputs, operators)


def _tensor_indices(
    table: Table, name: str, tensors: Sequence[TfliteTensor], *, optional: bool = False
) -> tuple[int, ...]:
    found = table.integers(name)
    for number in found:
        if not (0 <= number < len(tensors) or (optional and number == _ABSENT)):
            raise table.error(f"names tensor {number}, there are {len(tensors)}", field=name)
    return found


def _size_bytes(kind: str, shape: tuple[int, ...]) -> int | None:
    """Bytes of a tensor; None for one whose elements have no fixed size."""
    if kind in _PACKED:
        return -(-prod(shape) * _PACKED[kind] // 8)
    if kind == "BFLOAT16":
        return 2 * prod(shape)
    dtype = tflite_schema.NUMPY_TYPES.get(kind)
    return None if dtype is None else prod(shape) * np.dtype(dtype).itemsize


def _tensor(index: int, table: Table, buffers: Sequence[memoryview]) -> TfliteTensor:
    shape = table.integers("shape")
    if len(shape) > _MAX_RANK:
        raise table.error(f"has {len(shape)} dimensions, at most {_MAX_RANK} are possible", field="shape")
    if any(size < 0 for size in shape) or prod(shape) > _MAX_ELEMENTS:
        raise table.error(f"is {list(shape)}, which is no possible shape", field="shape")
    kind = tflite_schema.TENSOR_TYPES[table.integer("type")]
    data = buffers[_index(table, "buffer", len(buffers))] if buffers else memoryview(b"")
    size = _size_bytes(kind, shape)
    if len(data) and size is not None and len(data) != size:
        raise table.error(f"has {len(data)} bytes, but {kind} {list(shape)} takes {size}", field="buffer")
    signature = table.integers("shape_signature")
    if signature and (len(signature) != len(shape) or any(size < -1 for size in signature)):
        raise table.error(f"is {list(signature)}, for the shape {list(shape)}", field="shape_signature")
    return TfliteTensor(
        index,
        table.string("name"),
        shape,
        kind,
        _quantisation(table, shape),
        data,
        is_variable=table.boolean("is_variable"),
        is_sparse=table.has("sparsity"),
        signature=signature or shape,
    )


def _quantisation(tensor: Table, shape: tuple[int, ...]) -> Quantisation | None:
    table = tensor.table("quantization")
    if table is None:
        return None
    scales, zero_points = table.reals("scale"), table.integers("zero_point")
    if not scales:
        return None
    if any(not isfinite(scale) or scale < 0 for scale in scales):
        raise table.error("holds a number that is not a scale", field="scale")
    zero_points = zero_points or (0,) * len(scales)
    if len(zero_points) == 1:
        zero_points *= len(scales)
    if len(zero_points) != len(scales):
        raise table.error(f"has {len(zero_points)} numbers for {len(scales)} scales", field="zero_point")
    axis = table.integer("quantized_dimension")
    if len(scales) > 1 and not (0 <= axis < len(shape) and shape[axis] == len(scales)):
        raise table.error(
            f"has {len(scales)} numbers for axis {axis} of the shape {list(shape)}", field="scale"
        )
    return Quantisation(scales, zero_points, axis)


def _operator(
    index: int, table: Table, codes: Sequence[tuple[str, int, bool]], tensors: Sequence[TfliteTensor]
) -> TfliteOperator:
    name, version, is_custom = codes[_index(table, "opcode_index", len(codes))]
    if table.integer("large_custom_options_offset") > 1:
        raise table.error("lie behind the tables, which the SDK does not read", field="custom_options")
    options = table.union("builtin_options")
    return TfliteOperator(
        index,
        name,
        _tensor_indices(table, "inputs", tensors, optional=True),
        _tensor_indices(table, "outputs", tensors),
        {} if options is None else _options(options),
        version,
        is_custom,
        table.octets("custom_options"),
        _tensor_indices(table, "intermediates", tensors, optional=True),
    )


def _options(table: Table) -> dict[str, Any]:
    readers = {
        "string": table.string,
        "bool": table.boolean,
        "float": table.real,
        "[int]": table.integers,
    }
    found: dict[str, Any] = {}
    for name, kind in tflite_schema.TABLES[table.kind].items():
        value = readers.get(kind, table.integer)(name)
        found[name] = value if table.has(name) else tflite_schema.DEFAULTS.get(name, value)
    if not 0 <= found.get("fused_activation_function", 0) < len(tflite_schema.ACTIVATIONS):
        raise table.error("is no activation function", field="fused_activation_function")
    return found


def _signature(table: Table, subgraphs: Sequence[TfliteSubgraph]) -> Signature:
    subgraph = _index(table, "subgraph_index", len(subgraphs))
    tensors = len(subgraphs[subgraph].tensors)
    inputs, outputs = (
        {row.string("name"): _index(row, "tensor_index", tensors) for row in table.tables(name)}
        for name in ("inputs", "outputs")
    )
    return Signature(table.string("signature_key"), subgraph, inputs, outputs)
