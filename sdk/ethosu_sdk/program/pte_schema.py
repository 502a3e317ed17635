"""The schemas of `.pte` and `.ptd` as data, the types of tensor elements, and both schemas as text for flatc.

Tables, unions and enums are those of ExecuTorch 1.5.1 (program.fbs, flat_tensor.fbs, scalar_type.fbs). Types are
spelled as in the schema language: ``[int]`` is a vector, a name is a table, union or enum. Fields stand in
declaration order, which is the order of their vtable slots (a union takes two slots: its type and its value). Every
default is zero. A test compares these tables with the schema files of the ExecuTorch package. The firmware's
readers are generated from the text, so that programs can be built and run without that package.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ScalarType:
    """A type: `in_numpy` for inputs and outputs of programs, `in_records` for those of programs that are run."""

    name: str
    number: int
    dtype: str
    element_bytes: int
    in_numpy: bool = False
    in_records: bool = False


SCALAR_TYPES = (
    ScalarType("BYTE", 0, "uint8", 1, in_numpy=True, in_records=True),
    ScalarType("CHAR", 1, "int8", 1, in_numpy=True, in_records=True),
    ScalarType("SHORT", 2, "int16", 2, in_numpy=True, in_records=True),
    ScalarType("INT", 3, "int32", 4, in_numpy=True, in_records=True),
    ScalarType("LONG", 4, "int64", 8, in_numpy=True, in_records=True),
    ScalarType("HALF", 5, "float16", 2, in_numpy=True, in_records=True),
    ScalarType("FLOAT", 6, "float32", 4, in_numpy=True, in_records=True),
    ScalarType("DOUBLE", 7, "float64", 8, in_numpy=True, in_records=True),
    ScalarType("BOOL", 11, "bool", 1, in_numpy=True, in_records=True),
    ScalarType("QINT8", 12, "qint8", 1),
    ScalarType("QUINT8", 13, "quint8", 1),
    ScalarType("QINT32", 14, "qint32", 4),
    ScalarType("BFLOAT16", 15, "bfloat16", 2),
    ScalarType("QUINT4X2", 16, "quint4x2", 1),
    ScalarType("QUINT2X4", 17, "quint2x4", 1),
    ScalarType("BITS16", 22, "bits16", 2),
    ScalarType("FLOAT8E5M2", 23, "float8_e5m2", 1),
    ScalarType("FLOAT8E4M3FN", 24, "float8_e4m3fn", 1),
    ScalarType("FLOAT8E5M2FNUZ", 25, "float8_e5m2fnuz", 1),
    ScalarType("FLOAT8E4M3FNUZ", 26, "float8_e4m3fnuz", 1),
    ScalarType("UINT16", 27, "uint16", 2, in_numpy=True),
    ScalarType("UINT32", 28, "uint32", 4, in_numpy=True),
    ScalarType("UINT64", 29, "uint64", 8, in_numpy=True),
)
NUMPY_TYPES = tuple(row for row in SCALAR_TYPES if row.in_numpy)
RECORD_TYPES = tuple(row for row in SCALAR_TYPES if row.in_records)


FILE_IDENTIFIER = b"ET12"

TABLES: dict[str, dict[str, str]] = {
    "ContainerMetadata": {"encoded_inp_str": "string", "encoded_out_str": "string"},
    "Null": {},
    "AllocationDetails": {"memory_id": "uint", "memory_offset_low": "uint", "memory_offset_high": "uint"},
    "ExtraTensorInfo": {
        "mutable_data_segments_idx": "uint64",
        "fully_qualified_name": "string",
        "location": "TensorDataLocation",
        "device_type": "DeviceType",
        "device_index": "byte",
    },
    "Tensor": {
        "scalar_type": "ScalarType",
        "storage_offset": "int",
        "sizes": "[int]",
        "dim_order": "[ubyte]",
        "requires_grad": "bool",
        "data_buffer_idx": "uint",
        "allocation_info": "AllocationDetails",
        "layout": "byte",
        "shape_dynamism": "TensorShapeDynamism",
        "extra_tensor_info": "ExtraTensorInfo",
    },
    "Int": {"int_val": "long"},
    "Bool": {"bool_val": "bool"},
    "Double": {"double_val": "double"},
    "String": {"string_val": "string"},
    "IntList": {"items": "[long]"},
    "DoubleList": {"items": "[double]"},
    "BoolList": {"items": "[bool]"},
    "TensorList": {"items": "[int]"},
    "OptionalTensorList": {"items": "[int]"},
    "EValue": {"val": "KernelTypes"},
    "Operator": {"name": "string", "overload": "string"},
    "KernelCall": {"op_index": "int", "args": "[int]"},
    "DelegateCall": {"delegate_index": "int", "args": "[int]"},
    "MoveCall": {"move_from": "int", "move_to": "int"},
    "JumpFalseCall": {"cond_value_index": "int", "destination_instruction": "int"},
    "FreeCall": {"value_index": "int"},
    "Instruction": {"instr_args": "InstructionArguments"},
    "Frame": {"filename": "string", "lineno": "int", "name": "string", "context": "string"},
    "FrameList": {"items": "[Frame]"},
    "BackendDelegateDataReference": {"location": "DataLocation", "index": "uint"},
    "CompileSpec": {"key": "string", "value": "[ubyte]"},
    "BackendDelegate": {
        "id": "string",
        "processed": "BackendDelegateDataReference",
        "compile_specs": "[CompileSpec]",
    },
    "Chain": {
        "inputs": "[int]",
        "outputs": "[int]",
        "instructions": "[Instruction]",
        "stacktrace": "[FrameList]",
    },
    "ExecutionPlan": {
        "name": "string",
        "container_meta_type": "ContainerMetadata",
        "values": "[EValue]",
        "inputs": "[int]",
        "outputs": "[int]",
        "chains": "[Chain]",
        "operators": "[Operator]",
        "delegates": "[BackendDelegate]",
        "non_const_buffer_sizes": "[int64]",
        "non_const_buffer_device": "[NonConstBufferDevice]",
    },
    "NonConstBufferDevice": {"buffer_idx": "int", "device_type": "DeviceType", "device_index": "byte"},
    "Buffer": {"storage": "[ubyte]"},
    "BackendDelegateInlineData": {"data": "[ubyte]"},
    "DataSegment": {"offset": "uint64", "size": "uint64"},
    "SubsegmentOffsets": {"segment_index": "uint", "offsets": "[uint64]"},
    "NamedData": {"key": "string", "segment_index": "uint32"},
    "Program": {
        "version": "uint",
        "execution_plan": "[ExecutionPlan]",
        "constant_buffer": "[Buffer]",
        "backend_delegate_data": "[BackendDelegateInlineData]",
        "segments": "[DataSegment]",
        "constant_segment": "SubsegmentOffsets",
        "mutable_data_segments": "[SubsegmentOffsets]",
        "named_data": "[NamedData]",
    },
}

ROOT_TABLE = "Program"

# Members in the order of their type numbers, which start at 1; 0 is "none".
UNIONS: dict[str, tuple[str, ...]] = {
    "KernelTypes": (
        *("Null", "Int", "Bool", "Double", "Tensor", "String", "IntList", "DoubleList", "BoolList"),
        *("TensorList", "OptionalTensorList"),
    ),
    "InstructionArguments": ("KernelCall", "DelegateCall", "MoveCall", "JumpFalseCall", "FreeCall"),
}

# All enums are stored as one signed byte.
ENUMS: dict[str, dict[str, int]] = {
    "TensorShapeDynamism": {"STATIC": 0, "DYNAMIC_BOUND": 1, "DYNAMIC_UNBOUND": 2},
    "TensorDataLocation": {"SEGMENT": 0, "EXTERNAL": 1},
    "DeviceType": {"CPU": 0, "CUDA": 1},
    "DataLocation": {"INLINE": 0, "SEGMENT": 1},
    "ScalarType": {row.name: row.number for row in SCALAR_TYPES},
}

# Data files (.ptd).
DATA_FILE_IDENTIFIER = b"FT01"
DATA_ROOT_TABLE = "FlatTensor"
DATA_TABLES: dict[str, dict[str, str]] = {
    "TensorLayout": {"scalar_type": "ScalarType", "sizes": "[int32]", "dim_order": "[uint8]"},
    "DataSegment": {"offset": "uint64", "size": "uint64"},
    "NamedData": {"key": "string", "segment_index": "uint32", "tensor_layout": "TensorLayout"},
    "FlatTensor": {"version": "uint32", "segments": "[DataSegment]", "named_data": "[NamedData]"},
}


FILE_NAME = "program.fbs"
DATA_FILE_NAME = "flat_tensor.fbs"
# To 16 bytes where they are written.
_ALIGNED = {("Buffer", "storage"), ("BackendDelegateInlineData", "data")}


def program_fbs() -> str:
    """The schema's text; flatc makes of it what it makes of ExecuTorch's own."""
    unions = [f"union {name} {{ {', '.join(members)} }}" for name, members in UNIONS.items()]
    enums = [_fbs_enum(name, members) for name, members in ENUMS.items()]
    return _fbs("executorch_flatbuffer", FILE_IDENTIFIER, "pte", [*enums, *unions], TABLES, ROOT_TABLE)


def data_file_fbs() -> str:
    enums = [_fbs_enum("ScalarType", ENUMS["ScalarType"])]
    return _fbs("flat_tensor_flatbuffer", DATA_FILE_IDENTIFIER, "ptd", enums, DATA_TABLES, DATA_ROOT_TABLE)


def _fbs(
    space: str, identifier: bytes, suffix: str, types: list[str], tables: dict[str, dict[str, str]], root: str
) -> str:
    rows = [
        f"namespace {space};",
        f'file_identifier "{identifier.decode()}";',
        f'file_extension "{suffix}";',
        *types,
        *(_fbs_table(name, fields) for name, fields in tables.items()),
        f"root_type {root};",
    ]
    return "\n".join([*rows, ""])


def _fbs_enum(name: str, members: dict[str, int]) -> str:
    return f"enum {name} : byte {{ {', '.join(f'{member} = {value}' for member, value in members.items())} }}"


def _fbs_table(name: str, fields: dict[str, str]) -> str:
    rows = (
        f"  {field}: {kind}{' (force_align: 16)' if (name, field) in _ALIGNED else ''};"
        for field, kind in fields.items()
    )
    return "\n".join([f"table {name} {{", *rows, "}"])
