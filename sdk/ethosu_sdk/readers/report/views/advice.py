"""Advice: what the rules of `advise` say about the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ethosu_sdk.readers.advise import advise_tables, cpu_calls, facts
from ethosu_sdk.readers.advise.rules import cpu
from ethosu_sdk.readers.advise.verdict import judge
from ethosu_sdk.readers.report.inputs import PROFILE, Inputs
from ethosu_sdk.records.advice import Item
from ethosu_sdk.records.profile import Operation
from ethosu_sdk.records.time_line import headline
from ethosu_sdk.tables import times

_LINES = ("do", "write")  # what is typed, in a font of fixed width
_LARGE_SHARE = 0.1  # of an inference: an operator that takes less is not the first thing to change
_OF_CONVERSIONS = ("quantised-io", "quantise")


def of(inputs: Inputs) -> dict[str, Any]:
    """Each advice as a title and rows, and the silent rules, why they are; `reason` says why there is nothing."""
    profile = inputs.profile
    if inputs.program is None or profile is None:
        reason = inputs.missing.get("program") or inputs.missing.get(PROFILE, "there is no profile")
        return {"reason": reason, "unadvised": "", "advice": [], "silent": []}
    program = inputs.facts.program
    if program is None:
        return {"reason": inputs.facts.program_reason, "unadvised": "", "advice": [], "silent": []}
    found = facts.of(program, profile, inputs.compiled, inputs.debug, inputs.missing)
    verdict = judge(found)
    return {
        "reason": "",
        "unadvised": unadvised(found, verdict.advice),
        "advice": [_entry(row) for row in verdict.advice],
        "silent": [(row.rule, row.reason) for row in verdict.silent],
    }


def unadvised(found: facts.Facts, advice: Sequence[Item]) -> str:
    """The operator that takes the CPU longest, where that is a good part of the time and no advice is about it."""
    time = headline(found.profile)
    if time is None or time.largest.duration_s < _LARGE_SHARE * time.total.duration_s:
        return ""
    name = time.largest.name
    rows = [row for row in found.cpu_rows if row.name == name]
    if not rows or any(_is_about(item, rows) for item in advice):
        return ""
    return (
        f"{times.short(name)} takes {times.milliseconds(time.largest.duration_s)} of "
        f"{times.milliseconds(time.total.duration_s)} on the CPU{times.calls_of_largest(time)}, and no rule has "
        f"advice on it. {_why(found, name)}`ethosu-sdk advise MODEL --try` compiles and runs what could replace it."
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


def _entry(row: Item) -> dict[str, Any]:
    """Lines of code that follow each other stand in one cell."""
    rows: list[dict[str, Any]] = []
    for name, text in advise_tables.pairs(row):
        if rows and name in _LINES and rows[-1]["name"] == name:
            rows[-1]["text"] += f"\n{text}"
        else:
            rows.append({"name": name, "text": text, "is_code": name in _LINES})
    return {"title": advise_tables.title(row), "rows": rows}
