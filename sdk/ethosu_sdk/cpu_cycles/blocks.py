"""What was executed: blocks of instructions and how often each ran."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Block:
    """Instructions without a branch into or out of their middle.

    `code` is the machine code (Thumb) of the addresses from `start` to `end`, which is the first one behind it.
    """

    start: int
    end: int
    instructions: int
    code: bytes = field(repr=False)
    executions: int
