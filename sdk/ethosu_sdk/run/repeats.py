"""Repeats of the same inference: what changed from the first one, and what run.json says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.program.output_comparison import Check
from ethosu_sdk.records import run as record_parts
from ethosu_sdk.run.job import RunJob

RESET: Final = "reset"
KEPT: Final = "kept"
StartState = Literal["reset", "kept", ""]
_LISTED = 20  # changes in the record; their number is always there


class Changed(Struct, frozen=True):
    """A repeat whose result is not that of the first; `index` is the output's, or the counting instruction's."""

    set: int
    repeat: int
    index: int


class RepeatPlan(Struct, frozen=True):
    """How a run repeats: `sets` of inputs, each `repeats` times; repeat k counts event group ``k % event_groups``.
    With `in_pieces`, the last repeat runs command streams in pieces. `state` says what a repeat begins with in a
    program that has one: ``reset`` (what the program brings) or ``kept`` (what the repeat before left); else it is
    empty."""

    sets: int
    repeats: int = 1
    event_groups: int = 1
    in_pieces: bool = False
    state: StartState = ""

    @property
    def whole(self) -> int:
        return self.repeats - self.in_pieces

    def runs_pieces(self, inference: int) -> bool:
        return inference % self.repeats >= self.whole

    @property
    def inferences(self) -> int:
        return self.sets * self.repeats

    def first(self, inference: int) -> int:
        return inference - inference % self.repeats


def changed_results(
    plan: RepeatPlan, results: Sequence[Mapping[int, object]], same_group: bool = False, whole: bool = False
) -> tuple[Changed, ...]:
    """Results of inferences that differ from those of the first repeat; `results` are by inference, then by index.
    With `same_group` the first repeat that counts the same events is meant. A result that only one of the two has is
    a change. `whole` leaves out the repeats that run pieces."""
    found = []
    for inference, result in enumerate(results):
        if whole and plan.runs_pieces(inference):
            continue
        in_set = inference % plan.repeats
        first = results[inference - in_set + (in_set % plan.event_groups if same_group else 0)]
        found += [
            Changed(inference // plan.repeats, in_set, index)
            for index in sorted(result.keys() | first.keys())
            if result.get(index) != first.get(index)
        ]
    return tuple(found)


class Repeated(Struct, frozen=True):
    """What the repeats of a run gave. `counters_must_agree` is for a simulator that counts by a model."""

    plan: RepeatPlan
    changed_outputs: tuple[Changed, ...] = ()
    changed_counters: tuple[Changed, ...] = ()
    counters_must_agree: bool = True

    @property
    def changed_whole(self) -> list[Changed]:
        """The outputs that changed, without those of the repeat that runs pieces."""
        return [row for row in self.changed_outputs if row.repeat < self.plan.whole]


def repeats_state(job: RunJob, repeats: int) -> StartState:
    """The state that each of `repeats` inferences starts from, in a program that keeps state between inferences.
    ``reset`` is the state that the program brings, ``kept`` the one that the inference before left. Empty for one
    inference of each set, or a program without a state. UsageError where a reset would break a sequence."""
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


def repeats_part(repeated: Repeated) -> record_parts.Repeats | None:
    """The record's `repeats`; None without repeats."""
    plan, outputs, counters = repeated.plan, repeated.changed_whole, repeated.changed_counters
    if plan.whole == 1:
        return None
    return record_parts.Repeats(
        count=plan.whole,
        state=plan.state or None,
        outputs=record_parts.RepeatedOutputs(
            agree=not outputs,
            changed=len(outputs),
            first_changes=tuple(
                record_parts.OutputChange(set=row.set, repeat=row.repeat, output=row.index)
                for row in outputs[:_LISTED]
            )
            or None,
        ),
        counters=record_parts.RepeatedCounters(
            agree=not counters,
            changed=len(counters),
            first_changes=tuple(
                record_parts.CounterChange(set=row.set, repeat=row.repeat, instruction=row.index)
                for row in counters[:_LISTED]
            )
            or None,
        ),
    )


def repeats_checks(repeated: Repeated) -> list[Check]:
    """Whether every repeat gave and counted the same, as checks of the verdict; none without repeats."""
    if repeated.plan.whole == 1 or repeated.plan.state == KEPT:
        return []
    found = [_check("every repeat gave the same outputs", repeated.plan, repeated.changed_whole, "output")]
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


def grouped(
    npu: record_parts.Npu, groups: Sequence[Sequence[int]], cycles: Sequence[int | None]
) -> record_parts.Npu:
    """`npu` with the group that each counter was read in, and what the cycle counter said in each group. `cycles` are
    those of the inference that counted each group. Where they differ the counters of two groups must not be put in
    relation, and the record says so."""
    if len(groups) == 1:
        return npu
    group_of = {event: number for number, events in enumerate(groups) for event in events}
    first = npu.cycles  # absent where no counter means anything
    rows = (
        record_parts.CounterGroup(
            group=number, cycles=None if first is None or value is None else replace(first, value=value)
        )
        for number, value in enumerate(cycles)
    )
    counters = tuple(replace(row, group=group_of[row.id]) for row in npu.counters)
    return replace(npu, counters=counters, groups=tuple(rows), groups_agree=len(set(cycles)) == 1)
