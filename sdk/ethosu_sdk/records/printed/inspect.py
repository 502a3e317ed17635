"""``inspect-result/1``: schemas/inspect-result.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records.common import Derived, Number, Target, Unavailable
from ethosu_sdk.records.kind import Part, RecordKind

InstructionKind = Literal["KernelCall", "DelegateCall", "MoveCall", "JumpFalseCall", "FreeCall"]
ValueKind = Literal[
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
]
Dynamism = Literal["STATIC", "DYNAMIC_BOUND", "DYNAMIC_UNBOUND"]
Role = Literal["input", "output", "constant", "state", "intermediate"]
ElementBytes = Literal[1, 2, 4, 8]


class File(Part):
    name: str
    sha256: str
    bytes: int
    program_bytes: int
    extended_header: bool


class Operator(Part):
    name: str
    runs_on: Literal["CPU"]
    calls: int


class Input(Part):
    shape: tuple[int, ...]
    element_bytes: ElementBytes
    bytes: int
    region: int
    offset: int


class Block(Part):
    name: str
    offset: int
    length: int


class Command(Part):
    offset: int
    name: str
    fields: dict[str, int]


class Vela(Part):
    accelerator: str
    config_word: str
    arch_word: str
    command_stream_bytes: int
    weight_bytes: int
    scratch_bytes: int
    inputs: tuple[Input, ...]
    outputs: tuple[Input, ...]
    blocks: tuple[Block, ...]
    commands: tuple[Command, ...] | None = None
    hazards: tuple[str, ...] | None = None


class Delegate(Part):
    index: int
    id: str
    calls: int
    payload_offset: int
    payload_bytes: int
    sha256: str
    compile_specs: dict[str, str]
    vela: Vela | None = None


class Instruction(Part):
    index: int
    kind: InstructionKind
    runs_on: str
    name: str | None = None
    delegate: int | None = None
    args: tuple[int, ...] | None = None
    move_from: int | None = None
    move_to: int | None = None
    cond_value_index: int | None = None
    destination_instruction: int | None = None
    value_index: int | None = None


class MemoryPlan(Part):
    memory_id: int
    bytes: int
    tensors: int


class Value(Part):
    index: int
    kind: ValueKind
    value: Number | bool | str | None = None
    items: tuple[Number | bool | str, ...] | None = None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    dim_order: tuple[int, ...] | None = None
    dynamism: Dynamism | None = None
    bytes: int | None = None
    memory_id: int | None = None
    offset: int | None = None
    has_data: Literal[True] | None = None
    name: str | None = None
    external_name: str | None = None
    role: Role | None = None


class Method(Part):
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[Operator, ...]
    delegates: tuple[Delegate, ...]
    instructions: tuple[Instruction, ...]
    memory_plan: tuple[MemoryPlan, ...]
    constant_bytes: int
    values: tuple[Value, ...]


class FileSegment(Part):
    offset: int
    size: int


class NamedData(Part):
    key: str
    bytes: int


class DataRow(Part):
    key: str
    bytes: int
    dtype: str | None = None
    shape: tuple[int, ...] | None = None


class DataFile(Part):
    name: str
    sha256: str
    bytes: int
    data: tuple[DataRow, ...]


class Inspection(Derived[Literal["pass"]], tag_field="schema", tag="inspect-result/1"):
    """What a .pte holds (`ethosu-sdk inspect --json`)."""

    file: File
    target: Target | None = None
    methods: tuple[Method, ...]
    segments: tuple[FileSegment, ...]
    named_data: tuple[NamedData, ...]
    data_files: tuple[DataFile, ...] | None = None
    unavailable: tuple[Unavailable, ...]


KIND = RecordKind(Inspection)
