"""Advice: what the rules of `advise` say about the run."""

from __future__ import annotations

from typing import Any

from ethosu_sdk.readers.advise import advise_tables, facts
from ethosu_sdk.readers.advise.verdict import judge
from ethosu_sdk.readers.report.inputs import COMPILE, DEBUG, PROFILE, Inputs

_LINES = ("do", "write")  # what is typed, in a font of fixed width


def of(inputs: Inputs) -> dict[str, Any]:
    """Each advice as a title and rows, and the silent rules, why they are; `reason` says why there is nothing."""
    profile = inputs.record(PROFILE)
    if inputs.program is None or not profile:
        reason = inputs.missing.get("program") or inputs.missing.get(PROFILE, "there is no profile")
        return {"reason": reason, "advice": [], "silent": []}
    program = inputs.facts.program
    if program is None:
        return {"reason": inputs.facts.program_reason, "advice": [], "silent": []}
    found = facts.of(program, profile, inputs.record(COMPILE), inputs.record(DEBUG), inputs.missing)
    verdict = judge(found)
    return {
        "reason": "",
        "advice": [_entry(rule.name, row.to_json()) for rule, row in verdict.advice],
        "silent": [(row.rule.name, row.reason) for row in verdict.silent],
    }


def _entry(rule: str, row: dict[str, Any]) -> dict[str, Any]:
    """Lines of code that follow each other stand in one cell."""
    rows: list[dict[str, Any]] = []
    for name, text in advise_tables.pairs(row):
        if rows and name in _LINES and rows[-1]["name"] == name:
            rows[-1]["text"] += f"\n{text}"
        else:
            rows.append({"name": name, "text": text, "is_code": name in _LINES})
    where = f" ({row['where']})" if "where" in row else ""
    return {"title": f"{rule}{where}: {advise_tables.change_text(row['gains'][0])}", "rows": rows}
