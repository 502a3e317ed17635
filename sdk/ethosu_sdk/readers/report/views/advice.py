"""Advice: what the rules of `advise` say about the run."""

from __future__ import annotations

from typing import Any

from ethosu_sdk.readers.advise import advise_tables, facts
from ethosu_sdk.readers.advise.verdict import judge
from ethosu_sdk.readers.report.inputs import PROFILE, Inputs
from ethosu_sdk.records.advice import Item

_LINES = ("do", "write")  # what is typed, in a font of fixed width


def of(inputs: Inputs) -> dict[str, Any]:
    """Each advice as a title and rows, and the silent rules, why they are; `reason` says why there is nothing."""
    profile = inputs.profile
    if inputs.program is None or profile is None:
        reason = inputs.missing.get("program") or inputs.missing.get(PROFILE, "there is no profile")
        return {"reason": reason, "advice": [], "silent": []}
    program = inputs.facts.program
    if program is None:
        return {"reason": inputs.facts.program_reason, "advice": [], "silent": []}
    found = facts.of(program, profile, inputs.compiled, inputs.debug, inputs.missing)
    verdict = judge(found)
    return {
        "reason": "",
        "advice": [_entry(row) for row in verdict.advice],
        "silent": [(row.rule, row.reason) for row in verdict.silent],
    }


def _entry(row: Item) -> dict[str, Any]:
    """Lines of code that follow each other stand in one cell."""
    rows: list[dict[str, Any]] = []
    for name, text in advise_tables.pairs(row):
        if rows and name in _LINES and rows[-1]["name"] == name:
            rows[-1]["text"] += f"\n{text}"
        else:
            rows.append({"name": name, "text": text, "is_code": name in _LINES})
    return {"title": advise_tables.title(row), "rows": rows}
