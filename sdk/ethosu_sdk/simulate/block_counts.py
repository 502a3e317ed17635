"""Counts of executed blocks of instructions: what was counted, and the plugin in QEMU that counts
(qemu/plugin/block-counts.c).
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.base import filesystem, tools
from ethosu_sdk.base.errors import InputError, SimulationError


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
        return np.array([block.instructions for block in self.blocks], np.int64)


# Blocks with which a program waits end with one of these (Armv8-M Architecture Reference Manual, T1 encodings).
_NOP = 0xBF00
_WFI, _WFE, _BRANCH_TO_ITSELF = b"\x30\xbf", b"\x20\xbf", b"\xfe\xe7"


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
    # The next load depends on the last.
    is_chase = {word & 7 for word in loads} & {word >> 3 & 7 for word in loads}
    return goes_back and bool(loads) and is_comparison and not is_chase


_PLUGIN = "block-counts.so"
# A function of version 1 of QEMU's plugin interface, which newer ones have replaced. Programs export it by name.
_FUNCTION = b"\0qemu_plugin_register_vcpu_tb_exec_inline\0"
_MOST_QEMU_BYTES = 1 << 28  # of a QEMU


def require_plugin() -> Path:
    """The plugin. ToolError, with the way to get it, when it is missing."""
    path = tools.require(_PLUGIN).path
    assert path is not None, "it was found"
    return path


def why_uncountable(program: Path | None) -> str:
    """Why the QEMU `program` cannot count blocks, and how to get what can; empty if it can."""
    found = tools.probe(_PLUGIN)
    if found.status != "found":
        return f"QEMU's plugin {_PLUGIN} is {found.status}: {found.tool.fix}"
    if program is None or not _takes_plugins(program):
        return (
            f"{program} does not take plugins of QEMU 7.2: Debian 12's qemu-system-arm does, and the SDK's own "
            "build does after `scripts/build-qemu`"
        )
    return ""


@functools.cache
def _takes_plugins(program: Path) -> bool:
    try:
        return _FUNCTION in filesystem.file_content(program, _MOST_QEMU_BYTES)
    except InputError:
        return False


# The plugin's file.

_MAGIC = b"EUBLOCK2"
_PART = np.dtype(
    [
        ("executions", "<u8"),
        *((name, "<u4") for name in ("start", "code_at", "code_bytes", "instructions", "number", "count")),
    ]
)
_SEGMENT = np.dtype([("mark", "<u4"), ("deltas", "<u4")])
_DELTA = np.dtype([("executions", "<u8"), ("part", "<u4"), ("reserved", "<u4")])
_HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("unplaced_instructions", "<u8"),
        *((name, "<u4") for name in ("parts_used", "code_used", "segments_used", "deltas_used")),
        *((name, "<u4") for name in ("marks_lost", "ended")),
        ("reserved", "<u8", 2),
    ]
)
# What follows the header in `struct counts` of the plugin, in its order: the member with the number of those in use,
# the type and the most there can be.
_TABLES = (
    ("parts_used", _PART, 1 << 17),
    ("segments_used", _SEGMENT, 1 << 16),
    ("deltas_used", _DELTA, 1 << 22),
    ("code_used", np.dtype("u1"), 1 << 22),
)
Rows = npt.NDArray[Any]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CountsFile:
    """The file that QEMU inherits and counts in."""

    descriptor: int
    plugin: Path
    marks: Sequence[Mark]

    def option(self) -> str:
        """The value of QEMU's `-plugin`, in which a comma within a value is written twice."""
        plugin = str(self.plugin).replace(",", ",,")
        marks = [f"{'last' if mark.ends else 'mark'}={mark.address:#x}" for mark in self.marks]
        return ",".join([plugin, f"fd={self.descriptor}", *marks])

    def read(self) -> BlockCounts:
        """What QEMU has counted. SimulationError when the plugin did not take part, or the file makes no sense."""
        (header,) = self._rows(0, _HEADER, 1)
        if header["magic"] != _MAGIC:
            raise SimulationError("QEMU's plugin that counts executed blocks wrote nothing")
        try:
            return _counts(header, list(self._tables(header)), self.marks)
        except (ValueError, IndexError) as error:
            raise SimulationError(f"the counts of executed blocks cannot be read: {error}") from error

    def _tables(self, header: np.void) -> Iterator[Rows]:
        at = _HEADER.itemsize
        for name, kind, most in _TABLES:
            used = int(header[name])
            if used > most:
                raise ValueError(f"{name} is {used:,}")
            yield self._rows(at, kind, used)
            at += kind.itemsize * most

    def _rows(self, at: int, kind: np.dtype[Any], count: int) -> Rows:
        return np.frombuffer(os.pread(self.descriptor, kind.itemsize * count, at), kind, count)


