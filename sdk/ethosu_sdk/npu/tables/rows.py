"""Reading the tables of command_table.py and register_table.py: rows of text with bit fields."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ethosu_sdk.npu.tables import command_table, register_table
from ethosu_sdk.targets import Generation

_FIELD = re.compile(r"(\w+)\[(\d+)(?::(\d+))?\]")
_REPEATED = re.compile(r"(\w+)\*(\d+)\+(\d+)")


@dataclass(frozen=True)
class Field:
    """Bits `high`:`low` of a register, or of a command's words taken together."""

    name: str
    high: int
    low: int

    @functools.cached_property
    def mask(self) -> int:
        """The field's bits, in place."""
        return (1 << (self.high + 1)) - (1 << self.low)

    def of(self, bits: int) -> int:
        """The field's value in `bits`, unsigned."""
        return (bits & self.mask) >> self.low


@dataclass(frozen=True)
class CommandType:
    """One row of the command table. Operations act; the others set the register that `register` names."""

    opcode: int
    words: int
    name: str
    fields: tuple[Field, ...]

    @property
    def is_operation(self) -> bool:
        """Whether the command starts something, rather than setting a register."""
        return self.name.startswith("OP_")

    @functools.cached_property
    def register(self) -> str:
        """The register that a SET command writes, such as ``IFM_PRECISION``."""
        return self.name.removeprefix("SET_")

    @functools.cached_property
    def field_of(self) -> dict[str, Field]:
        """Name → field."""
        return {field.name: field for field in self.fields}


@dataclass(frozen=True)
class Register:
    """One memory-mapped register. Bits outside of `mask` read as 0."""

    offset: int
    name: str
    writable: bool
    fields: tuple[Field, ...]

    @property
    def mask(self) -> int:
        """All bits that belong to a field."""
        return sum(field.mask for field in self.fields)


@functools.cache
def command_types(generation: Generation) -> dict[tuple[int, int], CommandType]:
    """(words, opcode) → command type, for one generation."""
    found: dict[tuple[int, int], CommandType] = {}
    for words, text in ((1, command_table.ONE_WORD), (2, command_table.TWO_WORDS)):
        for opcode, name, rest in _rows(text, generation):
            found[words, opcode] = CommandType(opcode, words, name, tuple(map(_field, rest)))
    return found


@functools.cache
def registers(generation: Generation) -> dict[int, Register]:
    """Offset → memory-mapped register, for one generation."""
    found: dict[int, Register] = {}
    for offset, name, (access, *rest) in _rows(register_table.REGISTERS, generation):
        fields = tuple(map(_field, rest))
        for place, single in _expanded(offset, name):
            found[place] = Register(place, single, access == "rw", fields)
    return found


def _expanded(offset: int, name: str) -> Iterator[tuple[int, str]]:
    repeated = _REPEATED.fullmatch(name)
    if repeated is None:
        yield offset, name
        return
    stem, count, step = repeated.groups()
    for index in range(int(count)):
        yield offset + index * int(step), f"{stem}{index}"


def _rows(text: str, generation: Generation) -> Iterator[tuple[int, str, list[str]]]:
    """(number, name, the other words) of the generation's rows; a line that starts with a space goes on."""
    for line in re.sub(r"\n +", " ", text.strip()).splitlines():
        number, families, name, *rest = line.split()
        if families in ("both", generation):
            yield int(number, 16), name, rest


def _field(text: str) -> Field:
    match = _FIELD.fullmatch(text)
    if match is None:
        raise ValueError(f"not a field: {text}")
    name, high, low = match.groups()
    return Field(name, int(high), int(low if low is not None else high))
