"""The record of what a `.pte` holds: the part of `ethosu-sdk inspect` that says nothing about layout."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from msgspec import convert

from ethosu_sdk import provenance, pte, targets
from ethosu_sdk.records.common import Unavailable
from ethosu_sdk.records.printed.inspect import (
    Block,
    Command,
    DataFile,
    DataRow,
    Delegate,
    Dynamism,
    ElementBytes,
    File,
    FileSegment,
    Input,
    Inspection,
    Instruction,
    InstructionKind,
    MemoryPlan,
    Method,
    NamedData,
    Operator,
    Role,
    Value,
    ValueKind,
    Vela,
)
from ethosu_sdk.results import program_files, target_record
from ethosu_sdk.steps.shared import hazards
from ethosu_sdk.vela_blocks import TensorSlot, VelaBlocks

NOTHING_DELEGATED = "the program delegates nothing to an Ethos-U"


@dataclass(frozen=True)
class InspectOptions:
    """What a description holds beside what every one does: the `commands` of the command streams, their `hazards`.

    `data` are the program's data files, by default those beside it.
    """

    commands: bool = False
    hazards: bool = False
    data: tuple[Path, ...] = ()


NOTHING_MORE = InspectOptions()


def describe(path: Path, program: pte.Pte, options: InspectOptions = NOTHING_MORE) -> Inspection:
    """The record of the `program` at `path`: target, methods, segments. Sizes and offsets are in bytes.

    Values are referred to by their index in `methods[].values`. With `options.commands`, each Ethos-U delegate gets
    its disassembled command stream, with `options.hazards` what that does too early. Raises InputError when the file
    contradicts itself about its target, or when a command does not exist.
    """
    target = target_record.content(program.target())
    return Inspection(
        status="pass",
        **provenance.origin(program_files.entries(path, program), []),
        file=File(
            name=path.name,
            sha256=program.sha256,
            bytes=program.size,
            program_bytes=program.header.program_bytes,
            extended_header=program.header.extended,
        ),
        target=target,
        methods=methods(program, options),
        segments=tuple(FileSegment(offset=row.offset, size=row.size) for row in program.segments),
        named_data=tuple(NamedData(key=key, bytes=len(data)) for key, data in program.named_data.items()),
        data_files=tuple(map(_data_file, program.data_files)) or None,
        unavailable=() if target is not None else (Unavailable(path="/target", reason=NOTHING_DELEGATED),),
    )


def _data_file(file: pte.DataFile) -> DataFile:
    return DataFile(
        name=file.path.name,
        sha256=file.sha256,
        bytes=file.size,
        data=tuple(
            DataRow(
                key=key,
                bytes=len(blob.data),
                dtype=None if blob.layout is None else blob.layout.dtype,
                shape=None if blob.layout is None else blob.layout.sizes,
            )
            for key, blob in file.blobs.items()
        ),
    )


def methods(program: pte.Pte, options: InspectOptions = NOTHING_MORE) -> tuple[Method, ...]:
    """The methods of `program`, as :func:`describe` has them."""
    return tuple(_method(plan, options) for plan in program.plans)


def _method(plan: pte.ExecutionPlan, options: InspectOptions) -> Method:
    return Method(
        name=plan.name,
        inputs=tuple(plan.inputs),
        outputs=tuple(plan.outputs),
        operators=tuple(
            Operator(name=name, runs_on="CPU", calls=calls) for name, calls in plan.called_operators().items()
        ),
        delegates=tuple(_delegates(plan, options)),
        instructions=tuple(
            _instruction(index, row, plan)
            for chain in plan.chains
            for index, row in enumerate(chain.instructions)
        ),
        memory_plan=tuple(_memory_plan(plan)),
        constant_bytes=_constant_bytes(plan),
        values=tuple(_values(plan)),
    )


def _instruction(index: int, row: pte.Instruction, plan: pte.ExecutionPlan) -> Instruction:
    if isinstance(row, pte.KernelCall):
        name = plan.operators[row.op_index].full_name
        return Instruction(index=index, kind="KernelCall", runs_on="CPU", name=name, args=tuple(row.args))
    if isinstance(row, pte.DelegateCall):
        delegate = plan.delegates[row.delegate_index]
        return Instruction(
            index=index,
            kind="DelegateCall",
            runs_on="NPU" if delegate.vela is not None else delegate.id,
            name=delegate.id,
            delegate=row.delegate_index,
            args=tuple(row.args),
        )
    return Instruction(index=index, kind=convert(row.kind, InstructionKind), runs_on="CPU", **asdict(row))


def _delegates(plan: pte.ExecutionPlan, options: InspectOptions) -> Iterator[Delegate]:
    calls = Counter(row.delegate_index for row in plan.instructions if isinstance(row, pte.DelegateCall))
    pieces = {(row.payload_offset, len(row.payload)): row.payload for row in plan.delegates}  # may be shared
    hashes = {key: hashlib.sha256(payload).hexdigest() for key, payload in pieces.items()}
    for index, row in enumerate(plan.delegates):
        yield Delegate(
            index=index,
            id=row.id,
            calls=calls[index],
            payload_offset=row.payload_offset,
            payload_bytes=len(row.payload),
            sha256=hashes[row.payload_offset, len(row.payload)],
            compile_specs={key: _text(value) for key, value in row.compile_specs.items()},
            vela=None if row.vela is None else _vela(row.vela, options),
        )


def _text(value: bytes) -> str:
    """A compile specification as text; bytes that are none as hexadecimal."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return f"0x{value.hex()}"


