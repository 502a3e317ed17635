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


def unjudged(record: Record) -> str:
    """For the verdict's first line: that some steps were not judged; empty where all were, or none was to be."""
    sequence = record.get("sequence", {})
    steps = sequence.get("steps", ())
    judged = sum("status" in row for row in steps)
    if "tolerance" not in sequence or judged == len(steps):
        return ""
    which = "the last step alone was judged" if judged == 1 else f"{judged} steps alone were judged"
    return f"of {len(steps)} steps, {which}: leave --outputs last out, or give no tolerance"


_SHOWN_CHOICES = 32


def lines(record: Record) -> list[tuple[str, str]]:
    """For people: the state, the steps and what was chosen in them."""
    found = []
    for row in record.get("state", {}).get("tensors", ()):
        place = f"{row['memory']}, planned buffer {row['arena']} from byte {row['offset']:,}"
        found.append(
            ("state", f"{row['name']}, {row['dtype']}{row['shape']}, {row['bytes']:,} bytes in {place}")
        )
    sequence = record.get("sequence")
    if sequence is None:
        return found
    if "first_beyond" in sequence:
        found.append(("first beyond", f"step {sequence['first_beyond']} is the first beyond the tolerance"))
    for text, number in ((feed, feed.rpartition(":input")[2]) for feed in sequence["feeds"]):
        values = [
            value
            for step in sequence["steps"]
            for row in step.get("choices", ())
            if str(row["input"]) == number
            for value in row["values"]
        ]
        cut = " …" if len(values) > _SHOWN_CHOICES else ""
        chosen = f" chose {' '.join(map(str, values[:_SHOWN_CHOICES]))}{cut}" if values else ""
        found.append(("feed", text + chosen))
    return found
