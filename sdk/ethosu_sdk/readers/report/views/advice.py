"""Advice: what changes got that were tried, what the rules of `advise` estimate, and the operators on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ethosu_sdk.readers.advise import advise_tables, cpu_calls, facts, tried_tables
from ethosu_sdk.readers.advise.rules import cpu
from ethosu_sdk.readers.advise.rules.replacements import OPERATOR_CHANGES
from ethosu_sdk.readers.advise.verdict import Verdict, judge
from ethosu_sdk.readers.report.inputs import ADVICE, PROFILE, Inputs
from ethosu_sdk.readers.report.views import advice_rows, on_the_cpu, tried
from ethosu_sdk.records.advice import Item, Tried
from ethosu_sdk.records.parts.time_line import headline
from ethosu_sdk.records.profile import Operation
from ethosu_sdk.tables import times

_LARGE_SHARE = 0.1  # of an inference: an operator that takes less is not the first thing to change
_OF_CONVERSIONS = ("quantised-io", "quantise")


def of(inputs: Inputs) -> dict[str, Any]:
    """What was tried, each estimate as a title and rows, operators on the CPU, and the silent rules, why they are;
    `reason` says why there is nothing."""
    record = inputs.advised
    done = None if record is None else record.tried
    found, reason = _facts(inputs)
    time = headline(inputs.profile) if inputs.profile is not None else None
    calls = record.cpu if record is not None else None
    placed: Sequence[cpu_calls.Placed] = ()
    if found is not None:
        verdict = judge(found)
        placed = cpu_calls.placed(found) if found.compilation is not None else ()
    elif record is not None:
        verdict, reason = Verdict(record.advice, record.silent), ""
    else:
        verdict = Verdict((), ())
    return {
        "reason": reason,
        "tried": None if done is None else tried.of(done),
        "untried": inputs.missing.get(ADVICE, "") if done is None else "",
        "unadvised": "" if found is None else unadvised(found, verdict.advice, done),
        "advice": [
            {"title": advise_tables.title(row), "rows": advice_rows.of(advise_tables.pairs(row))}
            for row in verdict.advice
            if not tried_tables.was_tried(row, done)
        ],
        "cpu": on_the_cpu.timed(placed, time) if placed else on_the_cpu.of(calls, time) if calls else None,
        "silent": [(row.rule, row.reason) for row in verdict.silent],
    }


def _facts(inputs: Inputs) -> tuple[facts.Facts | None, str]:
    """What the rules need, or why it is not there."""
    profile, program = inputs.profile, inputs.facts.program
    if inputs.program is None or profile is None:
        reason = inputs.missing.get("program") or inputs.missing.get(PROFILE, "there is no profile")
        return None, reason
    if program is None:
        return None, inputs.facts.program_reason
    return facts.of(program, profile, inputs.compiled, inputs.debug, inputs.missing), ""


def unadvised(found: facts.Facts, advice: Sequence[Item], done: Tried | None = None) -> str:
    """The operator that takes the CPU longest, where that is a good part of the time, no advice is about it, and
    nothing of what was tried helps it."""
    time = headline(found.profile)
    if time is None or time.largest.duration_s < _LARGE_SHARE * time.total.duration_s:
        return ""
    name = time.largest.name
    rows = [row for row in found.cpu_rows if row.name == name]
    changes = {row.name for row in OPERATOR_CHANGES.get(name, ())}
    if not rows or any(_is_about(item, rows) for item in advice) or changes & set(tried.parts(done)):
        return ""
    hint = (
        "`ethosu-sdk advise MODEL --try` compiles and runs what could replace it."
        if done is None
        else "Nothing that was tried replaces it."
    )
    return (
        f"{times.short(name)} takes {times.milliseconds(time.largest.duration_s)} of "
        f"{times.milliseconds(time.total.duration_s)} on the CPU{times.calls_of_largest(time)}, and no rule has "
        f"advice on it. {_why(found, name)}{hint}"
    )


def _is_about(item: Item, rows: Sequence[Operation]) -> bool:
    """Whether an advice names the operator, or is about the conversions that it is."""
    return rows[0].name in item.finding or (item.rule in _OF_CONVERSIONS and cpu.is_conversion(rows[0]))


def _why(found: facts.Facts, name: str) -> str:
    """The first reason that is known for why calls of `name` are not delegated."""
    if found.compilation is None:
        return ""
    line = next((row for row in cpu_calls.lines(found) if row.name == name), None)
    if line is None:
        return ""
    instead = f" A replacement: {line.replacement}." if line.replacement is not None else ""
    return f"It is not delegated: {line.why.rstrip('.')}.{instead} "
