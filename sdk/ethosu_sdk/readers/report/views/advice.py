"""Advice: what the rules of `advise` say about the run."""

from __future__ import annotations

from typing import Any

from ethosu_sdk.errors import SdkError
from ethosu_sdk.readers.advise import advise_tables, facts
from ethosu_sdk.readers.advise.judgement import judge
from ethosu_sdk.readers.report.subject import COMPILE, DEBUG, PROFILE, Subject

_LINES = ("do", "write")  # what is typed, in a font of fixed width


def of(subject: Subject) -> dict[str, Any]:
    """Each advice as a title and rows, and the silent rules, why they are; `reason` says why there is nothing."""
    profile = subject.record(PROFILE)
    if subject.program is None or not profile:
        reason = subject.missing.get("program") or subject.missing.get(PROFILE, "there is no profile")
        return {"reason": reason, "given": [], "silent": []}
    try:
        found = facts.of(
            subject.program, profile, subject.record(COMPILE), subject.record(DEBUG), subject.missing
        )
    except SdkError as error:
        return {"reason": error.message, "given": [], "silent": []}
    judgement = judge(found)
    return {
        "reason": "",
        "given": [_given(rule.name, row.to_json()) for rule, row in judgement.advice],
        "silent": [(row.rule.name, row.reason) for row in judgement.silent],
    }


def _given(rule: str, row: dict[str, Any]) -> dict[str, Any]:
    """Lines of code that follow each other stand in one cell."""
    rows: list[dict[str, Any]] = []
    for name, text in advise_tables.pairs(row):
        if rows and name in _LINES and rows[-1]["name"] == name:
            rows[-1]["text"] += f"\n{text}"
        else:
            rows.append({"name": name, "text": text, "is_code": name in _LINES})
    where = f" ({row['where']})" if "where" in row else ""
    return {"title": f"{rule}{where}: {advise_tables.change_text(row['gains'][0])}", "rows": rows}