def _vela(vela: VelaBlocks, options: InspectOptions) -> Vela:
    return Vela(
        accelerator=targets.accelerator(vela.config_word),
        config_word=f"{vela.config_word:#010x}",
        arch_word=f"{vela.arch_word:#010x}",
        command_stream_bytes=len(vela.command_stream),
        weight_bytes=len(vela.weights),
        scratch_bytes=vela.scratch_bytes,
        inputs=tuple(map(_slot, vela.inputs)),
        outputs=tuple(map(_slot, vela.outputs)),
        blocks=tuple(Block(name=row.name, offset=row.offset, length=row.length) for row in vela.blocks),
        commands=_commands(vela) if options.commands else None,
        hazards=tuple(hazards.sentences(vela)) if options.hazards else None,
    )


def _commands(vela: VelaBlocks) -> tuple[Command, ...]:
    """The command stream: byte offsets in it, names as in Arm's register headers, raw values of fields."""
    from ethosu_sdk.npu.stream import decode

    family = targets.family_by_number(vela.config_word >> 28)
    generation = family.generation if family else "u55"
    return tuple(
        Command(
            offset=row.offset,
            name=f"NPU_{row.type.name}",
            fields={field.name: field.of(row.bits) for field in row.type.fields},
        )
        for row in decode.commands(vela.command_stream, generation)
    )


def _slot(slot: TensorSlot) -> Input:
    return Input(
        shape=tuple(slot.shape),
        element_bytes=convert(slot.element_bytes, ElementBytes),
        bytes=slot.nbytes,
        region=slot.region,
        offset=slot.offset,
    )


def _memory_plan(plan: pte.ExecutionPlan) -> Iterator[MemoryPlan]:
    """The planned buffers, without entry 0, which is not used."""
    tensors = Counter(
        value.allocation.memory_id
        for value in plan.values
        if isinstance(value, pte.Tensor) and value.allocation is not None
    )
    for memory_id, size in enumerate(plan.non_const_buffer_sizes):
        if memory_id:
            yield MemoryPlan(memory_id=memory_id, bytes=size, tensors=tensors[memory_id])


def _constant_bytes(plan: pte.ExecutionPlan) -> int:
    """Bytes of the constants that the method refers to, each counted once."""
    constants = {
        value.data_buffer_idx: value.nbytes
        for value in plan.values
        if isinstance(value, pte.Tensor) and value.is_constant and not value.external_name
    }
    return sum(constants.values())


def _values(plan: pte.ExecutionPlan) -> Iterator[Value]:
    # A value that is both is an input that the method hands back.
    roles: dict[int, Role] = {}
    roles |= dict.fromkeys(plan.outputs, "output")
    roles |= dict.fromkeys(plan.inputs, "input")
    for index, value in enumerate(plan.values):
        if isinstance(value, pte.Tensor):
            yield _tensor(index, value, roles.get(index) or _inner_role(value))
        elif isinstance(value, pte.List):
            items = tuple(_number(item) for item in value.items)
            yield Value(index=index, kind=convert(value.kind, ValueKind), items=items)
        else:
            known = None if value.value is None else _number(value.value)
            yield Value(index=index, kind=convert(value.kind, ValueKind), value=known)


def _number(value: float | str) -> float | str:
    """`value` itself; what JSON cannot hold (NaN and infinities) as text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _tensor(index: int, tensor: pte.Tensor, role: Role) -> Value:
    allocation = tensor.allocation
    return Value(
        index=index,
        kind="Tensor",
        dtype=tensor.dtype,
        shape=tuple(tensor.sizes),
        dim_order=tuple(tensor.dim_order),
        dynamism=convert(tensor.dynamism, Dynamism),
        bytes=tensor.nbytes,
        memory_id=None if allocation is None else allocation.memory_id,
        offset=None if allocation is None else allocation.offset,
        has_data=True if tensor.data is not None else None,
        name=tensor.name or None,
        external_name=tensor.external_name or None,
        role=role,
    )


def _inner_role(tensor: pte.Tensor) -> Role:
    if tensor.is_constant:
        return "constant"
    return "state" if tensor.data is not None else "intermediate"


def npu_share(method: Method) -> tuple[int, int]:
    """(calls that run on the NPU, all operator and delegate calls) of a method."""
    calls = [row for row in method.instructions if row.kind in ("KernelCall", "DelegateCall")]
    return sum(row.runs_on == "NPU" for row in calls), len(calls)
