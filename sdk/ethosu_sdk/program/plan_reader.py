"""Execution plans out of a `.pte`: its segments, values, operators, delegates and instructions, each checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.npu import vela_blocks
from ethosu_sdk.npu.vela_blocks import VelaBlocks
from ethosu_sdk.program import execution_plan as plans, pte_schema
from ethosu_sdk.program.flatbuffer import Table
from ethosu_sdk.program.named_data import (
    OTHER_EXPORT,
    Blob,
    DataFile,
    Layout,
    NamedData,
    check_block,
    named_segments,
    shortened,
)
from ethosu_sdk.program.pte_schema import SCALAR_TYPES

_SEGMENT = pte_schema.ENUMS["DataLocation"]["SEGMENT"]
_PAYLOAD_ALIGNMENT = 16  # the NPU reads command stream and weights in place
_MAX_INLINED_BYTES = 1 << 30  # of all payloads with blocks from outside
_MAX_DIMENSIONS = 16  # kTensorDimensionLimit of ExecuTorch's runtime
MOST_BYTES = 1 << 32  # of a tensor, and of all planned memory: what a 32-bit processor addresses
_EXTERNAL = pte_schema.ENUMS["TensorDataLocation"]["EXTERNAL"]
_CPU = pte_schema.ENUMS["DeviceType"]["CPU"]
_SCALAR_TYPES = {row.number: row for row in SCALAR_TYPES}
_DYNAMISMS = {number: name for name, number in pte_schema.ENUMS["TensorShapeDynamism"].items()}


@dataclass(frozen=True)
class Subsegment:
    """A segment and the offsets of the buffers in it, by buffer index."""

    segment: Blob
    offsets: tuple[int, ...]

    def buffer(self, index: int, nbytes: int, alignment: int, tensor: Table) -> memoryview:
        """The `nbytes` bytes of buffer number `index`, which `tensor` uses."""
        if index >= len(self.offsets):
            raise tensor.error(f"is {index}, there are {len(self.offsets)} buffers", field="data_buffer_idx")
        offset = self.offsets[index]
        if offset + nbytes > len(self.segment.data):
            raise tensor.error(
                f"needs bytes {offset} to {offset + nbytes} of a segment of {len(self.segment.data)} bytes"
            )
        if (self.segment.offset + offset) % alignment:
            raise tensor.error(
                f"has its data at byte {self.segment.offset + offset}, not on {alignment} bytes"
            )
        return self.segment.data[offset : offset + nbytes]


@dataclass(frozen=True)
class Storage:
    """Everything that plans refer to by index."""

    segments: tuple[Blob, ...]
    inline: tuple[Blob, ...]  # Program.backend_delegate_data
    constants: Subsegment | None
    mutable: tuple[Subsegment, ...]
    named: NamedData
    decoded: dict[tuple[int, int], tuple[memoryview, VelaBlocks]] = field(default_factory=dict)

    def vela(
        self, piece: Blob, delegate: Table, compile_specs: Mapping[str, bytes]
    ) -> tuple[memoryview, VelaBlocks]:
        """The Ethos-U payload in `piece`, which `delegate` refers to: with all of its blocks, and decoded."""
        key = piece.offset, len(piece.data)  # delegates may share a payload
        if key not in self.decoded:
            if piece.offset % _PAYLOAD_ALIGNMENT:
                raise delegate.error(
                    f"starts at byte {piece.offset}, not a multiple of 16", field="processed"
                )
            try:
                whole = vela_blocks.inlined(
                    piece.data, lambda name, key: self._block(name, key, compile_specs)
                )
                self.decoded[key] = whole, vela_blocks.parse(whole)
            except InputError as error:
                raise InputError(f"{delegate.where}: {error.message}", error.hint) from error
        return self.decoded[key]

    def _block(self, name: str, key: str, compile_specs: Mapping[str, bytes]) -> memoryview:
        """The block called `name` of an Ethos-U payload, which lies in the named data under `key`."""
        blob = self.named.require(key, f"the delegate's block '{name}' with the key")
        if blob.offset % _PAYLOAD_ALIGNMENT:
            raise InputError(
                f"the block '{name}' starts at byte {blob.offset} of its file, not a multiple of 16"
            )
        check_block(name, key, blob, compile_specs)
        copied = sum(len(payload) for payload, _ in self.decoded.values())
        if copied + len(blob.data) > _MAX_INLINED_BYTES:
            raise InputError(
                f"the delegates' data outside of the program is more than {_MAX_INLINED_BYTES:,} bytes"
            )
        return blob.data


def read_storage(
    root: Table, file: memoryview, header: plans.Header, data_files: Sequence[DataFile], path: Path | None
) -> tuple[Storage, tuple[plans.Segment, ...]]:
    """The storage of the program whose root table is `root`, and its segments; the rest as in `NamedData`."""
    segments = _segments(root, header, len(file))
    pieces = tuple(Blob(row.offset, file[row.offset : row.offset + row.size]) for row in segments)
    # Entry 0 stands for "no data" and may be there, empty.
    buffers = root.tables("constant_buffer")
    if len(buffers) > 1 or any(len(buffer.octets("storage")) for buffer in buffers):
        raise root.error(
            "holds constants within the program, a layout that ExecuTorch dropped in 2024",
            "compile the model again with ExecuTorch 1.5",
            field="constant_buffer",
        )
    constants = root.table("constant_segment")
    extents = [table.extent("data") for table in root.tables("backend_delegate_data")]
    storage = Storage(
        segments=pieces,
        inline=tuple(Blob(start, file[start : start + size]) for start, size in extents),
        constants=None if constants is None else _subsegment(constants, pieces),
        mutable=tuple(_subsegment(table, pieces) for table in root.tables("mutable_data_segments")),
        named=NamedData({key: piece for _, key, piece in named_segments(root, pieces)}, data_files, path),
    )
    return storage, segments


def _segments(root: Table, header: plans.Header, file_bytes: int) -> tuple[plans.Segment, ...]:
    """All segments: in the order of their offsets and apart from each other, but for empty ones."""
    tables = root.tables("segments")
    segments = tuple(_file_segment(table, header, file_bytes) for table in tables)
    end = header.segment_base
    for table, segment in zip(tables, segments, strict=True):
        if segment.size and segment.offset < end:
            raise table.error(f"starts at byte {segment.offset}, before the one before it ends")
        end = max(end, segment.offset + segment.size)
    return segments


def _file_segment(table: Table, header: plans.Header, file_bytes: int) -> plans.Segment:
    offset, size = table.integer("offset"), table.integer("size")
    if size and not header.extended:
        raise table.error("holds data, but the file has no header with the start of the segments")
    end = header.segment_base + offset + size
    if end > file_bytes or (header.segment_bytes and offset + size > header.segment_bytes):
        raise table.error(f"ends at byte {end} of a file of {file_bytes} bytes")
    return plans.Segment(header.segment_base + offset, size)


def _subsegment(table: Table, segments: tuple[Blob, ...]) -> Subsegment:
    offsets = table.integers("offsets")
    index = table.integer("segment_index")
    if index < len(segments):
        return Subsegment(segments[index], offsets)
    if any(offsets):
        raise table.error(f"is {index}, there are {len(segments)} segments", field="segment_index")
    return Subsegment(Blob(0, memoryview(b"")), offsets)


def _values(plan: Table, storage: Storage, buffer_sizes: Sequence[int]) -> tuple[plans.Value, ...]:
    tables = [(row, row.union("val")) for row in plan.tables("values")]
    values = tuple(
        plans.Scalar("Null", None) if value is None else _value(value, storage, buffer_sizes)
        for _, value in tables
    )
    for (row, _), value in zip(tables, values, strict=True):
        if isinstance(value, plans.List):
            _check_items(row, value, values)
    return values


def _value(table: Table, storage: Storage, buffer_sizes: Sequence[int]) -> plans.Value:
    kind = table.kind
    if kind == "Tensor":
        return _tensor(table, storage, buffer_sizes)
    if kind == "Null":
        return plans.Scalar(kind, None)
    if kind in _SCALARS:
        return plans.Scalar(kind, _SCALARS[kind](table, f"{kind.lower()}_val"))
    return plans.List(kind, _LISTS.get(kind, Table.integers)(table, "items"))


_SCALARS: dict[str, Callable[[Table, str], int | bool | float | str]] = {
    "Int": Table.integer,
    "Bool": Table.boolean,
    "Double": Table.real,
    "String": Table.string,
}
# The others hold integers.
_LISTS: dict[str, Callable[[Table, str], tuple[float, ...] | tuple[bool, ...]]] = {
    "DoubleList": Table.reals,
    "BoolList": Table.booleans,
}
# Kinds that the items of a list may refer to. An integer that is computed at run time may start as Null.
_ITEM_KINDS = {
    "IntList": ("Int", "Null"),
    "TensorList": ("Tensor",),
    "OptionalTensorList": ("Tensor", "Null"),
}


def _check_items(row: Table, value: plans.List, values: tuple[plans.Value, ...]) -> None:
    kinds = _ITEM_KINDS.get(value.kind)
    if kinds is None:
        return
    for item in value.items:
        if item == -1 and value.kind == "OptionalTensorList":
            continue
        index = int(item)
        if not 0 <= index < len(values):
            raise row.error(f"lists value {index}, there are {len(values)}", field="val.items")
        if values[index].kind not in kinds:
            raise row.error(
                f"lists value {index}, a {values[index].kind}, in a {value.kind}", field="val.items"
            )


def _tensor(table: Table, storage: Storage, buffer_sizes: Sequence[int]) -> plans.Tensor:
    scalar_type = _SCALAR_TYPES[table.integer("scalar_type")]
    element_bytes = scalar_type.element_bytes
    if table.integer("storage_offset"):
        raise table.error(f"is {table.integer('storage_offset')}, expected 0", field="storage_offset")
    sizes = _sizes(table)
    nbytes = _nbytes(table, sizes, element_bytes)
    allocation = _allocation(table, nbytes, buffer_sizes)
    if allocation is not None and allocation.offset % element_bytes:
        raise table.error(
            f"puts the {scalar_type.dtype} tensor at byte {allocation.offset} of a buffer",
            field="allocation_info",
        )
    mutable_index, name, is_external = _extra(table)
    index = table.integer("data_buffer_idx")
    data = None
    if is_external:
        layout = Layout(scalar_type.dtype, sizes, _dim_order(table, len(sizes)))
        data = _named(table, storage, name, layout, nbytes, element_bytes)
    elif index and allocation is None:
        if storage.constants is None:
            raise table.error(f"is {index}, but the program has no constants", field="data_buffer_idx")
        data = storage.constants.buffer(index, nbytes, element_bytes, table)
    elif index:
        data = _initial_state(table, storage, mutable_index, index, nbytes)
    return plans.Tensor(
        dtype=scalar_type.dtype,
        element_bytes=element_bytes,
        sizes=sizes,
        dim_order=_dim_order(table, len(sizes)),
        dynamism=_DYNAMISMS[table.integer("shape_dynamism")],
        data_buffer_idx=index,
        allocation=allocation,
        data=data,
        name=name,
        external_name=name if is_external else "",
    )


def _sizes(table: Table) -> tuple[int, ...]:
    sizes = table.integers("sizes")
    if len(sizes) > _MAX_DIMENSIONS:
        raise table.error(f"has {len(sizes)} dimensions, at most {_MAX_DIMENSIONS} exist", field="sizes")
    if sizes and min(sizes) < 0:
        raise table.error(f"is {list(sizes)}", field="sizes")
    return sizes


def _nbytes(table: Table, sizes: tuple[int, ...], element_bytes: int) -> int:
    # Zero-sized dimensions do not count: a runtime that multiplies in order overflows before it meets them.
    nbytes = element_bytes
    for size in sizes:
        nbytes *= size or 1
    if nbytes > MOST_BYTES:
        raise table.error(f"is {list(sizes)}, more than 4 GiB", field="sizes")
    return 0 if 0 in sizes else nbytes


def _dim_order(table: Table, rank: int) -> tuple[int, ...]:
    order = tuple(table.octets("dim_order"))
    if len(order) != rank or sorted(order) != list(range(rank)):
        raise table.error(f"is {list(order)} for {rank} dimensions", field="dim_order")
    return order


def _allocation(table: Table, nbytes: int, buffer_sizes: Sequence[int]) -> plans.Allocation | None:
    details = table.table("allocation_info")
    if details is None:
        return None
    memory_id = details.integer("memory_id")
    offset = details.integer("memory_offset_high") << 32 | details.integer("memory_offset_low")
    if not 1 <= memory_id < len(buffer_sizes):
        raise details.error(
            f"is {memory_id}, there are {max(len(buffer_sizes) - 1, 0)} buffers", field="memory_id"
        )
    if offset + nbytes > buffer_sizes[memory_id]:
        raise details.error(
            f"puts {nbytes} bytes at {offset} into a buffer of {buffer_sizes[memory_id]} bytes"
        )
    return plans.Allocation(memory_id, offset)


def _extra(table: Table) -> tuple[int, str, bool]:
    """(number of the segment of initial states, name, whether the data is outside of the program)"""
    extra = table.table("extra_tensor_info")
    if extra is None:
        return 0, "", False
    if extra.integer("device_type") != _CPU:
        raise extra.error("places the tensor on another device than the CPU", field="device_type")
    name = extra.string("fully_qualified_name")
    external = extra.integer("location") == _EXTERNAL
    if external and not name:
        raise extra.error("says that the data is external, but gives it no name", field="location")
    return extra.integer("mutable_data_segments_idx"), name, external


def _named(
    table: Table, storage: Storage, key: str, layout: Layout, nbytes: int, alignment: int
) -> memoryview | None:
    """The data of the tensor in `table`; None when there is none under `key`."""
    blob = storage.named.find(key)
    if blob is None:
        return None
    if blob.layout is None and key in storage.named.own:  # a .pte names bytes alone
        is_same = len(blob.data) >= nbytes
    else:
        is_same = blob.layout == layout and len(blob.data) == nbytes
    if not is_same:
        found = f"{blob.layout or 'no tensor'} of {len(blob.data):,} bytes"
        raise InputError(
            f"the program's data '{shortened(key)}' ({table.where}) is {layout} of {nbytes:,} bytes, but the "
            f"data file has {found}",
            OTHER_EXPORT,
        )
    if blob.offset % alignment:
        raise table.error(f"has its data '{shortened(key)}' at byte {blob.offset}, not on {alignment} bytes")
    return blob.data[:nbytes]


def _initial_state(
    table: Table, storage: Storage, mutable_index: int, buffer: int, nbytes: int
) -> memoryview:
    if mutable_index >= len(storage.mutable):
        raise table.error(
            f"is {mutable_index}, there are {len(storage.mutable)} such segments",
            field="extra_tensor_info.mutable_data_segments_idx",
        )
    # ExecuTorch packs initial states without gaps, and runtimes copy them: an int64 may follow a bool.
    return storage.mutable[mutable_index].buffer(buffer, nbytes, 1, table)


def read_plan(table: Table, storage: Storage) -> plans.ExecutionPlan:
    name = table.string("name")
    if not name:
        raise table.error("is empty", field="name")
    buffer_sizes = _buffer_sizes(table)
    values = _values(table, storage, buffer_sizes)
    operators = tuple(_operator(row) for row in table.tables("operators"))
    delegates = tuple(_delegate(row, storage) for row in table.tables("delegates"))
    chains = table.tables("chains")
    if not chains:
        raise table.error("is empty", field="chains")
    return plans.ExecutionPlan(
        name=name,
        values=values,
        inputs=_value_indices(table, "inputs", values),
        outputs=_value_indices(table, "outputs", values),
        chains=tuple(_chain(row, values, operators, delegates) for row in chains),
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


def _value_indices(table: Table, field: str, values: Sequence[plans.Value]) -> tuple[int, ...]:
    indices = table.integers(field)
    for index in indices:
        _check_index(table, field, index, len(values), "values")
    return indices


def _check_index(table: Table, field: str, index: int, count: int, what: str) -> int:
    if not 0 <= index < count:
        raise table.error(f"refers to number {index} of {count} {what}", field=field)
    return index


def _operator(table: Table) -> plans.Operator:
    operator = plans.Operator(table.string("name"), table.string("overload"))
    if not operator.name:
        raise table.error("is empty", field="name")
    return operator


def _delegate(table: Table, storage: Storage) -> plans.Delegate:
    identifier, reference = table.string("id"), table.table("processed")
    if not identifier or reference is None:
        raise table.error("is missing", field="processed" if identifier else "id")
    pieces = storage.segments if reference.integer("location") == _SEGMENT else storage.inline
    index = reference.integer("index")
    if index >= len(pieces):
        raise reference.error(f"is {index}, there are {len(pieces)} payloads", field="index")
    piece = pieces[index]
    specs = _compile_specs(table)
    if identifier != plans.ETHOSU_BACKEND:
        return plans.Delegate(identifier, piece.offset, piece.data, specs, None)
    payload, vela = storage.vela(piece, table, specs)
    return plans.Delegate(identifier, piece.offset, payload, specs, vela)


def _compile_specs(table: Table) -> Mapping[str, bytes]:
    specs: dict[str, bytes] = {}
    for row in table.tables("compile_specs"):
        key = row.string("key")
        if key in specs:
            raise row.error(f"is {key!r}, which is used twice", field="key")
        specs[key] = bytes(row.octets("value"))
    return specs


def _chain(
    table: Table,
    values: Sequence[plans.Value],
    operators: Sequence[plans.Operator],
    delegates: Sequence[plans.Delegate],
) -> plans.Chain:
    rows = table.tables("instructions")
    return plans.Chain(
        inputs=_value_indices(table, "inputs", values),
        outputs=_value_indices(table, "outputs", values),
        instructions=tuple(_instruction(row, len(rows), values, operators, delegates) for row in rows),
    )


def _instruction(
    row: Table,
    instructions: int,
    values: Sequence[plans.Value],
    operators: Sequence[plans.Operator],
    delegates: Sequence[plans.Delegate],
) -> plans.Instruction:
    """The instruction in `row`, one of so many `instructions` of its chain."""
    table = row.union("instr_args")
    if table is None:
        raise row.error("is missing", field="instr_args")

    def index(field: str, count: int, what: str) -> int:
        return _check_index(table, field, table.integer(field), count, what)

    def value(field: str) -> int:
        return index(field, len(values), "values")

    if table.kind == "KernelCall":
        operator = index("op_index", len(operators), "operators")
        return plans.KernelCall(operator, _value_indices(table, "args", values))
    if table.kind == "DelegateCall":
        number = index("delegate_index", len(delegates), "delegates")
        call = plans.DelegateCall(number, _value_indices(table, "args", values))
        vela = delegates[number].vela
        if vela is not None:
            _check_arguments(table, call, vela, values)
        return call
    if table.kind == "MoveCall":
        move = plans.MoveCall(value("move_from"), value("move_to"))
        source, target = values[move.move_from], values[move.move_to]
        if (
            isinstance(source, plans.Tensor)
            and isinstance(target, plans.Tensor)
            and _form(source) != _form(target)
        ):
            raise table.error("takes the place of a tensor of another type or shape", field="move_from")
        return move
    if table.kind == "JumpFalseCall":
        # One past the last instruction is the end of the chain.
        destination = index("destination_instruction", instructions + 1, "instructions")
        return plans.JumpFalseCall(value("cond_value_index"), destination)
    return plans.FreeCall(value("value_index"))


def _form(tensor: plans.Tensor) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    return tensor.dtype, tensor.sizes, tensor.dim_order


def _check_arguments(
    table: Table, call: plans.DelegateCall, vela: VelaBlocks, values: Sequence[plans.Value]
) -> None:
    """An Ethos-U delegate is called with as many tensors as its payload lists, of the same sizes."""
    slots = (*vela.inputs, *vela.outputs)
    if len(call.args) != len(slots):
        _check_lost_outputs(table, call, vela, values)
        raise table.error(f"has {len(call.args)} values, but the delegate takes {len(slots)}", field="args")
    for position, (index, slot) in enumerate(zip(call.args, slots, strict=True)):
        value = values[index]
        if not isinstance(value, plans.Tensor) or value.nbytes != slot.nbytes:
            found = (
                f"a tensor of {value.nbytes} bytes" if isinstance(value, plans.Tensor) else f"a {value.kind}"
            )
            raise table.error(
                f"gives {found} where the delegate has {slot.nbytes} bytes", field=f"args[{position}]"
            )


def _check_lost_outputs(
    table: Table, call: plans.DelegateCall, vela: VelaBlocks, values: Sequence[plans.Value]
) -> None:
    """InputError when the payload fits the call but for outputs that it lacks: the compiler's fault, not damage."""
    found = [
        value.nbytes if isinstance(value, plans.Tensor) else None
        for value in map(values.__getitem__, call.args)
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
