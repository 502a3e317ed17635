"""``inspect-result/1``, from which schemas/inspect-result.v1.schema.json is made."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from ethosu_sdk.records.common import (
    Count,
    Derived,
    Number,
    Part,
    PositiveCount,
    RecordKind,
    Sha256,
    Some,
    Target,
    Text,
    UnavailableMembers,
)

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

Word = Annotated[str, Meta(pattern="^0x[0-9a-f]{8}$")]


class File(Part):
    name: Text
    sha256: Sha256
    bytes: Count
    program_bytes: Count
    extended_header: bool


class Operator(Part):
    name: Text
    runs_on: Literal["CPU"]
    calls: PositiveCount


class Input(Part):
    shape: Annotated[tuple[PositiveCount, ...], Meta(min_length=6, max_length=6)]
    element_bytes: ElementBytes
    bytes: Count
    region: Count
    offset: Count


class Block(Part):
    name: Text
    offset: Count
    length: Count


class Command(Part):
    offset: Count
    name: Text
    fields: dict[str, Count]


class Vela(Part):
    accelerator: Text
    config_word: Word
    arch_word: Word
    command_stream_bytes: Count
    weight_bytes: Count
    scratch_bytes: Count
    inputs: tuple[Input, ...]
    outputs: tuple[Input, ...]
    blocks: tuple[Block, ...]
    commands: tuple[Command, ...] | None = None
    #: what the command stream does too early for hardware, a sentence each; empty when its waits suffice
    hazards: tuple[Text, ...] | None = None


class Delegate(Part):
    index: Count
    id: Text
    calls: Count
    payload_offset: Count
    payload_bytes: Count
    sha256: Sha256
    compile_specs: dict[str, str]
    vela: Vela | None = None


class Instruction(Part):
    index: Count
    kind: InstructionKind
    runs_on: Text
    name: Text | None = None
    delegate: Count | None = None
    args: tuple[Count, ...] | None = None
    move_from: Count | None = None
    move_to: Count | None = None
    cond_value_index: Count | None = None
    destination_instruction: Count | None = None
    value_index: Count | None = None


class MemoryPlan(Part):
    memory_id: PositiveCount
    bytes: Count
    tensors: Count


class Value(Part):
    index: Count
    kind: ValueKind
    value: Number | bool | str | None = None
    items: tuple[Number | bool | str, ...] | None = None
    dtype: Text | None = None
    shape: tuple[Count, ...] | None = None
    dim_order: tuple[Count, ...] | None = None
    dynamism: Dynamism | None = None
    bytes: Count | None = None
    memory_id: PositiveCount | None = None
    offset: Count | None = None
    has_data: Literal[True] | None = None
    name: Text | None = None
    external_name: Text | None = None
    role: Role | None = None


class Method(Part):
    name: Text
    inputs: tuple[Count, ...]
    outputs: tuple[Count, ...]
    operators: tuple[Operator, ...]
    delegates: tuple[Delegate, ...]
    instructions: tuple[Instruction, ...]
    memory_plan: tuple[MemoryPlan, ...]
    constant_bytes: Count
    values: tuple[Value, ...]


class FileSegment(Part):
    offset: Count
    size: Count


class NamedData(Part):
    key: Text
    bytes: Count


class DataRow(NamedData):
    dtype: Text | None = None
    shape: tuple[Count, ...] | None = None


class DataFile(Part):
    name: Text
    sha256: Sha256
    bytes: Count
    data: tuple[DataRow, ...]


class Inspection(Derived[Literal["pass"]], tag_field="schema", tag="inspect-result/1"):
    """What a .pte holds (`ethosu-sdk inspect --json`)."""

    file: File
    target: Target | None = None
    methods: Some[Method]
    segments: tuple[FileSegment, ...]
    named_data: tuple[NamedData, ...]
    data_files: Some[DataFile] | None = None  #: The data files (.ptd) that the program uses
    unavailable: UnavailableMembers


KIND = RecordKind(Inspection)
