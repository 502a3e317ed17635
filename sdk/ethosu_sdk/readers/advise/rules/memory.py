"""Where a program's weights and feature maps lie."""

from __future__ import annotations

from ethosu_sdk.readers.advise.advice import NPU_CYCLES, SRAM, Advice, change, figure
from ethosu_sdk.readers.advise.facts import WORTH_SHARE, Facts, modelled
from ethosu_sdk.records.advice import Evidence
from ethosu_sdk.results.run_facts import Mode

_HOW = "the same command stream, priced with the memories of {mode}"
_SIZES = "the present sizes, placed as {mode} has them"
_LIMITS = (
    "Vela schedules anew for another memory mode: cycles can fall or rise beyond that",
    "the board has to have the memory: the firmware's settings and the linker script follow the memory mode",
    "SRAM forgets: with Sram_Only an application copies the program there after power-up, which takes time once",
)


def memory_mode(facts: Facts) -> list[Advice]:
    """The mode with the fewest cycles among those that fit, if it saves some; else the one with the least SRAM whose
    cycles are the same."""
    target = facts.compiled.target
    if target is None:
        return []
    name = target.memory_mode
    present = facts.modes.get(name)
    if present is None:
        return []
    others = [row for row in facts.modes.values() if row.name != name and row.fits]
    fastest = min(others, key=lambda row: (row.cycles, row.sram_bytes), default=present)
    if fastest.cycles <= (1 - WORTH_SHARE) * present.cycles:
        return [_advice(facts, present, fastest, is_faster=True)]
    same = [row for row in others if row.cycles <= (1 + WORTH_SHARE) * present.cycles]
    smallest = min(same, key=lambda row: (row.sram_bytes, row.cycles), default=present)
    if smallest.sram_bytes <= (1 - WORTH_SHARE) * present.sram_bytes:
        return [_advice(facts, present, smallest, is_faster=False)]
    return []


def _advice(facts: Facts, present: Mode, other: Mode, *, is_faster: bool) -> Advice:
    cycles = change(NPU_CYCLES, present.cycles, other.cycles, _HOW.format(mode=other.name), "modelled")
    sram = change(SRAM, present.sram_bytes, other.sram_bytes, _SIZES.format(mode=other.name))
    changes = (cycles, sram) if is_faster else (sram, cycles)
    finding = (
        f"{_bound(facts):.0%} of the cycles go into operations that wait for a memory; in {other.name} it is nearer"
        if is_faster
        else f"{other.name} takes less SRAM for about the same cycles"
    )
    return Advice(
        finding=finding,
        evidence=(
            *_traffic(facts),
            figure("SRAM in use", present.sram_bytes, "bytes"),
        ),
        command=facts.compiled_again(memory_mode=other.name),
        gains=tuple(row for row in changes if row.after < row.before),
        costs=tuple(row for row in changes if row.after > row.before),
        limits=_LIMITS,
    )


def _bound(facts: Facts) -> float:
    waiting = sum(modelled(row) for row in facts.npu_rows if row.bound_by in facts.memories)
    return waiting / facts.npu_cycles if facts.npu_cycles else 0.0


def _traffic(facts: Facts) -> tuple[Evidence, ...]:
    return tuple(
        figure(f"{row.memory} read and written", row.read_bytes + row.write_bytes, "bytes", "modelled")
        for row in facts.profile.memories
    )
