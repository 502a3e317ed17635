"""Reads untrusted FlatBuffers: every offset, size, string and enum is checked before use.

The rules are those of the FlatBuffers binary format ("FlatBuffers Internals"): forward offsets of 32 bits, a
signed 32-bit offset back to each table's vtable, natural alignment, little-endian. Callers fetch the fields
that they need by the names of a schema, and get an InputError with the path of the field when the file is
damaged.

Reading always ends: the schema has no recursion, and what is handed out may not take more than twice the
bytes of the buffer, which stops files that refer to the same table over and over (strings may be shared).
"""

from __future__ import annotations

import functools
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import InputError

_HINT = "the file is damaged; compile the model again"
_NEWER_HINT = "the file was made by a newer ExecuTorch; the SDK reads the format of ExecuTorch 1.5"

# Schema spelling → struct format. Booleans are read as bytes: "?" would take any byte for true.
_SCALARS = {
    **{"bool": "B", "byte": "b", "ubyte": "B", "uint8": "B", "int": "i", "int32": "i"},
    **{"uint": "I", "uint32": "I", "long": "q", "int64": "q", "uint64": "Q", "float": "f", "double": "d"},
}
_MAX_FILE_BYTES = 1 << 30
_MAX_BYTES = 1 << 31  # offsets have 32 bits, those to vtables a sign
# Far more than any program has; they bound the memory that a hostile file can make the reader use.
_MAX_TABLES = 1 << 20
_MAX_ELEMENTS = 1 << 22
_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")


@dataclass(frozen=True)
class Field:
    """One field of a table: its first vtable slot, its type, and how it is stored in the table."""

    slot: int
    type: str  # as the schema spells it
    code: str  # struct format of a scalar; "I" for a reference; of a union, that of its type
    size: int  # bytes in the table, which is also the alignment
    is_union: bool  # it takes a second slot, for the reference to its value


@dataclass(frozen=True)
class Schema:
    """Tables (with the number of their vtable slots), unions and enums by name."""

    tables: Mapping[str, Mapping[str, Field]]
    slots: Mapping[str, int]
    unions: Mapping[str, tuple[str, ...]]
    enums: Mapping[str, frozenset[int]]
    is_open: bool = False  # fields that come after the last known one are of a newer schema, and are not read


def make_schema(
    tables: Mapping[str, Mapping[str, str]],
    unions: Mapping[str, tuple[str, ...]],
    enums: Mapping[str, Mapping[str, int]],
    *,
    is_open: bool = False,
) -> Schema:
    """Number the vtable slots of tables that are spelled as in :mod:`ethosu_sdk.program.pte_schema`."""
    compiled: dict[str, dict[str, Field]] = {}
    slots: dict[str, int] = {}
    for table, rows in tables.items():
        slot = 0
        compiled[table] = {}
        for name, kind in rows.items():
            code = "B" if kind in unions else "b" if kind in enums else _SCALARS.get(kind, "I")
            compiled[table][name] = Field(slot, kind, code, struct.calcsize(f"<{code}"), kind in unions)
            slot += 2 if kind in unions else 1
        slots[table] = slot
    numbers = {name: frozenset(rows.values()) for name, rows in enums.items()}
    return Schema(compiled, slots, unions, numbers, is_open)


def element_code(kind: str) -> str:
    """The struct format of one number of the type `kind`, as the schema spells it."""
    return _SCALARS[kind]


@functools.lru_cache(maxsize=256)
def _format(count: int, code: str) -> struct.Struct:
    return struct.Struct(f"<{count}{code}")


def file_bytes(path: Path, suffix: str, identifier: bytes, hint: str) -> bytes:
    """The content of the file at `path`. InputError, with `hint`, for a file of another kind or size."""
    with filesystem.open_regular(path) as stream:
        try:
            size_bytes = os.fstat(stream.fileno()).st_size
            if size_bytes > _MAX_FILE_BYTES:
                raise InputError(f"{path} is too large for a {suffix} file ({size_bytes:,} bytes)", hint)
            data = stream.read(size_bytes)  # for as many bytes Python takes memory at once
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}", hint) from error
    if data[4:8] != identifier:
        from ethosu_sdk.base import file_kinds  # here, because reading a good file must stay quick

        raise file_kinds.not_a(path, f"a {suffix} file", hint)
    return data


