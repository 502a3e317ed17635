"""The schemas of `.pte` and `.ptd` as data: tables, unions and enums of ExecuTorch 1.5.1 (program.fbs,
flat_tensor.fbs, scalar_type.fbs).

Types are spelled as in the schema language: ``[int]`` is a vector, a name is a table, union or enum. Fields
stand in declaration order, which is the order of their vtable slots (a union takes two slots: its type and
its value). Every default is zero. A test compares these tables with the schema files of the ExecuTorch
package.
"""

from __future__ import annotations

from ethosu_sdk.pte.scalar_types import SCALAR_TYPES

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
        "Null",
        "Int",
        "Bool",
        "Double",
        "Tensor",
        "String",
        "IntList",
        "DoubleList",
        "BoolList",
        "TensorList",
        "OptionalTensorList",
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
