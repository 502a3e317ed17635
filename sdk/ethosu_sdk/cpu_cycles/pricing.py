"""Cycles of blocks of executed instructions, by LLVM's scheduling models of Cortex-M55 and Cortex-M85.

A block that branches back to its own start is priced as a loop, by the cycles of one turn; others from their first
issue to the last. Both follow from an in-order scoreboard (:mod:`ethosu_sdk.cpu_cycles.pipeline`). llvm-mca's own
totals are of no use here: its in-order pipeline lets nothing finish before what started earlier, and it has no price
for the ends of low-overhead loops. Memory answers at once; :mod:`ethosu_sdk.cpu_cycles.waits` has the waits.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ethosu_sdk import cache
from ethosu_sdk.cpu_cycles import pipeline
from ethosu_sdk.cpu_cycles.blocks import Block
from ethosu_sdk.cpu_cycles.pipeline import Core, Instruction
from ethosu_sdk.cpu_cycles.pipeline.figures import version
from ethosu_sdk.errors import BuildError, InputError
from ethosu_sdk.files import hashing, opening, writing

_VERSION = 5  # of what is cached
_PART = "cpu-cycles"
_MOST_BYTES = 256 << 20
_OFFSET = re.compile(r"#(-?\d+)$")
_AHEAD = 4  # the program counter that a branch adds its offset to


def cycles_of(blocks: Sequence[Block], core: str) -> list[float]:
    """Cycles of one execution of each of `blocks`, on average over its executions.

    UsageError for an unknown core, ToolError when LLVM is missing. Instructions that LLVM does not know count one
    cycle.
    """
    facts = pipeline.core_of(core)
    known = _figures({encoding for block in blocks for encoding in pipeline.split(block.code)}, facts)
    entered: Counter[int] = Counter()
    for block in blocks:
        entered[block.start] += block.executions
    ends: Counter[int] = Counter()
    for block in blocks:
        ends[block.end] += block.executions
    return [
        _cycles(block, [known[e] for e in pipeline.split(block.code)], entered, ends, facts)
        for block in blocks
    ]


def _cycles(
    block: Block, body: Sequence[Instruction], entered: Counter[int], ends: Counter[int], core: Core
) -> float:
    if not body:
        return 0.0
    last = body[-1]
    is_loop = _target(block, last) == block.start
    base = pipeline.repeated_cycles(body, core) if is_loop else pipeline.straight_cycles(body, core)
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
    place = _place(core)
    known = _read(place)
    missing = sorted(encodings - known.keys())
    if missing:
        known |= pipeline.figures_of(missing, core)
        _store(place, known)
    return known


def _place(core: Core) -> Path:
    key = hashing.sha256_bytes(f"{_VERSION} {core!r} {version()}".encode())[:16]
    return cache.directory_or_own(_PART) / f"{core.name}-{key}.json"


class _Stored(msgspec.Struct, frozen=True):
    """What is cached: prices, and the digest of the file's name and of them as they stand in the file."""

    sha256: str
    prices: msgspec.Raw


def _digest(place: Path, prices: bytes) -> str:
    return hashing.sha256_bytes(place.name.encode() + prices)


def _store(place: Path, known: Mapping[bytes, Instruction]) -> None:
    prices = msgspec.json.encode({key.hex(): row for key, row in sorted(known.items())})
    try:
        writing.write_bytes(place, msgspec.json.encode(_Stored(_digest(place, prices), msgspec.Raw(prices))))
    except BuildError as error:
        cache.note(f"{error.message}: the CPU's prices are not cached")


def _read(place: Path) -> dict[bytes, Instruction]:
    """What is cached; nothing when it is not what was stored."""
    if not place.exists():
        return {}
    try:
        stored = msgspec.json.decode(opening.content(place, _MOST_BYTES), type=_Stored)
        if stored.sha256 == _digest(place, bytes(stored.prices)):
            rows = msgspec.json.decode(stored.prices, type=dict[str, Instruction])
            return {bytes.fromhex(key): row for key, row in rows.items()}
    except (InputError, ValueError):
        pass
    cache.note(f"{place} is not as it was stored: the CPU's prices are asked of LLVM again")
    return {}