class FlatBuffer:
    """A buffer, and how much of it was handed out so far. `suffix` is that of the file that it is in, `hint` says
    what to do about a damaged one."""

    def __init__(self, data: memoryview, schema: Schema, suffix: str = ".pte", hint: str = _HINT) -> None:
        if not 8 <= len(data) < _MAX_BYTES:
            raise InputError(
                f"the {suffix} file's tables have {len(data):,} bytes, which is not a possible size for a FlatBuffer",
                hint,
            )
        self.data = data
        self.schema = schema
        self.suffix = suffix
        self.hint = hint
        self._left_bytes = 2 * len(data)
        self._left_tables = _MAX_TABLES
        self._left_elements = _MAX_ELEMENTS
        self._vtables: dict[tuple[int, str], tuple[int, tuple[int, ...]]] = {}

    def root(self, kind: str) -> Table:
        """The root table, which is of the type `kind`."""
        return Table(self, kind, _U32.unpack_from(self.data)[0], None, kind)

    def claim(self, start: int, end: int, holder: Table) -> None:
        """Account for the bytes from `start` to `end`, which `holder` hands out."""
        self._left_bytes -= end - start
        if self._left_bytes < 0:
            raise holder.error("shares its bytes with other tables")

    def count_table(self, table: Table) -> None:
        """Account for one more table."""
        self._left_tables -= 1
        if self._left_tables < 0:
            raise table.error(f"comes after {_MAX_TABLES:,} other tables")

    def count_elements(self, count: int, table: Table) -> None:
        """Account for the `count` numbers of a vector in `table`."""
        self._left_elements -= count
        if self._left_elements < 0:
            raise table.error(f"holds a vector that takes the program to more than {_MAX_ELEMENTS:,} numbers")

    def vtable(self, table: Table, position: int) -> tuple[int, tuple[int, ...]]:
        """Where the fields of `table` end, and the offset of each slot, from the vtable at `position`."""
        key = (position, table.kind)
        if key not in self._vtables:
            self._vtables[key] = self._read_vtable(table, position)
        return self._vtables[key]

    def _read_vtable(self, table: Table, position: int) -> tuple[int, tuple[int, ...]]:
        if position % 2 or not 0 <= position <= len(self.data) - 4:
            raise table.error(f"has its vtable at byte {position}")
        (vtable_bytes,) = _U16.unpack_from(self.data, position)
        if vtable_bytes < 4 or vtable_bytes % 2 or position + vtable_bytes > len(self.data):
            raise table.error(f"has a vtable of {vtable_bytes} bytes at byte {position}")
        # The size of the table that stands next is of no use: ExecuTorch's writer shares vtables between
        # tables whose fields have equal offsets but different sizes.
        count = (vtable_bytes - 4) // 2
        slots = self.schema.slots[table.kind]
        if (
            count > slots and not self.schema.is_open
        ):  # writers leave out the slots after the last present field
            raise table.error("has a field that is not known", _NEWER_HINT)
        count = min(count, slots)
        offsets = _format(count, "H").unpack_from(self.data, position + 4) + (0,) * (slots - count)
        ends = [4]
        for name, field in self.schema.tables[table.kind].items():
            parts = ((field.slot, field.size), (field.slot + 1, 4))[: 1 + field.is_union]
            for slot, size in parts:
                if 0 < offsets[slot] < 4:
                    raise table.error(f"lies at byte {offsets[slot]} of its table", field=name)
                ends.append(offsets[slot] + size if offsets[slot] else 0)
        return max(ends), offsets


