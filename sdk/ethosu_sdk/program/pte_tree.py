"""A program as a tree of plain values that can be changed, and a `.pte` made of such a tree. A table is a dictionary
of the fields that it has, in the names of :mod:`ethosu_sdk.program.pte_schema`. A union is a pair of its member's
name and table; a vector of numbers is a tuple, one of bytes is `bytes`, one of tables is a list."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from ethosu_sdk.program import pte_schema
from ethosu_sdk.program.flatbuffer import Field, FlatBuffer, Table, element_code
from ethosu_sdk.program.pte import SCHEMA, Pte

Node = dict[str, Any]

_HEAD_BYTES = 8  # offset of the root table, file identifier; the extended header follows
_BYTES_ALIGNMENT = 16  # of a vector of bytes: the strictest in the schema, that of constants and payloads
_SEGMENT_ALIGNMENT = 4096
_EXTENDED_HEADER = struct.Struct(
    "<4sIQQQ"
)  # magic, size, bytes of the program, base and bytes of the segments
_PROGRAM_BYTES, _SEGMENT_BASE = 16, 24  # where these two numbers of the extended header stand in the file


def read_tree(program: Pte) -> Node:
    """The tree of `program`, whose bytes were checked when it was parsed."""
    buffer = FlatBuffer(program.data[: program.header.program_bytes], SCHEMA)
    return _node(buffer.root(pte_schema.ROOT_TABLE))


def write_tree(program: Pte, tree: Node) -> bytes:
    """A file with the program `tree`, and the segments of `program` as they are."""
    header = program.header
    head_end = _HEAD_BYTES
    if header.extended:
        head_end += struct.unpack_from("<I", program.data, _HEAD_BYTES + 4)[0]
    out = bytearray(program.data[:head_end])
    root = _Writer(out).table(pte_schema.ROOT_TABLE, tree)
    struct.pack_into("<I", out, 0, root)
    if header.extended:
        struct.pack_into("<Q", out, _PROGRAM_BYTES, len(out))
    if header.segment_base:
        out.extend(bytes(-len(out) % _SEGMENT_ALIGNMENT))
        struct.pack_into("<Q", out, _SEGMENT_BASE, len(out))
        out.extend(program.data[header.segment_base :])
    return bytes(out)


def make_file(tree: Node, segments: Sequence[bytes]) -> bytes:
    """A file with the program `tree` and its `segments`, whose places it notes in the tree."""
    offset, rows = 0, []
    for content in segments:
        rows.append({"offset": offset, "size": len(content)})
        offset += len(content) + -len(content) % _BYTES_ALIGNMENT
    out = bytearray(4) + pte_schema.FILE_IDENTIFIER
    out += _EXTENDED_HEADER.pack(b"eh00", _EXTENDED_HEADER.size, 0, 0, offset)
    root = _Writer(out).table(pte_schema.ROOT_TABLE, {**tree, "segments": rows})
    program_bytes = len(out)
    out.extend(bytes(-len(out) % _SEGMENT_ALIGNMENT))
    struct.pack_into("<I", out, 0, root)
    struct.pack_into("<QQ", out, _PROGRAM_BYTES, program_bytes, len(out))
    for content in segments:
        out += content + bytes(-len(content) % _BYTES_ALIGNMENT)
    return bytes(out)


def _node(table: Table) -> Node:
    node: Node = {}
    for name, kind in pte_schema.TABLES[table.kind].items():
        if kind in pte_schema.UNIONS:
            member = table.union(name)
            if member is not None:
                node[name] = (member.kind, _node(member))
        elif table.has(name):
            node[name] = _value(table, name, kind)
    return node


def _value(table: Table, name: str, kind: str) -> Any:
    if kind == "[ubyte]":
        return bytes(table.octets(name))
    if kind == "string":
        return table.string(name)
    if kind == "double":
        return table.real(name)
    element = kind.strip("[]")
    if element in pte_schema.TABLES:
        if kind == element:
            child = table.table(name)
            return None if child is None else _node(child)
        return [_node(row) for row in table.tables(name)]
    return table.integers(name) if kind != element else table.integer(name)


class _Writer:
    """Writes tables one after the other: each before what it refers to, because references point forward."""

    def __init__(self, out: bytearray) -> None:
        self._out = out

    def table(self, kind: str, node: Node) -> int:
        """Write `node`, a table of the type `kind`, and all that it refers to; its position."""
        out, fields = self._out, SCHEMA.tables[kind]
        parts = [part for name, value in node.items() for part in _parts(fields[name], value)]
        parts.sort(key=lambda part: -part[1])  # from the largest on, so that all are aligned
        vtable = [0] * SCHEMA.slots[kind]
        size = 4
        for slot, part_bytes, _, _ in parts:
            vtable[slot] = size
            size += part_bytes
        head = struct.pack(f"<HH{len(vtable)}H", 4 + 2 * len(vtable), size, *vtable)
        out.extend(bytes((4 - len(out) - len(head)) % 8))  # the first field comes to a multiple of 8
        out.extend(head)
        position = len(out)
        out.extend(struct.pack("<i", len(head)))
        out.extend(bytes(size - 4))
        for slot, _, code, value in parts:
            place = position + vtable[slot]
            if isinstance(code, Field):
                struct.pack_into("<I", out, place, self._target(code, value) - place)
            else:
                struct.pack_into(f"<{code}", out, place, value)
        return position

    def _target(self, field: Field, value: Any) -> int:
        """Write what `field` refers to; its position."""
        if field.is_union:
            return self.table(*value)
        if isinstance(value, str | bytes):
            octets = value.encode() if isinstance(value, str) else value
            return self._vector(len(octets), octets + b"\0" * isinstance(value, str), _BYTES_ALIGNMENT)
        if isinstance(value, dict):
            return self.table(field.type, value)
        element = field.type.strip("[]")
        if element not in pte_schema.TABLES:
            content = struct.pack(f"<{len(value)}{element_code(element)}", *value)
            return self._vector(len(value), content, 8)
        start = self._vector(len(value), bytes(4 * len(value)), 4)
        for place, row in enumerate(value, 1):
            target = self.table(element, row) - start - 4 * place
            struct.pack_into("<I", self._out, start + 4 * place, target)
        return start

    def _vector(self, count: int, content: bytes, alignment: int) -> int:
        self._out.extend(bytes((-len(self._out) - 4) % alignment))
        start = len(self._out)
        self._out.extend(struct.pack("<I", count) + content)
        return start


def _parts(field: Field, value: Any) -> list[tuple[int, int, str | Field, Any]]:
    """What a table holds of a field: (vtable slot, bytes, format of a number or the field of a reference, value)."""
    if field.is_union:
        number = SCHEMA.unions[field.type].index(value[0]) + 1
        return [(field.slot, 1, "B", number), (field.slot + 1, 4, field, value)]
    if isinstance(value, int | float):
        return [(field.slot, field.size, field.code, value)]
    return [(field.slot, 4, field, value)]
