"""advice.json: ``advice/1``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ethosu_sdk import provenance
from ethosu_sdk.readers.advise.facts import COMPILE, DEBUG, PROFILE, Facts
from ethosu_sdk.readers.advise.verdict import Verdict
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.results import host_facts

RECORD_NAME = kinds.ADVICE.file


def make(facts: Facts, verdict: Verdict, files: Sequence[tuple[str, Path]]) -> Record:
    """The record. `files` are what it was made from, each with its role."""
    profile = facts.profile
    return {
        **provenance.header(
            kinds.ADVICE.schema, "done", [provenance.file_entry(*row) for row in files], _tools(facts)
        ),
        "model": profile["model"],
        **({"target": profile["target"]} if "target" in profile else {}),
        "advice": [{"rule": rule.name, **row.to_json()} for rule, row in verdict.advice],
        "silent": [
            {"rule": row.rule.name, "state": row.state, "reason": row.reason} for row in verdict.silent
        ],
        "unavailable": [
            {"path": f"/{kind}", "reason": facts.missing[kind]}
            for kind in (COMPILE, PROFILE, DEBUG)
            if kind in facts.missing
        ],
        "host": host_facts.host(),
    }


def _tools(facts: Facts) -> list[Record]:
    tools: list[Record] = facts.profile["provenance"]["tools"]
    return tools
