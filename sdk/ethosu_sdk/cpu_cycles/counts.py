"""What a simulator counted: the blocks of a run, and of each of its segments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.cpu_cycles.blocks import Block

# Blocks with which a program waits end with one of these (Armv8-M Architecture Reference Manual, T1 encodings).
_NOP = 0xBF00
_WFI, _WFE, _BRANCH_TO_ITSELF = b"\x30\xbf", b"\x20\xbf", b"\xfe\xe7"


@dataclass(frozen=True)
class Mark:
    """An instruction at which a new segment begins; after one that `ends` them there are no more."""

    name: str
    address: int
    ends: bool = False


@dataclass(frozen=True)
class Segment:
    """What ran from the mark `name` (empty: from the start) to the next: places in the list of blocks, executions."""

    name: str
    blocks: npt.NDArray[np.int64] = field(repr=False)
    executions: npt.NDArray[np.int64] = field(repr=False)


@dataclass(frozen=True)
class BlockCounts:
    """The blocks of a run with their executions, and its segments in the order of time.

    The marks themselves are left out. The last segment goes to the end of the run. `unplaced_instructions` ran in
    code for which there was no room. `marks_lost` says that there was none for all segments: the last one is too
    long.
    """

    blocks: tuple[Block, ...] = field(repr=False)
    segments: tuple[Segment, ...] = field(repr=False)
    unplaced_instructions: int = 0
    marks_lost: bool = False

    def works(self) -> npt.NDArray[Any]:
        """Whether each block is work, and not a wait: for an event or interrupt, in an endless loop or by polling."""
        return np.array([not _is_wait(block) for block in self.blocks], bool)

    def instructions(self) -> npt.NDArray[Any]:
        """The number of instructions of each block."""
        return np.array([block.instructions for block in self.blocks], np.int64)


def _is_wait(block: Block) -> bool:
    return block.code.endswith((_WFI, _WFE)) or block.code == _BRANCH_TO_ITSELF or _polls(block.code)


def _polls(code: bytes) -> bool:
    """Whether a block repeats itself and only loads and compares: then nothing but another's write can end it.

    Instructions of 16 bits: NOP; LDR, LDRB and LDRH with an immediate offset; CMP and TST; the branch.
    """
    words = [int.from_bytes(code[at : at + 2], "little") for at in range(0, len(code), 2)]
    *body, last = words
    loads = [word for word in body if word >> 11 in (0b01101, 0b01111, 0b10001)]
    others = [word for word in body if word not in loads]
    goes_back = last >> 12 == 0b1101 and 2 * ((last & 0xFF) - 0x100) + 4 == 2 - len(code)
    is_comparison = all(
        word == _NOP or word >> 11 == 0b00101 or word >> 6 in (0b0100001000, 0b0100001010) for word in others
    )
    is_chase = {word & 7 for word in loads} & {
        word >> 3 & 7 for word in loads
    }  # the next load depends on the last
    return goes_back and bool(loads) and is_comparison and not is_chase
