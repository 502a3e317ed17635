"""Cycles of a Cortex-M core: prices of the blocks that it executed, waits for memory, and how far both can be
trusted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from ethosu_sdk.base import cache, filesystem
from ethosu_sdk.base.errors import BuildError, InputError
from ethosu_sdk.simulate import cpu_pipeline, llvm_figures
from ethosu_sdk.simulate.block_counts import Block, BlockCounts
from ethosu_sdk.simulate.llvm_figures import Core, Instruction, llvm_version

# Waits for memory. Each line of a buffer is fetched or written once for each time that the buffer passes through the
# cache, and the core waits for all of the transfer. Code is fetched once in an inference. Prefetching, write buffers
# and conflicts are left out. Tightly coupled memory has no waits.

LINE_BYTES = 32
"""Of the caches of Cortex-M55 and Cortex-M85 (Technical Reference Manuals, L1 instruction and data cache)."""


@dataclass(frozen=True)
class LineWaits:
    """Cycles for which the core waits for a line of code, of constants, and of the arena; 0 is what tightly coupled
    memory has."""

    code: float = 0.0
    constants: float = 0.0
    arena: float = 0.0


@dataclass(frozen=True)
class MovedBytes:
    """Bytes that a piece of work, such as a layer, moves: code that runs for the first time, constants that it reads,
    and what it reads from and writes to the arena."""

    code_bytes: int = 0
    constant_bytes: int = 0
    arena_bytes: int = 0


def wait_cycles(work: Iterable[MovedBytes], waits: LineWaits) -> float:
    """Cycles that the core waits for what `work` moves."""

    def lines(size_bytes: int) -> int:
        return -(-size_bytes // LINE_BYTES)

    return sum(
        lines(row.code_bytes) * waits.code
        + lines(row.constant_bytes) * waits.constants
        + lines(row.arena_bytes) * waits.arena
        for row in work
    )


BAND_ERROR = 0.20
"""The bound of errors, as a share of the published cycles, with the waits of the board's memories. Of nine published
operators of CMSIS-NN on a Cortex-M55 whose memories are known, the worst is off by 18.1 %; DS-CNN on a Cortex-M85 is
off by 2.1 % (docs/reference/fidelity.md)."""

BAND_TOO_LOW = 0.65
"""The share of the published cycles that is missing at most where memory waits are left out: quantize_per_tensor
(docs/reference/fidelity.md)."""

_JUDGED = f"±{100 * BAND_ERROR:.0f} % on published runs of CMSIS-NN kernels"
_NOT_JUDGED = "scalar code with many branches was not judged, and is probably priced too dear"


@dataclass(frozen=True)
class Band:
    """The share of the true cycles that is missing at most, and the band in words, as records quote it."""

    too_low: float
    words: str


def cpu_band(*, waits: bool) -> Band:
    """The band of cycles with the waits of the board's memories, or without them."""
    if waits:
        return Band(BAND_ERROR, f"{_JUDGED}, with the waits of the board's memories as here; {_NOT_JUDGED}")
    missing = f"without them, as here, up to {100 * BAND_TOO_LOW:.0f} % too low"
    return Band(BAND_TOO_LOW, f"{_JUDGED}, with the waits of the board's memories; {missing}; {_NOT_JUDGED}")


# Prices of blocks, by LLVM's scheduling models of Cortex-M55 and Cortex-M85. A block that branches back to its own
# start is priced as a loop, by the cycles of one turn; others from their first issue to the last. Both follow from an
# in-order scoreboard (cpu_pipeline.py). The totals of llvm-mca itself are of no use here: its in-order pipeline lets
# nothing finish before what started earlier, and it has no price for the ends of low-overhead loops. Memory answers
# at once: the waits above come on top.

_VERSION = 5  # of what is cached
_MOST_BYTES = 256 << 20
_OFFSET = re.compile(r"#(-?\d+)$")
_AHEAD = 4  # the program counter that a branch adds its offset to


def cycles_of(blocks: Sequence[Block], core: str) -> list[float]:
    """Cycles of one execution of each of `blocks`, on average over its executions.

    UsageError for an unknown core, ToolError when LLVM is missing. Instructions that LLVM does not know count one
    cycle.
    """
    facts = llvm_figures.core_of(core)
    bodies = [tuple(llvm_figures.split_instructions(block.code)) for block in blocks]
    known = _figures({encoding for body in bodies for encoding in body}, facts)
    entered: Counter[int] = Counter()
    ends: Counter[int] = Counter()
    for block in blocks:
        entered[block.start] += block.executions
        ends[block.end] += block.executions
    return [
        _cycles(block, [known[encoding] for encoding in body], entered, ends, facts)
        for block, body in zip(blocks, bodies, strict=True)
    ]


def _cycles(
    block: Block, body: Sequence[Instruction], entered: Counter[int], ends: Counter[int], core: Core
) -> float:
    if not body:
        return 0.0
    last = body[-1]
    is_loop = _target(block, last) == block.start
    base = cpu_pipeline.repeated_cycles(body, core) if is_loop else cpu_pipeline.straight_cycles(body, core)
    base += core.loop_entry * sum(row.kind == "loop start" for row in body)
    if last.kind == "branch":
        return base + core.taken
    if last.kind != "conditional":
        return base
    behind = min(entered[block.end] / ends[block.end], 1.0) if ends[block.end] else 0.0
    return base + core.taken * (1 - behind) + core.mispredicted * min(behind, 1 - behind)


