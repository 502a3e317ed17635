"""Repeats of the same inference: what changed from the first one, and what run.json says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.program.output_comparison import Check
from ethosu_sdk.run.job import RunJob

# ---- evidence.repeats
# Compares repeats of the same inference with the first one.


@dataclass(frozen=True)
class Changed:
    """One repeat whose result is not that of the first repeat of the same inputs.

    `index` is the output's, or the instruction's whose counters changed.
    """

    set: int
    repeat: int
    index: int


@dataclass(frozen=True)
class RepeatPlan:
    """How a run repeats: `sets` of inputs, each `repeats` times; repeat k counts event group ``k % event_groups``.

    With `in_pieces`, the last repeat runs command streams in pieces. `state` says what a repeat begins with in a
    program that has one: ``reset`` (what the program brings) or ``kept`` (what the repeat before left); else it is
    empty.
    """

    sets: int
    repeats: int = 1
    event_groups: int = 1
    in_pieces: bool = False
    state: str = ""

    @property
    def whole(self) -> int:
        """The repeats that run whole command streams."""
        return self.repeats - self.in_pieces

    def runs_pieces(self, inference: int) -> bool:
        """Whether the inference runs command streams in pieces."""
        return inference % self.repeats >= self.whole

    @property
    def inferences(self) -> int:
        """All inferences of the run."""
        return self.sets * self.repeats

    def first(self, inference: int) -> int:
        """The first repeat of the same inputs."""
        return inference - inference % self.repeats

    def first_of_group(self, inference: int) -> int:
        """The first repeat of the same inputs that counts the same events."""
        return self.first(inference) + inference % self.repeats % self.event_groups

    def changed(self, inference: int, index: int) -> Changed:
        """The same place in terms of sets and repeats."""
        return Changed(inference // self.repeats, inference % self.repeats, index)


def changed_results(
    plan: RepeatPlan,
    results: Sequence[Mapping[int, object]],
    *,
    same_group: bool = False,
    whole: bool = False,
) -> tuple[Changed, ...]:
    """Results of inferences that differ from those of the first repeat; `results` are by inference, then by index.

    With `same_group` the first repeat that counts the same events is meant. A result that only one of the two has is
    a change. `whole` leaves out the repeats that run pieces.
    """
    found = []
    for inference, result in enumerate(results):
        if whole and plan.runs_pieces(inference):
            continue
        first = results[plan.first_of_group(inference) if same_group else plan.first(inference)]
        found += [
            plan.changed(inference, index)
            for index in sorted(result.keys() | first.keys())
            if result.get(index) != first.get(index)
        ]
    return tuple(found)


# ---- steps.run.repeats
# Repeats of a run, the state that they begin with, and groups of PMU events: what run.json says of them.

RESET, KEPT = "reset", "kept"
_LISTED = 20  # changes in the record; their number is always there


@dataclass(frozen=True)
class Repeated:
    """What the repeats of a run gave. `counters_must_agree` is for a simulator that counts by a model."""

    plan: RepeatPlan
    changed_outputs: tuple[Changed, ...] = ()
    changed_counters: tuple[Changed, ...] = ()
    counters_must_agree: bool = field(default=True, kw_only=True)


def repeats_state(job: RunJob, repeats: int) -> str:
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


def repeats_part(repeated: Repeated) -> Record:
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


def repeats_checks(repeated: Repeated) -> list[Check]:
    """Whether every repeat gave and counted the same, as checks of the verdict; none without repeats."""
    if repeated.plan.whole == 1 or repeated.plan.state == KEPT:
        return []
    found = [_check("every repeat gave the same outputs", repeated.plan, _whole(repeated), "output")]
    if repeated.counters_must_agree:
        found.append(
            _check("every repeat counted the same", repeated.plan, repeated.changed_counters, "instruction")
        )
    return found


def _check(name: str, plan: RepeatPlan, changed: Sequence[Changed], index: str) -> Check:
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
