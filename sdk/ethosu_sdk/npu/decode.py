"""Command stream → frozen commands. Stateless; the tables are in command_table.py."""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ethosu_sdk.npu import command_table
from ethosu_sdk.npu.errors import CommandError

Generation = Literal["u55", "u85"]  # u55 stands for Ethos-U55 and Ethos-U65: one command set

_FIELD = re.compile(r"(\w+)\[(\d+)(?::(\d+))?\]")
_OPCODE_BITS = 0x3FF
_TWO_WORDS = 1


@dataclass(frozen=True)
class Field:
    """Bits `high`:`low` of a command, counted over its 64-bit pair of words."""

    name: str
    high: int
    low: int

    def of(self, bits: int) -> int:
        """The field's value in a command's bits, unsigned."""
        return bits >> self.low & ((1 << (self.high - self.low + 1)) - 1)


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


@dataclass(frozen=True)
class Command:
    """A decoded command: `bits` is its one word, or its two words with the second in bits 63:32.

    `offset` is in bytes from the start of the stream.
    """

    offset: int
    type: CommandType
    bits: int

    def field(self, name: str) -> int:
        """The value of one field, unsigned."""
        return next(field.of(self.bits) for field in self.type.fields if field.name == name)

    def describe(self) -> str:
        """One line of a disassembly."""
        values = " ".join(f"{field.name}={field.of(self.bits):#x}" for field in self.type.fields)
        return f"{self.offset:#06x}  NPU_{self.type.name:<24} {values}".rstrip()


@functools.cache
def command_types(generation: Generation) -> dict[tuple[int, int], CommandType]:
    """(words, opcode) → command type, for one generation."""
    found: dict[tuple[int, int], CommandType] = {}
    for words, text in ((1, command_table.ONE_WORD), (2, command_table.TWO_WORDS)):
        for line in _joined_lines(text):
            opcode, families, name, *fields = line.split()
            if families in ("both", generation):
                row = CommandType(int(opcode, 16), words, name, tuple(map(_field, fields)))
                found[words, row.opcode] = row
    return found


def _joined_lines(text: str) -> Iterator[str]:
    """The table's rows; a line that starts with a space continues the row before it."""
    return iter(text.strip().replace("\n ", " ").splitlines())


def _field(text: str) -> Field:
    match = _FIELD.fullmatch(text)
    if match is None:
        raise ValueError(f"not a field: {text}")
    name, high, low = match.groups()
    return Field(name, int(high), int(low if low is not None else high))


def commands(stream: bytes | memoryview, generation: Generation) -> Iterator[Command]:
    """The commands of a stream of little-endian 32-bit words, up to its end.

    Raises CommandError for an opcode that does not exist and for a stream that ends inside a command.
    """
    if len(stream) % 4:
        raise CommandError(f"the stream has {len(stream)} bytes, not whole words", len(stream))
    words = struct.unpack(f"<{len(stream) // 4}I", stream)
    types = command_types(generation)
    position = 0
    while position < len(words):
        word = words[position]
        count = 2 if word >> 14 & 3 == _TWO_WORDS else 1
        row = types.get((count, word & _OPCODE_BITS)) if word >> 14 & 3 <= _TWO_WORDS else None
        if row is None:
            raise CommandError(f"unknown command {word:#010x}", 4 * position)
        if position + count > len(words):
            raise CommandError("the stream ends inside a command", 4 * position)
        bits = word | words[position + 1] << 32 if count == 2 else word
        yield Command(4 * position, row, bits)
        position += count