def _target(block: Block, last: Instruction) -> int | None:
    """The address that the block's last instruction branches to; None when it is none, or not to a fixed one."""
    offset = _OFFSET.search(last.text)
    if last.kind not in ("conditional", "loop end", "branch") or offset is None:
        return None
    return block.end - last.size + _AHEAD + int(offset[1])


def _figures(encodings: set[bytes], core: Core) -> dict[bytes, Instruction]:
    """The figures of `encodings`: from the cache, and those that are new there by LLVM."""
    key = filesystem.sha256_bytes(f"{_VERSION} {core!r} {llvm_version()}".encode())[:16]
    place = cache.directory_or_own("cpu-cycles") / f"{core.name}-{key}.json"
    known = _read_prices(place)
    missing = sorted(encodings - known.keys())
    if missing:
        known |= llvm_figures.figures_of(missing, core)
        _store_prices(place, known)
    return known


class _Stored(msgspec.Struct, frozen=True):
    """What is cached: prices, and the digest of the file's name and of them as they stand in the file."""

    sha256: str
    prices: msgspec.Raw


def _prices_digest(place: Path, prices: bytes) -> str:
    return filesystem.sha256_bytes(place.name.encode() + prices)


def _store_prices(place: Path, known: Mapping[bytes, Instruction]) -> None:
    prices = msgspec.json.encode({key.hex(): row for key, row in sorted(known.items())})
    stored = _Stored(_prices_digest(place, prices), msgspec.Raw(prices))
    try:
        filesystem.write_bytes(place, msgspec.json.encode(stored))
    except BuildError as error:
        cache.note(f"{error.message}: the CPU's prices are not cached")


def _read_prices(place: Path) -> dict[bytes, Instruction]:
    """What is cached; nothing when it is not what was stored."""
    if not place.exists():
        return {}
    try:
        stored = msgspec.json.decode(filesystem.file_content(place, _MOST_BYTES), type=_Stored)
        if stored.sha256 == _prices_digest(place, bytes(stored.prices)):
            rows = msgspec.json.decode(stored.prices, type=dict[str, Instruction])
            return {bytes.fromhex(key): row for key, row in rows.items()}
    except (InputError, ValueError):
        pass
    cache.note(f"{place} is not as it was stored: the CPU's prices are asked of LLVM again")
    return {}


# What the processor did, part by part, in the order of time. The firmware's marks divide a run into segments
# (:data:`ethosu_sdk.program.protocol.MARKS`). Work of an interrupt is a span of its own between two spans of the part
# that it interrupted.

START_UP, AFTER = "start_up", "after"  # before the first mark, after the last
WAIT, CLOCK, REPORT = "wait", "clock", "report"
_RENAMED = {"": START_UP, "end": AFTER, "operator": "runtime"}


@dataclass(frozen=True)
class Span:
    """Instructions of one part that ran one after another.

    `operator` counts the instructions of the program that the inference executed, from 0; it is None outside of them:
    before the inference, after the last, and while the firmware reports. `code_bytes` is the size of the cache lines
    of code of which no earlier span of an operator executed anything; waits and the clock's interrupts have none.
    """

    operator: int | None
    part: str
    instructions: int
    cycles: float
    code_bytes: int = 0


def spans_of(counts: BlockCounts, prices: Sequence[float]) -> list[Span]:
    """The spans of a run whose blocks take `prices` cycles each, from reset to the end.

    Blocks that wait cost nothing. Operators are complete only where no mark was lost.
    """
    works = counts.works()
    each_instructions = np.where(works, counts.instructions(), 0)
    each_cycles = np.where(works, np.asarray(prices, float), 0.0)
    lines = [range(block.start // LINE_BYTES, -(-block.end // LINE_BYTES)) for block in counts.blocks]
    fetched: set[int] = set()
    found = []
    places = _places(row.name for row in counts.segments)
    for (operator, part), segment in zip(places, counts.segments, strict=True):
        instructions = int((each_instructions[segment.blocks] * segment.executions).sum())
        cycles = float((each_cycles[segment.blocks] * segment.executions).sum())
        before = len(fetched)
        if operator is not None and part not in (CLOCK, WAIT):  # which depend on the simulator's time
            fetched.update(line for block in segment.blocks for line in lines[block])
        code_bytes = LINE_BYTES * (len(fetched) - before)
        found.append(Span(operator, part, instructions, cycles, code_bytes))
    return found


def _places(names: Iterator[str]) -> Iterator[tuple[int | None, str]]:
    """Operator and part of each segment."""
    operator, part = -1, START_UP
    interrupted: list[str] = []
    for name in names:
        if name == "operator":
            operator += 1
        if name in ("interrupt", CLOCK):
            interrupted.append(part)
        is_back = name == "back" and interrupted
        part = interrupted.pop() if is_back else _RENAMED.get(name, name)
        outside = part in (START_UP, AFTER, REPORT) or operator < 0
        yield None if outside else operator, part
