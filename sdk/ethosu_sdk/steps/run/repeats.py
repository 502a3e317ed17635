"""Repeats of a run, the state that they begin with, and groups of PMU events: what run.json says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ethosu_sdk.errors import UsageError
from ethosu_sdk.evidence.repeats import Changed, Plan
from ethosu_sdk.evidence.verdict import Check
from ethosu_sdk.plain_text import counted
from ethosu_sdk.records import Record
from ethosu_sdk.steps.run.job import RunJob

RESET, KEPT = "reset", "kept"
_LISTED = 20  # changes in the record; their number is always there


@dataclass(frozen=True)
class Repeated:
    """What the repeats of a run gave. `counters_must_agree` is for a simulator that counts by a model."""

    plan: Plan
    changed_outputs: tuple[Changed, ...] = ()
    changed_counters: tuple[Changed, ...] = ()
    counters_must_agree: bool = field(default=True, kw_only=True)


def state(job: RunJob, repeats: int) -> str:
    """The state that each of `repeats` inferences starts from, in a program that keeps state between inferences.

    ``reset`` is the state that the program brings, ``kept`` the one that the inference before left. Empty for one
    inference of each set, or a program without a state. UsageError where a reset would break a sequence.
    """
    if repeats == 1 or not job.plan.is_stateful:
        return ""
    if job.options.keep_state:
        return KEPT
    if job.samples.count > 1:
        raise UsageError(
            f"this program keeps a state, and {job.samples.count} sets of inputs are a sequence: repeating each of "
            f"them {repeats} times would break it",
            "give one set of inputs, or --keep-state to let every inference start from the state of the "
            "one before; counting more PMU events than the NPU has counters also needs repeats",
        )
    return RESET


def part(repeated: Repeated) -> Record:
    """The record's `repeats` object; empty without repeats."""
    if repeated.plan.whole == 1:
        return {}
    return {
        "repeats": {
            "count": repeated.plan.whole,
            **({"state": repeated.plan.state} if repeated.plan.state else {}),
            "outputs": _agreement(_whole(repeated), "output"),
            "counters": _agreement(repeated.changed_counters, "instruction"),
        }
    }


def _whole(repeated: Repeated) -> list[Changed]:
    """The outputs that changed, without those of the repeat that runs pieces."""
    return [row for row in repeated.changed_outputs if row.repeat < repeated.plan.whole]


def _agreement(changed: Sequence[Changed], index: str) -> Record:
    rows = [{"set": row.set, "repeat": row.repeat, index: row.index} for row in changed[:_LISTED]]
    return {"agree": not changed, "changed": len(changed), **({"first_changes": rows} if rows else {})}


def checks(repeated: Repeated) -> list[Check]:
    """Whether every repeat gave and counted the same, as checks of the verdict; none without repeats."""
    if repeated.plan.whole == 1 or repeated.plan.state == KEPT:
        return []
    found = [_check("every repeat gave the same outputs", repeated.plan, _whole(repeated), "output")]
    if repeated.counters_must_agree:
        found.append(
            _check("every repeat counted the same", repeated.plan, repeated.changed_counters, "instruction")
        )
    return found


def _check(name: str, plan: Plan, changed: Sequence[Changed], index: str) -> Check:
    if not changed:
        began = ", each from the state that the program brings" if plan.state else ""
        detail = f"{plan.whole} repeats of {counted(plan.sets, 'set')} of inputs{began}, no difference"
        return Check(name, True, detail)
    first = changed[0]
    return Check(
        name,
        False,
        f"{len({(row.set, row.repeat) for row in changed})} of {plan.sets * plan.whole} inferences differ, the first "
        f"is repeat {first.repeat} of set {first.set}, {index} {first.index}",
    )


def grouped(npu: Record, groups: Sequence[Sequence[int]], cycles: Sequence[int | None]) -> Record:
    """`npu` with the group that each counter was read in, and what the cycle counter said in each group.

    `cycles` are those of the inference that counted each group. Where they differ the counters of two groups must not
    be put in relation, and the record says so.
    """
    if len(groups) == 1:
        return npu
    group_of = {event: number for number, events in enumerate(groups) for event in events}
    rows = [{**row, "group": group_of[row["id"]]} for row in npu["counters"]]
    known = npu.get("cycles")  # absent where no counter means anything
    parts = [
        {"group": number, **({"cycles": {**known, "value": value}} if known and value is not None else {})}
        for number, value in enumerate(cycles)
    ]
    return {**npu, "counters": rows, "groups": parts, "groups_agree": len(set(cycles)) == 1}
