"""run.json's `sequence`: what each step gave and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ethosu_sdk.feeds import Feed
from ethosu_sdk.records import Record
from ethosu_sdk.steps.run.sequences.judging import StepsVerdict
from ethosu_sdk.steps.run.sequences.stepping_facts import StepFacts


def part(
    steps: Sequence[StepFacts],
    feeds: Sequence[Feed],
    asked: int | None,
    verdict: StepsVerdict | None,
    events: Mapping[int, str],
    source: str,
) -> Record:
    """The member `sequence` of the `steps` that were made; `asked` is how many were asked for, None where all inputs
    were given. `events` are the names of events that were counted, `source` says what of them is known. An event
    without a figure in one of the steps is left out."""
    # An event that overflowed in one step has no figure there, so it has none in the table.
    counted = [event for event in events if steps and all(event in row.counters for row in steps)]
    known = any(row.npu_cycles is not None for row in steps)
    judged = {} if verdict is None else verdict.rows
    rows = []
    for number, step in enumerate(steps):
        row: Record = {"step": number}
        if step.npu_cycles is not None:
            row["npu_cycles"] = step.npu_cycles
        if counted:
            row["counters"] = [step.counters[event] for event in counted]
        if step.choices:
            row["choices"] = [
                {"input": index, "values": list(values)} for index, values in sorted(step.choices.items())
            ]
        if step.state_crcs:
            row["state_crc32"] = list(step.state_crcs)
        if (found := judged.get(number)) is not None:
            row["status"] = "pass" if found.passed else "fail"
            row |= {} if found.max_abs_error is None else {"max_abs_error": found.max_abs_error}
        rows.append(row)
    return {
        "sequence": {
            "feeds": [str(feed) for feed in feeds],
            **({"source": source} if known else {}),
            **({"events": [events[event] for event in counted]} if counted else {}),
            **({} if verdict is None else _tolerance(verdict)),
            **({} if asked is None else {"asked": asked}),
            "steps": rows,
        }
    }


def _tolerance(verdict: StepsVerdict) -> Record:
    beyond = verdict.first_beyond
    return {
        "tolerance": {
            "atol": verdict.tolerance.atol,
            "rtol": verdict.tolerance.rtol,
            "growth": verdict.growth,
        },
        **({} if beyond is None else {"first_beyond": beyond}),
    }
