"""Runs whose inferences are steps of a sequence: what each step got, gave and cost, and its verdict."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from ethosu_sdk.base.errors import InputError, SimulationError, UsageError
from ethosu_sdk.base.npz import MOST_SAMPLES
from ethosu_sdk.program.execution_plan import ExecutionPlan
from ethosu_sdk.program.feeds import COPY, STEP, Feed, Stepper, Steps, check_feed
from ethosu_sdk.program.output_comparison import Check, Tolerance, compare
from ethosu_sdk.records.common import Source
from ethosu_sdk.records.run import Choice, Sequence as SequencePart, Step, StepTolerance
from ethosu_sdk.run.uart import ProtocolError, UartLog

Array = npt.NDArray[Any]
Choices = dict[int, tuple[int, ...]]  # indices by input


class StepResult(Struct, frozen=True):
    """One step: what feeds chose, by input; the CRC of each tensor of the state after it; the NPU's cycles and
    counters, by event, where they mean something; the CRC of each output, in the order of memory."""

    choices: Choices = {}
    state_crcs: tuple[str, ...] = ()
    npu_cycles: int | None = None
    counters: dict[int, int] = {}
    output_crcs: tuple[str, ...] = ()


def check_feeds(feeds: Sequence[Feed], plan: ExecutionPlan) -> None:
    """UsageError for the first of `feeds` that does not fit the program's method."""
    inputs, outputs = plan.input_tensors(), plan.output_tensors()
    described = [[(row.dtype, row.sizes) for row in rows] for rows in (inputs, outputs)]
    for feed in feeds:
        check_feed(feed, *described)
        if feed.form == STEP:
            continue
        order = outputs[feed.output].dim_order
        wanted = inputs[feed.input].dim_order if feed.form == COPY else tuple(range(len(order)))
        if order != wanted:
            raise UsageError(
                f"{feed}: the program keeps output{feed.output} with its axes in the order {list(order)}, where "
                f"{list(wanted)} is needed",
                "return a contiguous tensor from the model",
            )


def step_count(rows: Sequence[Sequence[Array]], feeds: Sequence[Feed], steps: int | None) -> int:
    """The number of steps, for inputs with so many `rows`. InputError for numbers that contradict each other."""
    fed = {feed.input for feed in feeds}
    free = {number: len(row) for number, row in enumerate(rows) if number not in fed and len(row) > 1}
    found = steps if steps is not None else max(free.values(), default=0)
    if not found:
        raise UsageError(
            "how many steps to run is not given: no input that is not fed has a leading axis",
            "give --steps N, or an input for each step",
        )
    if found > MOST_SAMPLES:
        raise UsageError(f"{found:,} steps, but the limit of a run is {MOST_SAMPLES:,}")
    for number, row in enumerate(rows):
        if number in free and len(row) != found:
            raise InputError(
                f"input{number} is given for {len(row)} steps, but the sequence has {found}",
                "give it for each step, once for all of them, or feed it",
            )
        if len(row) > found:
            raise InputError(f"input{number} is given for {len(row)} steps, but the sequence has {found}")
    return found


# The inputs of every inference as the firmware got them: given ones, and those that feeds made on the board.


def choices(log: UartLog) -> dict[int, Choices]:
    found: dict[int, Choices] = {}
    for row in log.of_type("choice"):
        found.setdefault(row["inference"], {})[row["input"]] = tuple(row["values"])
    return found


