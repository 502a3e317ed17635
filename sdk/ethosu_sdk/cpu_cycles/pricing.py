"""Cycles of blocks of executed instructions, by LLVM's scheduling models of Cortex-M55 and Cortex-M85.

A block that branches back to its own start is priced as a loop, by the cycles of one turn; others from their first
issue to the last. Both follow from an in-order scoreboard (:mod:`ethosu_sdk.cpu_cycles.pipeline`). llvm-mca's own
totals are of no use here: its in-order pipeline lets nothing finish before what started earlier, and it has no price
for the ends of low-overhead loops. Memory answers at once; :mod:`ethosu_sdk.cpu_cycles.waits` has the waits.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ethosu_sdk import cache
from ethosu_sdk.cpu_cycles import pipeline
from ethosu_sdk.cpu_cycles.blocks import Block
from ethosu_sdk.cpu_cycles.pipeline import Core, Instruction
from ethosu_sdk.cpu_cycles.pipeline.figures import version
from ethosu_sdk.errors import InputError
from ethosu_sdk.files import opening, writing

_VERSION = 4  # of what is cached
_PART = "cpu-cycles"
_MOST_BYTES = 1 << 26
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
        writing.write_bytes(
            place, msgspec.json.encode({key.hex(): row for key, row in sorted(known.items())})
        )
    return known


def _place(core: Core) -> Path:
    key = hashlib.sha256(f"{_VERSION} {core!r} {version()}".encode()).hexdigest()[:16]
    return cache.directory_or_own(_PART) / f"{core.name}-{key}.json"


def _read(place: Path) -> dict[bytes, Instruction]:
    """What is cached; nothing when it cannot be read."""
    try:
        rows = msgspec.json.decode(opening.content(place, _MOST_BYTES), type=dict[str, Instruction])
        return {bytes.fromhex(key): row for key, row in rows.items()}
    except (InputError, ValueError):
        return {}
