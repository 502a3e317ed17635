"""Finding and changing single fields of a `.pte`, with the flatbuffers package, not with the SDK's reader."""

import json
import re
import struct
import time

from flatbuffers.table import Table

from ethosu_sdk.analysis.inspect_command import described_methods
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.program import pte, pte_schema
from ethosu_sdk.program.execution_plan import DelegateCall, ExecutionPlan, KernelCall, Tensor
from tests.places import GOLDEN_PTE

NAMES = tuple(sorted(path.stem for path in GOLDEN_PTE.glob("*.pte")))

_CODES = {"bool": "B", "byte": "b", "ubyte": "B", "int": "i", "uint": "I", "uint32": "I"}
_CODES |= {"long": "q", "int64": "q", "uint64": "Q", "double": "d"}


def golden(name: str) -> bytes:
    """The content of tests/golden/pte/`name`.pte."""
    return (GOLDEN_PTE / f"{name}.pte").read_bytes()


def _slot(kind: str, field: str) -> tuple[int, str]:
    slot = 0
    for name, spelled in pte_schema.TABLES[kind].items():
        if name == field:
            return slot, spelled
        slot += 2 if spelled in pte_schema.UNIONS else 1
    raise KeyError(f"{kind}.{field}")


def present(data: bytearray, table: Table, slot: int, size: int) -> int:
    """Give `table` the field in `slot`, which it leaves out, with the value 0; its offset in the table.

    The field and a vtable of the table's own go to the end of a file that has no segments.
    """
    data.extend(bytes(-len(data) % 8 + size + -size % 4))
    offset = len(data) - size - table.Pos - (-size % 4)
    start = table.Pos - struct.unpack_from("<i", data, table.Pos)[0]
    length = struct.unpack_from("<H", data, start)[0]
    vtable = bytearray(data[start : start + length].ljust(6 + 2 * slot, b"\0"))
    struct.pack_into("<H", vtable, 0, len(vtable))
    struct.pack_into("<H", vtable, 4 + 2 * slot, offset)
    struct.pack_into("<i", data, table.Pos, table.Pos - len(data))
    data.extend(vtable)
    return offset


def locate(data: bytes | bytearray, path: str) -> tuple[int, str]:
    """(byte position, struct format) of the scalar at `path`, such as ``execution_plan[0].inputs[0]``.

    A scalar that is left out is added when `data` can be changed.

    A last part of ``#ref`` stands for the reference to a field, ``#len`` for the length of its vector,
    ``#type`` for the type of a union.
    """
    table, kind = Table(data, struct.unpack_from("<I", data)[0]), "Program"
    parts = path.split(".")
    for number, part in enumerate(parts):
        field, index, suffix = re.fullmatch(r"(\w+)(?:\[(\d+)\])?(#\w+)?", part).groups()
        slot, spelled = _slot(kind, field)
        offset = table.Offset(4 + 2 * (slot + (spelled in pte_schema.UNIONS and suffix != "#type")))
        if not offset and isinstance(data, bytearray) and spelled in _CODES:
            offset = present(data, table, slot, struct.calcsize(f"<{_CODES[spelled]}"))
        assert offset, f"{path}: {field} is absent"
        position = table.Pos + offset
        if suffix == "#type":
            return position, "B"
        if suffix == "#ref":
            return position, "I"
        if suffix == "#len":
            return position + struct.unpack_from("<I", data, position)[0], "I"
        element = spelled.strip("[]")
        code = "b" if element in pte_schema.ENUMS else _CODES.get(element, "I")
        if index is not None:
            position = table.Vector(offset) + int(index) * struct.calcsize(f"<{code}")
        if number == len(parts) - 1:
            return position, code
        if element in pte_schema.UNIONS:
            type_slot = table.Pos + table.Offset(4 + 2 * slot)
            element = pte_schema.UNIONS[element][data[type_slot] - 1]
        table, kind = Table(data, table.Indirect(position)), element
    raise AssertionError("an empty path")


def changed(data: bytes, *changes: tuple[str, float]) -> bytearray:
    """`data` with other values at some paths."""
    copy = bytearray(data)
    for path, value in changes:
        position, code = locate(copy, path)
        struct.pack_into(f"<{code}", copy, position, value)
    return copy


LIMIT_S = 2.0  # of one damaged file of a few kilobytes; typical is a millisecond


def check(data: bytes | bytearray) -> bool:
    """Whether `data` is read. Fails on any exception but InputError, on nonsense and on slowness."""
    start = time.process_time()
    try:
        program = pte.parse(data)
        text = json.dumps([row.to_json() for row in described_methods(program)], allow_nan=False)
    except InputError as error:
        if not (error.message and error.hint):
            raise AssertionError("an error that says nothing") from error
        return False
    finally:
        assert time.process_time() - start < LIMIT_S
    assert len(text) < 100 * len(data) + 10_000
    check_sound(program)
    return True


def check_sound(program: pte.Pte) -> None:
    """What callers rely on without looking: every index is one."""
    for plan in program.plans:
        count = len(plan.values)
        assert all(0 <= index < count for index in (*plan.inputs, *plan.outputs))
        for call in plan.instructions:
            if isinstance(call, KernelCall):
                assert 0 <= call.op_index < len(plan.operators)
            if isinstance(call, KernelCall | DelegateCall):
                assert all(0 <= index < count for index in call.args)
        for value in plan.values:
            if isinstance(value, Tensor):
                check_tensor(value, plan)


def check_tensor(tensor: Tensor, plan: ExecutionPlan) -> None:
    assert sorted(tensor.dim_order) == list(range(len(tensor.sizes)))
    assert tensor.nbytes >= 0
    assert tensor.data is None or len(tensor.data) == tensor.nbytes
    if tensor.allocation is not None:
        size = plan.non_const_buffer_sizes[tensor.allocation.memory_id]
        assert tensor.allocation.offset + tensor.nbytes <= size
