"""``inspect-result/1``, from which schemas/inspect-result.v1.schema.json is made."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from ethosu_sdk.records import common as c
from ethosu_sdk.records.common import Derived, Part, RecordKind

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
    name: c.Text
    sha256: c.Sha256
    bytes: c.Count
    program_bytes: c.Count
    extended_header: bool


class Operator(Part):
    name: c.Text
    runs_on: Literal["CPU"]
    calls: c.PositiveCount


class Input(Part):
    shape: Annotated[tuple[c.PositiveCount, ...], Meta(min_length=6, max_length=6)]
    element_bytes: ElementBytes
    bytes: c.Count
    region: c.Count
    offset: c.Count


class Block(Part):
    name: c.Text
    offset: c.Count
    length: c.Count


class Command(Part):
    offset: c.Count
    name: c.Text
    fields: dict[str, c.Count]


class Vela(Part):
    accelerator: c.Text
    config_word: Word
    arch_word: Word
    command_stream_bytes: c.Count
    weight_bytes: c.Count
    scratch_bytes: c.Count
    inputs: tuple[Input, ...]
    outputs: tuple[Input, ...]
    blocks: tuple[Block, ...]
    commands: tuple[Command, ...] | None = None
    #: what the command stream does too early for hardware, a sentence each; empty when its waits suffice
    hazards: tuple[c.Text, ...] | None = None


class Delegate(Part):
    index: c.Count
    id: c.Text
    calls: c.Count
    payload_offset: c.Count
    payload_bytes: c.Count
    sha256: c.Sha256
    compile_specs: dict[str, str]
    vela: Vela | None = None


class Instruction(Part):
    index: c.Count
    kind: InstructionKind
    runs_on: c.Text
    name: c.Text | None = None
    delegate: c.Count | None = None
    args: tuple[c.Count, ...] | None = None
    move_from: c.Count | None = None
    move_to: c.Count | None = None
    cond_value_index: c.Count | None = None
    destination_instruction: c.Count | None = None
    value_index: c.Count | None = None


class MemoryPlan(Part):
    memory_id: c.PositiveCount
    bytes: c.Count
    tensors: c.Count


class Value(Part):
    index: c.Count
    kind: ValueKind
    value: c.Number | bool | str | None = None
    items: tuple[c.Number | bool | str, ...] | None = None
    dtype: c.Text | None = None
    shape: tuple[c.Count, ...] | None = None
    dim_order: tuple[c.Count, ...] | None = None
    dynamism: Dynamism | None = None
    bytes: c.Count | None = None
    memory_id: c.PositiveCount | None = None
    offset: c.Count | None = None
    has_data: Literal[True] | None = None
    name: c.Text | None = None
    external_name: c.Text | None = None
    role: Role | None = None


class Method(Part):
    name: c.Text
    inputs: tuple[c.Count, ...]
    outputs: tuple[c.Count, ...]
    operators: tuple[Operator, ...]
    delegates: tuple[Delegate, ...]
    instructions: tuple[Instruction, ...]
    memory_plan: tuple[MemoryPlan, ...]
    constant_bytes: c.Count
    values: tuple[Value, ...]


class FileSegment(Part):
    offset: c.Count
    size: c.Count


class NamedData(Part):
    key: c.Text
    bytes: c.Count


class DataRow(NamedData):
    dtype: c.Text | None = None
    shape: tuple[c.Count, ...] | None = None


class DataFile(Part):
    name: c.Text
    sha256: c.Sha256
    bytes: c.Count
    data: tuple[DataRow, ...]


class Finding(Part):
    problem: c.Text
    shown: c.Text  #: what the board would show instead
    way_out: c.Text


class OnBoard(Part):
    name: c.Text
    findings: tuple[Finding, ...]


class Inspection(Derived[Literal["pass"]], tag_field="schema", tag="inspect-result/1"):
    """What a .pte holds (`ethosu-sdk inspect --json`)."""

    file: File
    target: c.Target | None = None
    methods: c.Some[Method]
    segments: tuple[FileSegment, ...]
    named_data: tuple[NamedData, ...]
    data_files: c.Some[DataFile] | None = None  #: The data files (.ptd) that the program uses
    board: OnBoard | None = None  #: what would fail on the board that was named
    unavailable: c.UnavailableMembers


KIND = RecordKind(Inspection)
