"""NPUs that are larger than the program needs."""

from __future__ import annotations

from collections.abc import Set

from ethosu_sdk.readers.advise.advice import MAC_UNITS, NPU_CYCLES, Advice, change, figure
from ethosu_sdk.readers.advise.facts import Facts, modelled
from ethosu_sdk.records.profile import Operation
from ethosu_sdk.targets import families

_MOST_SHARE = 0.05  # of the cycles, that a smaller NPU may cost
_HOW = "operations take twice the cycles, but where a memory sets the pace and hides it"


def smaller_target(facts: Facts) -> list[Advice]:
    """A program that keeps the MAC unit waiting, so that half of it would do. A board's NPU is what it is."""
    target = facts.compiled.target
    if target is None:
        return []
    macs = [count for count in families()[target.npu].macs if count < target.macs]
    whole = facts.npu_cycles
    if facts.compiled.board_profile or not macs or not whole or 2 * max(macs) != target.macs:
        return []
    more = sum(_more(row, facts.memories) for row in facts.npu_rows)
    if more > _MOST_SHARE * whole:
        return []
    smaller = f"{target.npu}-{max(macs)}"
    busy = sum(row.busy.mac * row.calls for row in facts.npu_rows)
    cycles = change(NPU_CYCLES, whole, whole + more, _HOW, "modelled")
    return [
        Advice(
            finding=f"the MAC unit works in {busy / whole:.0%} of the cycles: {smaller} would do",
            evidence=(
                figure("cycles of an inference", whole, "cycles", "modelled"),
                figure("cycles of the MAC unit", busy, "cycles", "modelled"),
            ),
            command=facts.compiled_again(target=smaller),
            gains=(change(MAC_UNITS, target.macs, max(macs), "half of the MACs"),),
            costs=(cycles,) if more else (),
            limits=(
                "it is about the NPU of a design that is not fixed yet; a larger one costs nothing where it is there",
                "a smaller NPU has less memory of its own: other blocks, more traffic",
            ),
        )
    ]


def _more(row: Operation, memories: Set[str]) -> int:
    """The cycles that an operation takes longer with half of the MACs, in all of its calls: all of its cycles, unless
    a memory sets its pace."""
    if row.bound_by not in memories:
        return modelled(row)
    busy = row.busy
    hidden = max(row.modelled_cycles, busy.mac, busy.output, busy.weight_decoder, busy.memory)
    return row.calls * max(0, 2 * max(busy.mac, busy.output) - hidden)
