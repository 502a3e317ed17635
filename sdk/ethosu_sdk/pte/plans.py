"""Execution plans: values, operators, delegates and instructions, with every index checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ethosu_sdk.errors import InputError
from ethosu_sdk.pte import schema
from ethosu_sdk.pte.flatbuffer import Table
from ethosu_sdk.pte.model import (
    ETHOSU_BACKEND,
    Chain,
    Delegate,
    DelegateCall,
    ExecutionPlan,
    FreeCall,
    Instruction,
    JumpFalseCall,
    KernelCall,
    MoveCall,
    Operator,
    Tensor,
    Value,
)
from ethosu_sdk.pte.storage import Storage
from ethosu_sdk.pte.values import MOST_BYTES, read_values
from ethosu_sdk.vela_blocks import VelaBlocks

_CPU = schema.ENUMS["DeviceType"]["CPU"]


@dataclass(frozen=True)
class _Counts:
    """How many of everything an instruction may refer to there are."""

    values: tuple[Value, ...]
    operators: int
    delegates: tuple[Delegate, ...]
    instructions: int = 0


def read_plan(table: Table, storage: Storage) -> ExecutionPlan:
    """The plan in `table`."""
    name = table.string("name")
    if not name:
        raise table.error("is empty", field="name")
    buffer_sizes = _buffer_sizes(table)
    values = read_values(table, storage, buffer_sizes)
    operators = tuple(_operator(row) for row in table.tables("operators"))
    delegates = tuple(_delegate(row, storage) for row in table.tables("delegates"))
    chains = table.tables("chains")
    if not chains:
        raise table.error("is empty", field="chains")
    counts = _Counts(values, len(operators), delegates)
    return ExecutionPlan(
        name=name,
        values=values,
        inputs=_value_indices(table, "inputs", values),
        outputs=_value_indices(table, "outputs", values),
        chains=tuple(_chain(row, counts) for row in chains),
        operators=operators,
        delegates=delegates,
        non_const_buffer_sizes=buffer_sizes,
    )


def _buffer_sizes(table: Table) -> tuple[int, ...]:
    sizes = table.integers("non_const_buffer_sizes")
    if sizes and min(sizes) < 0:
        raise table.error(f"is {list(sizes)}", field="non_const_buffer_sizes")
    if sum(sizes) > MOST_BYTES:
        raise table.error(
            f"plans {sum(sizes):,} bytes of memory, but a 32-bit processor has at most {MOST_BYTES:,}",
            field="non_const_buffer_sizes",
        )
    for row in table.tables("non_const_buffer_device"):
        if not 0 <= row.integer("buffer_idx") < len(sizes):
            raise row.error(f"is {row.integer('buffer_idx')}, there are {len(sizes)}", field="buffer_idx")
        if row.integer("device_type") != _CPU:
            raise row.error("plans memory on another device than the CPU", field="device_type")
    return sizes


def _value_indices(table: Table, field: str, values: Sequence[Value]) -> tuple[int, ...]:
    indices = table.integers(field)
    for index in indices:
        _check_index(table, field, index, len(values), "values")
    return indices


def _check_index(table: Table, field: str, index: int, count: int, what: str) -> int:
    if not 0 <= index < count:
        raise table.error(f"refers to number {index} of {count} {what}", field=field)
    return index


def _operator(table: Table) -> Operator:
    operator = Operator(table.string("name"), table.string("overload"))
    if not operator.name:
        raise table.error("is empty", field="name")
    return operator


def _delegate(table: Table, storage: Storage) -> Delegate:
    identifier, reference = table.string("id"), table.table("processed")
    if not identifier or reference is None:
        raise table.error("is missing", field="processed" if identifier else "id")
    piece = storage.delegate_payload(reference)
    specs = _compile_specs(table)
    if identifier != ETHOSU_BACKEND:
        return Delegate(identifier, piece.offset, piece.data, specs, None)
    payload, vela = storage.vela(piece, table, specs)
    return Delegate(identifier, piece.offset, payload, specs, vela)


def _compile_specs(table: Table) -> Mapping[str, bytes]:
    specs: dict[str, bytes] = {}
    for row in table.tables("compile_specs"):
        key = row.string("key")
        if key in specs:
            raise row.error(f"is {key!r}, which is used twice", field="key")
        specs[key] = bytes(row.octets("value"))
    return specs


def _chain(table: Table, counts: _Counts) -> Chain:
    rows = table.tables("instructions")
    counts = _Counts(counts.values, counts.operators, counts.delegates, len(rows))
    return Chain(
        inputs=_value_indices(table, "inputs", counts.values),
        outputs=_value_indices(table, "outputs", counts.values),
        instructions=tuple(_instruction(row, counts) for row in rows),
    )


def _instruction(row: Table, counts: _Counts) -> Instruction:
    table = row.union("instr_args")
    if table is None:
        raise row.error("is missing", field="instr_args")
    return _INSTRUCTIONS[table.kind](table, counts)


def _value_index(table: Table, field: str, counts: _Counts) -> int:
    return _check_index(table, field, table.integer(field), len(counts.values), "values")


def _kernel_call(table: Table, counts: _Counts) -> KernelCall:
    index = _check_index(table, "op_index", table.integer("op_index"), counts.operators, "operators")
    return KernelCall(index, _value_indices(table, "args", counts.values))


def _delegate_call(table: Table, counts: _Counts) -> DelegateCall:
    index = table.integer("delegate_index")
    _check_index(table, "delegate_index", index, len(counts.delegates), "delegates")
    call = DelegateCall(index, _value_indices(table, "args", counts.values))
    vela = counts.delegates[index].vela
    if vela is not None:
        _check_arguments(table, call, vela, counts.values)
    return call


def _check_arguments(table: Table, call: DelegateCall, vela: VelaBlocks, values: Sequence[Value]) -> None:
    """An Ethos-U delegate is called with as many tensors as its payload lists, of the same sizes."""
    slots = (*vela.inputs, *vela.outputs)
    if len(call.args) != len(slots):
        _check_lost_outputs(table, call, vela, values)
        raise table.error(f"has {len(call.args)} values, but the delegate takes {len(slots)}", field="args")
    for position, (index, slot) in enumerate(zip(call.args, slots, strict=True)):
        value = values[index]
        if not isinstance(value, Tensor) or value.nbytes != slot.nbytes:
            found = f"a tensor of {value.nbytes} bytes" if isinstance(value, Tensor) else f"a {value.kind}"
            raise table.error(
                f"gives {found} where the delegate has {slot.nbytes} bytes", field=f"args[{position}]"
            )


def _check_lost_outputs(table: Table, call: DelegateCall, vela: VelaBlocks, values: Sequence[Value]) -> None:
    """InputError when the payload fits the call but for outputs that it lacks: the compiler's fault, not damage."""
    found = [
        value.nbytes if isinstance(value, Tensor) else None for value in map(values.__getitem__, call.args)
    ]
    inputs, outputs = found[: len(vela.inputs)], found[len(vela.inputs) :]
    left = iter(outputs)
    in_order = all(slot.nbytes in left for slot in vela.outputs)
    if None in found or inputs != [slot.nbytes for slot in vela.inputs] or not in_order:
        return
    if len(outputs) > len(vela.outputs):
        raise InputError(
            f"delegate {call.delegate_index} of the program has {len(outputs)} outputs, but Vela's commands for it "
            f"write {len(vela.outputs)} ({table.where}): the file is intact, but the compiler lost the rest; this "
            "is a known fault of Vela with tensors that a delegate both returns and uses, or of ExecuTorch with an "
            "unused input",
            "compile the model again with `ethosu-sdk compile`, which works around this fault",
        )