@contextlib.contextmanager
def open_counts_file(plugin: Path, marks: Sequence[Mark]) -> Iterator[CountsFile]:
    """An empty file for counts. SimulationError when the host refuses the memory."""
    with contextlib.ExitStack() as stack:
        try:
            descriptor = os.memfd_create("ethosu-sdk-block-counts")
            stack.callback(os.close, descriptor)
            tables = sum(kind.itemsize * most for _, kind, most in _TABLES)
            os.ftruncate(descriptor, _HEADER.itemsize + tables)  # sparse
        except OSError as error:
            raise SimulationError(f"cannot allocate memory for block counts: {error.strerror}") from error
        yield CountsFile(descriptor, plugin, marks)


def _counts(header: np.void, tables: Sequence[Rows], marks: Sequence[Mark]) -> BlockCounts:
    """A block of the result ends where its execution did: mostly with the last part of the plugin's block."""
    parts, segments, deltas, code = tables
    executions = _ended(parts, np.arange(len(parts)), parts["executions"].astype(np.int64))
    executions[np.isin(parts["start"], [mark.address for mark in marks])] = 0
    content = code.tobytes()
    return BlockCounts(
        tuple(_block(row, count, content) for row, count in zip(parts, executions, strict=True)),
        tuple(_segments(segments, deltas, marks, parts, executions)),
        int(header["unplaced_instructions"]),
        bool(header["marks_lost"]),
    )


def _ended(parts: Rows, places: Numbers, executions: Numbers) -> Numbers:
    """How often execution ended with each part, from how often those at `places` were executed.

    What was executed of a part did not end with the part before it.
    """
    found = np.zeros(len(parts), np.int64)
    found[places] = executions
    follows = parts["number"][places] > 0
    np.subtract.at(found, places[follows] - 1, executions[follows])
    return found


def _block(row: np.void, executions: int, code: bytes) -> Block:
    names = ("start", "code_bytes", "code_at", "instructions")
    start, size_bytes, at, count = (int(row[name]) for name in names)
    return Block(start, start + size_bytes, count, code[at : at + size_bytes], int(executions))


def _segments(
    rows: Rows, deltas: Rows, marks: Sequence[Mark], parts: Rows, executions: Numbers
) -> Iterator[Segment]:
    """The segments; what none of them has belongs to the last one, which did not end."""
    if int(rows["deltas"].sum(dtype=np.int64)) != len(deltas):
        raise ValueError("the segments do not add up")
    is_work = executions > 0
    left = executions.copy()
    name, at = "", 0
    for row in rows:
        own = deltas[at : at + int(row["deltas"])]
        at += len(own)
        ended = _ended(parts, own["part"].astype(np.int64), own["executions"].astype(np.int64))
        places = np.flatnonzero(np.where(is_work, ended, 0))
        left[places] -= ended[places]
        yield Segment(name, places, ended[places])
        name = marks[int(row["mark"])].name
    places = np.flatnonzero(left)
    yield Segment(name, places, left[places])