class Table:
    """One table with typed access to its fields. `kind` is its type in the schema. Every getter returns the default
    (zero, or empty) for an absent field and raises InputError for a damaged one."""

    __slots__ = ("_buffer", "_fields", "_label", "_offsets", "_parent", "kind", "position")

    def __init__(
        self, buffer: FlatBuffer, kind: str, position: int, parent: Table | None, label: str
    ) -> None:
        self._buffer = buffer
        self._parent = parent
        self._label = label
        self._fields = buffer.schema.tables[kind]
        self.kind = kind
        self.position = position
        size = len(buffer.data)
        if position % 4 or not 4 <= position <= size - 4:
            raise self.error(f"lies at byte {position} of a program of {size} bytes")
        buffer.count_table(self)
        vtable = position - _I32.unpack_from(buffer.data, position)[0]
        table_bytes, self._offsets = buffer.vtable(self, vtable)
        if table_bytes > size - position:
            raise self.error(f"has {table_bytes} bytes at byte {position} of a program of {size} bytes")
        buffer.claim(position, position + table_bytes, self)

    @property
    def where(self) -> str:
        """The path to this table from the root, such as ``execution_plan[0].values[3].val``."""
        if self._parent is None or self._parent._parent is None:
            return self._label
        return f"{self._parent.where}.{self._label}"

    def error(self, reason: str, hint: str = "", *, field: str = "") -> InputError:
        """The error that says what is wrong with this table or with its `field`."""
        path = field if field and self._parent is None else f"{self.where}.{field}" if field else self.where
        return InputError(f"damaged {self._buffer.suffix} file: {path} {reason}", hint or self._buffer.hint)

    def has(self, name: str) -> bool:
        return self._offsets[self._fields[name].slot] != 0

    def _scalar(self, name: str) -> int | float:
        field = self._fields[name]
        offset = self._offsets[field.slot]
        if not offset:
            return 0
        position = self.position + offset
        if position % field.size:
            raise self.error(f"is not aligned at byte {position}", field=name)
        value: int | float = _format(1, field.code).unpack_from(self._buffer.data, position)[0]
        return value

    def integer(self, name: str) -> int:
        """The value of an integer field, or of an enum field, which must be one of the enum's."""
        value = int(self._scalar(name))
        values = self._buffer.schema.enums.get(self._fields[name].type)
        if values is not None and value not in values:
            raise self.error(f"is {value}, which is not a value of {self._fields[name].type}", field=name)
        return value

    def boolean(self, name: str) -> bool:
        value = self._scalar(name)
        if value not in (0, 1):
            raise self.error(f"is {value}, expected 0 or 1", field=name)
        return bool(value)

    def real(self, name: str) -> float:
        return float(self._scalar(name))

    def _target(self, name: str, offset: int) -> int:
        if not offset:
            return 0
        return self._follow(name, self.position + offset)

    def _follow(self, name: str, position: int) -> int:
        if position % 4:
            raise self.error(f"is not aligned at byte {position}", field=name)
        (distance,) = _U32.unpack_from(self._buffer.data, position)
        target: int = position + distance
        if distance < 4 or target > len(self._buffer.data) - 4:
            raise self.error(f"refers to byte {target} of {len(self._buffer.data)}", field=name)
        return target

    def table(self, name: str) -> Table | None:
        """The table that a field refers to, None when it is absent."""
        field = self._fields[name]
        target = self._target(name, self._offsets[field.slot])
        return Table(self._buffer, field.type, target, self, name) if target else None

    def union(self, name: str) -> Table | None:
        """The table that a union field holds, None for "no value"; its `kind` is the member's name. A type without a
        value, which Vela 4.0 to 4.2 write, is none."""
        field = self._fields[name]
        members = self._buffer.schema.unions[field.type]
        number = int(self._scalar(name))
        target = self._target(name, self._offsets[field.slot + 1])
        if number > len(members):
            raise self.error(f"has the type number {number}, which is not a type of {field.type}", field=name)
        if target and not number:
            raise self.error("has a value but no type", field=name)
        return Table(self._buffer, members[number - 1], target, self, name) if target else None

    def _vector(self, name: str, size: int) -> tuple[int, int]:
        """(position of the first element, number of elements) of a vector with elements of `size` bytes."""
        target = self._target(name, self._offsets[self._fields[name].slot])
        if not target:
            return 0, 0
        (count,) = _U32.unpack_from(self._buffer.data, target)
        start, end = target + 4, target + 4 + count * size
        if end > len(self._buffer.data):
            raise self.error(f"has {count} elements at byte {target} of {len(self._buffer.data)}", field=name)
        if target % 4 or start % size:
            raise self.error(f"is not aligned at byte {target}", field=name)
        self._buffer.claim(target, end, self)
        return start, count

    def string(self, name: str) -> str:
        """The text of a string field; without zero bytes, where the firmware's runtime sees its end."""
        start, count = self._vector(name, 1)
        if not start:
            return ""
        end = start + count
        if end >= len(self._buffer.data) or self._buffer.data[end]:
            raise self.error("does not end with a zero byte", field=name)
        content = bytes(self._buffer.data[start:end])
        if 0 in content:
            raise self.error("has a zero byte before its end", field=name)
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.error("is not UTF-8 text", field=name) from error

    def extent(self, name: str) -> tuple[int, int]:
        """(position in the buffer, size) of the bytes of a ``[ubyte]`` field."""
        return self._vector(name, 1)

    def octets(self, name: str) -> memoryview:
        """The bytes of a ``[ubyte]`` field, shared with the buffer."""
        start, count = self._vector(name, 1)
        return self._buffer.data[start : start + count]

    def integers(self, name: str) -> tuple[int, ...]:
        return self._elements(name)

    def reals(self, name: str) -> tuple[float, ...]:
        return self._elements(name)

    def booleans(self, name: str) -> tuple[bool, ...]:
        values: tuple[int, ...] = self._elements(name)
        if any(value > 1 for value in values):
            raise self.error("holds a value other than 0 and 1", field=name)
        return tuple(map(bool, values))

    def _elements(self, name: str) -> tuple[int, ...]:
        code = _SCALARS[self._fields[name].type.strip("[]")]
        start, count = self._vector(name, struct.calcsize(f"<{code}"))
        self._buffer.count_elements(count, self)
        return struct.unpack_from(f"<{count}{code}", self._buffer.data, start) if count else ()

    def tables(self, name: str) -> list[Table]:
        kind = self._fields[name].type.strip("[]")
        start, count = self._vector(name, 4)
        return [
            Table(self._buffer, kind, self._follow(name, start + 4 * index), self, f"{name}[{index}]")
            for index in range(count)
        ]
