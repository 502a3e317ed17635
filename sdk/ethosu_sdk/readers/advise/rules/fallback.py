"""Operators that the NPU leaves to the CPU in floating point, where the Cortex-M backend computes them on int8."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ethosu_sdk.plain_text import counted
from ethosu_sdk.program_options import CORTEX_M
from ethosu_sdk.readers.advise.advice import CPU_OPERATORS, Advice, change, figure
from ethosu_sdk.readers.advise.facts import Facts
from ethosu_sdk.readers.advise.rules import cpu
from ethosu_sdk.readers.advise.rules.operators import sited
from ethosu_sdk.records.advice import Evidence
from ethosu_sdk.records.profile import Operation

LAYOUT_LIMIT = (
    "the backend has the channels of images last: changes of the layout can come around an operator"
)
_NOT_ESTIMATED = (
    "nothing here estimates the cycles of the int8 kernels and of changes of the layout, which can be more than "
    "those of floating point: `advise --try` counts them"
)


def replaceable(facts: Facts) -> frozenset[str]:
    """The operators on the CPU that the Cortex-M backend would compute in at least one of their calls."""
    rows = facts.compiled.cpu_operators if facts.compiled.target is not None else ()
    return frozenset(row.name for row in rows if any(site.cortex_m for site in row.sites))


def cortex_m_fallback(facts: Facts) -> list[Advice]:
    """Calls in floating point, between conversions, for which the Cortex-M backend has an operator."""
    rows = list(sited(facts))
    found = [(row, site.cortex_m) for row, site in rows if site is not None and site.cortex_m]
    places = [place for place, (_, site) in enumerate(rows) if site is not None and site.cortex_m]
    around = _conversions([row for row, _ in rows], places)
    if facts.compiled.target is None or not found or not around:
        return []
    replaced = Counter((row.name, name) for row, name in found)
    calls = sum(row.calls for row in facts.cpu_rows)
    own = sum(row.calls for row in around)
    return [
        Advice(
            finding="; ".join(
                f"{name} ({counted(count, 'call')}) would run as {other} on int8"
                for (name, other), count in replaced.items()
            ),
            evidence=(
                *_costs("these calls in floating point", [row for row, _ in found]),
                *_costs("their conversions", around),
            ),
            command=facts.compiled_again(fallback=CORTEX_M),
            gains=(
                change(
                    CPU_OPERATORS,
                    calls,
                    calls - own,
                    "the conversions fall away, changes of the layout left out",
                ),
            ),
            limits=(_NOT_ESTIMATED, LAYOUT_LIMIT),
        )
    ]


def _conversions(rows: Sequence[Operation], places: Sequence[int]) -> list[Operation]:
    """The conversions before and behind the rows at `places`, each once."""
    found: set[int] = set()
    for place in places:
        for step, kind in ((-1, cpu.DEQUANTISE), (1, cpu.QUANTISE)):
            at = place + step
            while 0 <= at < len(rows) and rows[at].name.endswith(kind):
                found.add(at)
                at += step
    return [rows[at] for at in sorted(found)]


def _costs(what: str, rows: Sequence[Operation]) -> Iterator[Evidence]:
    """Calls, and cycles where they are known."""
    yield figure(what, sum(row.calls for row in rows), "calls")
    cycles = sum(int(row.cpu_cycles.value) for row in rows if row.cpu_cycles is not None)
    if cycles:
        yield figure(f"CPU cycles of {what}", cycles, "cycles", "modelled")