def _move_call(table: Table, counts: _Counts) -> MoveCall:
    call = MoveCall(_value_index(table, "move_from", counts), _value_index(table, "move_to", counts))
    source, target = counts.values[call.move_from], counts.values[call.move_to]
    both = isinstance(source, Tensor) and isinstance(target, Tensor)
    if both and _type_of(source) != _type_of(target):
        raise table.error("takes the place of a tensor of another type or shape", field="move_from")
    return call


def _type_of(value: Value) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    assert isinstance(value, Tensor)
    return value.dtype, value.sizes, value.dim_order


def _jump(table: Table, counts: _Counts) -> JumpFalseCall:
    destination = table.integer("destination_instruction")
    # One past the last instruction is the end of the chain.
    _check_index(table, "destination_instruction", destination, counts.instructions + 1, "instructions")
    return JumpFalseCall(_value_index(table, "cond_value_index", counts), destination)


def _free_call(table: Table, counts: _Counts) -> FreeCall:
    return FreeCall(_value_index(table, "value_index", counts))


_INSTRUCTIONS: dict[str, Callable[[Table, _Counts], Instruction]] = {
    "KernelCall": _kernel_call,
    "DelegateCall": _delegate_call,
    "MoveCall": _move_call,
    "JumpFalseCall": _jump,
    "FreeCall": _free_call,
}