def steps_done(log: UartLog, steps: Steps, repeats: int) -> int:
    """How many steps a complete run has: all, or those up to one at which a feed chose to stop."""
    stops = {feed.input: feed.stops for feed in steps.feeds if feed.stops}
    for inference, chosen in sorted(choices(log).items()):
        if any(not {*chosen.get(number, ())}.isdisjoint(ends) for number, ends in stops.items()):
            return min(steps.count, inference // repeats + 1)
    return steps.count


def check_inputs(
    log: UartLog,
    steps: Steps,
    repeats: int,
    outputs: Sequence[Mapping[int, Array | None]],
    crcs: Sequence[Mapping[int, str]],
) -> tuple[Choices, ...]:
    """What feeds chose in each step; ProtocolError for an input of the firmware that is not the one which was given,
    or which the outputs of the step before make. The arrays of `steps` have the order of memory. `outputs` and `crcs`
    are those of the last repeat of each step; where an output was not sent, what its feed chose is taken from the
    log, as it went into the next step."""
    reported = {(row["inference"], row["index"]): row for row in log.of_type("input")}
    count, told, stepper, found = len(outputs), choices(log), Stepper(steps), []
    if len(reported) != count * repeats * len(steps.given):
        raise ProtocolError(
            f"{len(reported)} inputs reached the firmware, but {count * repeats * len(steps.given)} were sent"
        )
    for step in range(count):
        # The CRC of each input that is a copy of an output of the step before.
        copied = {
            feed.input: crcs[step - 1][feed.output]
            for feed in steps.feeds
            if feed.is_copy and step >= steps.first_fed(feed)
        }
        _check_step(reported, stepper, range(step * repeats, (step + 1) * repeats), copied)
        said = told.pop((step + 1) * repeats - 1, {})
        try:
            made = stepper.take(outputs[step], said)
        except SimulationError as error:
            raise ProtocolError(f"step {step}: {error.message}") from error
        if made != said:
            raise ProtocolError(f"the firmware chose {said} in step {step}, but its outputs give {made}")
        found.append(made)
    if told:
        raise ProtocolError(f"the firmware chose indices in inference {min(told)}, where no feed chooses")
    return tuple(found)


def _check_step(
    reported: Mapping[tuple[int, int], Mapping[str, Any]],
    stepper: Stepper,
    inferences: range,
    copied: Mapping[int, str],
) -> None:
    wanted = []
    for index, array in enumerate(stepper.inputs()):
        data = array.tobytes()
        wanted.append((len(data), copied.get(index) or f"{zlib.crc32(data):08x}"))
    for inference in inferences:
        for index, (size, crc) in enumerate(wanted):
            row = reported.get((inference, index), {})
            if row.get("bytes") != size or row.get("crc32") != crc:
                raise ProtocolError(
                    f"input {index} of inference {inference} changed on its way to the firmware"
                )


class StepVerdict(Struct, frozen=True):
    """Whether a step's outputs are within the tolerance, and the largest difference (None: not a finite one)."""

    passed: bool
    max_abs_error: float | None


class StepsVerdict(Struct, frozen=True):
    """The verdict of all steps: one check for each output, and by number those steps that could be judged."""

    checks: tuple[Check, ...]
    rows: dict[int, StepVerdict]
    tolerance: Tolerance
    growth: float


def allowed(tolerance: Tolerance, growth: float, step: int) -> Tolerance:
    """The tolerance of a step: `tolerance`, times 1 + `growth` · `step`."""
    return Tolerance(tolerance.atol * (1 + growth * step), tolerance.rtol * (1 + growth * step))


def judge_steps(
    got: Sequence[Array],
    want: Sequence[Array],
    tolerance: Tolerance,
    growth: float,
    unsent: Sequence[Sequence[bool]] = (),
) -> StepsVerdict:
    """The steps of outputs `got` against those of `want`; both have a leading axis of steps. Of the first steps the
    board may have sent CRCs alone: `unsent` says of each, by output, whether it is that of the expected bytes. If
    not, the step is beyond a tolerance of 0, and cannot be judged within another. A sequence that ended before the
    last step of `want` has not passed."""
    first, due = len(unsent), max(map(len, want), default=0)
    want = [array[first:] for array in want]
    count = min((len(array) for array in (*got, *want)), default=0)
    steps, far = range(count), f"the CRC-32 of its bytes is not the expected one; {tolerance}"
    found = [
        [
            *(Check("", step[index], far) if step[index] or tolerance.exact else None for step in unsent),
            *(
                compare(f"output{index}", ours[step], theirs[step], allowed(tolerance, growth, first + step))
                for step in steps
            ),
        ]
        for index, (ours, theirs) in enumerate(zip(got, want, strict=True))
    ]
    growing = f"; times 1 + {growth:g} · step" if growth else ""
    checks = tuple(_check(index, rows, tolerance, growing, first, due) for index, rows in enumerate(found))
    errors = [0.0 if all(step) else None for step in unsent]
    errors += [_error([row[step] for row in got], [row[step] for row in want]) for step in steps]
    rows = {}
    for step, error in enumerate(errors):
        judged = [row[step] for row in found]
        if None not in judged:
            rows[step] = StepVerdict(all(row is not None and row.passed for row in judged), error)
    return StepsVerdict(checks, rows, tolerance, growth)


def _check(
    index: int, rows: Sequence[Check | None], tolerance: Tolerance, growing: str, first: int, due: int
) -> Check:
    """The verdict of an output in `due` steps, of which those before number `first` are judged by CRC."""
    name = f"output{index} is as expected"
    bad = [number for number, row in enumerate(rows) if row is not None and not row.passed]
    unknown = sum(row is None for row in rows)
    if bad:
        reason = rows[bad[0]]
        assert reason is not None
        words = f"step {bad[0]} of {len(rows)} is the first beyond the tolerance: {reason.detail}"
        return Check(name, False, f"{words}{growing}; {len(bad)} steps are beyond it")
    if len(rows) < due:
        return Check(name, False, f"the sequence ended after {len(rows)} steps, {due} are expected")
    by_crc = first - unknown
    which = f"all {len(rows)} steps"
    if first:
        which = f"step {first}, the last, of {len(rows)}"
        which += f"; {by_crc} others by the CRC-32 of their bytes" if by_crc else ""
        which += f"; {unknown} were not judged, for the board sent their CRC-32 alone" if unknown else ""
    return Check(name, True, f"{which}; {tolerance}{growing}")


def _error(got: Sequence[Array], want: Sequence[Array]) -> float | None:
    largest = 0.0
    for left, right in zip(got, want, strict=True):
        if left.shape != right.shape or left.dtype != right.dtype:
            return None
        with np.errstate(invalid="ignore"):
            difference = np.abs(left.astype(np.float64) - right.astype(np.float64))
        largest = max(largest, float(difference.max(initial=0.0)))
    return largest if np.isfinite(largest) else None


def sequence_part(
    steps: Sequence[StepResult],
    feeds: Sequence[Feed],
    asked: int | None,
    verdict: StepsVerdict | None,
    events: Mapping[int, str],
    source: str,
) -> SequencePart:
    """The record's `sequence`: what each of the `steps` gave and cost; `asked` is how many were asked for, None where
    all inputs were given. `events` are the names of events that were counted, `source` says what of them is known."""
    # An event that overflowed in one step has no figure there, so it has none in the table.
    counted = [event for event in events if steps and all(event in row.counters for row in steps)]
    judged = {} if verdict is None else verdict.rows
    rows = []
    for number, step in enumerate(steps):
        found = judged.get(number)
        choices = tuple(Choice(input=index, values=values) for index, values in sorted(step.choices.items()))
        rows.append(
            Step(
                step=number,
                npu_cycles=step.npu_cycles,
                counters=tuple(step.counters[event] for event in counted) or None,
                choices=choices or None,
                state_crc32=step.state_crcs or None,
                status=None if found is None else "pass" if found.passed else "fail",
                max_abs_error=None if found is None else found.max_abs_error,
            )
        )
    tolerance, beyond = None, None
    if verdict is not None:
        tolerance = StepTolerance(
            atol=verdict.tolerance.atol, rtol=verdict.tolerance.rtol, growth=verdict.growth
        )
        beyond = min((number for number, row in judged.items() if not row.passed), default=None)
    known = any(row.npu_cycles is not None for row in steps)
    return SequencePart(
        feeds=tuple(map(str, feeds)),
        source=cast(Source, source) if known else None,
        events=tuple(events[event] for event in counted) or None,
        tolerance=tolerance,
        first_beyond=beyond,
        asked=asked,
        steps=tuple(rows),
    )
