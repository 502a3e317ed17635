"""The values of an execution plan: tensors, scalars and lists, each checked against the memory it names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ethosu_sdk.errors import InputError
from ethosu_sdk.pte import schema
from ethosu_sdk.pte.data_file import Layout, shortened
from ethosu_sdk.pte.flatbuffer import Table
from ethosu_sdk.pte.model import Allocation, List, Scalar, Tensor, Value
from ethosu_sdk.pte.named_data import OTHER_EXPORT
from ethosu_sdk.pte.scalar_types import SCALAR_TYPES
from ethosu_sdk.pte.storage import Storage

_MAX_DIMENSIONS = 16  # kTensorDimensionLimit of ExecuTorch's runtime
MOST_BYTES = 1 << 32  # of a tensor, and of all planned memory: what a 32-bit processor addresses
_EXTERNAL = schema.ENUMS["TensorDataLocation"]["EXTERNAL"]
_CPU = schema.ENUMS["DeviceType"]["CPU"]
_SCALAR_TYPES = {row.number: row for row in SCALAR_TYPES}
_DYNAMISMS = {number: name for name, number in schema.ENUMS["TensorShapeDynamism"].items()}


def read_values(plan: Table, storage: Storage, buffer_sizes: Sequence[int]) -> tuple[Value, ...]:
    """All values of `plan`, whose planned buffers have the sizes `buffer_sizes`."""
    tables = [(row, row.union("val")) for row in plan.tables("values")]
    values = tuple(
        Scalar("Null", None) if value is None else _value(value, storage, buffer_sizes) for _, value in tables
    )
    for (row, _), value in zip(tables, values, strict=True):
        if isinstance(value, List):
            _check_items(row, value, values)
    return values


def _value(table: Table, storage: Storage, buffer_sizes: Sequence[int]) -> Value:
    if table.kind == "Tensor":
        return _tensor(table, storage, buffer_sizes)
    if table.kind in _SCALARS:
        return Scalar(table.kind, _SCALARS[table.kind](table))
    return List(table.kind, _LISTS[table.kind](table))


_SCALARS: dict[str, Callable[[Table], int | bool | float | str | None]] = {
    "Null": lambda _table: None,
    "Int": lambda table: table.integer("int_val"),
    "Bool": lambda table: table.boolean("bool_val"),
    "Double": lambda table: table.real("double_val"),
    "String": lambda table: table.string("string_val"),
}
_LISTS: dict[str, Callable[[Table], tuple[int, ...] | tuple[float, ...] | tuple[bool, ...]]] = {
    "IntList": lambda table: table.integers("items"),
    "DoubleList": lambda table: table.reals("items"),
    "BoolList": lambda table: table.booleans("items"),
    "TensorList": lambda table: table.integers("items"),
    "OptionalTensorList": lambda table: table.integers("items"),
}

# Kinds that the items of a list may refer to. An integer that is computed at run time may start as Null.
_ITEM_KINDS = {
    "IntList": ("Int", "Null"),
    "TensorList": ("Tensor",),
    "OptionalTensorList": ("Tensor", "Null"),
}


def _check_items(row: Table, value: List, values: tuple[Value, ...]) -> None:
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


@dataclass(frozen=True)
class _Extra:
    mutable_index: int = 0
    name: str = ""
    external: bool = False


def _tensor(table: Table, storage: Storage, buffer_sizes: Sequence[int]) -> Tensor:
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
    extra = _extra(table)
    index = table.integer("data_buffer_idx")
    data = None
    if extra.external:
        layout = Layout(scalar_type.dtype, sizes, _dim_order(table, len(sizes)))
        data = _named(table, storage, extra.name, layout, (nbytes, element_bytes))
    elif index:
        data = _data(table, storage, (index, nbytes, element_bytes), extra, allocation is not None)
    return Tensor(
        dtype=scalar_type.dtype,
        element_bytes=element_bytes,
        sizes=sizes,
        dim_order=_dim_order(table, len(sizes)),
        dynamism=_DYNAMISMS[table.integer("shape_dynamism")],
        data_buffer_idx=index,
        allocation=allocation,
        data=data,
        name=extra.name,
        external_name=extra.name if extra.external else "",
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


def _allocation(table: Table, nbytes: int, buffer_sizes: Sequence[int]) -> Allocation | None:
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
    return Allocation(memory_id, offset)


def _extra(table: Table) -> _Extra:
    extra = table.table("extra_tensor_info")
    if extra is None:
        return _Extra()
    if extra.integer("device_type") != _CPU:
        raise extra.error("places the tensor on another device than the CPU", field="device_type")
    name = extra.string("fully_qualified_name")
    external = extra.integer("location") == _EXTERNAL
    if external and not name:
        raise extra.error("says that the data is external, but gives it no name", field="location")
    return _Extra(extra.integer("mutable_data_segments_idx"), name, external)


def _named(
    table: Table, storage: Storage, key: str, layout: Layout, room: tuple[int, int]
) -> memoryview | None:
    """The data of the tensor in `table`, with `room` for (bytes, alignment); None when there is none under `key`."""
    blob = storage.named.find(key)
    if blob is None:
        return None
    nbytes, alignment = room
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


def _data(
    table: Table, storage: Storage, buffer: tuple[int, int, int], extra: _Extra, planned: bool
) -> memoryview:
    """The constant, or with `planned` the initial state, in `buffer`: (index, bytes, element bytes)."""
    index, nbytes, alignment = buffer
    if not planned:
        if storage.constants is None:
            raise table.error(f"is {index}, but the program has no constants", field="data_buffer_idx")
        return storage.constants.buffer(index, nbytes, alignment, table)
    if extra.mutable_index >= len(storage.mutable):
        raise table.error(
            f"is {extra.mutable_index}, there are {len(storage.mutable)} such segments",
            field="extra_tensor_info.mutable_data_segments_idx",
        )
    # ExecuTorch packs initial states without gaps, and runtimes copy them: an int64 may follow a bool.
    return storage.mutable[extra.mutable_index].buffer(index, nbytes, 1, table)
