"""Command stream → frozen commands. Stateless; the opcodes are in command_table.py."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from ethosu_sdk.npu import deadline
from ethosu_sdk.npu.errors import CommandError
from ethosu_sdk.npu.tables.rows import CommandType, command_types
from ethosu_sdk.targets import Generation

__all__ = ["Command", "CommandType", "command_types", "commands"]

_OPCODE_BITS = 0x3FF
_TWO_WORDS = 1
_MOST_BYTES = 1 << 24  # a hundred times what large models have


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
        return self.type.field_of[name].of(self.bits)

    def describe(self) -> str:
        """One line of a disassembly."""
        values = " ".join(f"{field.name}={field.of(self.bits):#x}" for field in self.type.fields)
        return f"{self.offset:#06x}  NPU_{self.type.name:<24} {values}".rstrip()


def commands(stream: bytes | memoryview, generation: Generation, start: int = 0) -> Iterator[Command]:
    """The commands of a stream of little-endian 32-bit words, from byte `start` (whole words) to its end.

    Raises CommandError for an opcode that does not exist and for a stream that ends inside a command.
    """
    if len(stream) > _MOST_BYTES:
        raise CommandError(f"the stream has {len(stream):,} bytes, more than {_MOST_BYTES:,},", _MOST_BYTES)
    if len(stream) % 4:
        raise CommandError(f"the stream has {len(stream)} bytes, not whole words", len(stream))
    words = struct.unpack(f"<{len(stream) // 4}I", stream)
    types = command_types(generation)
    position = start // 4
    while position < len(words):
        deadline.check()
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
