"""advice.json: ``advice/1``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ethosu_sdk import provenance
from ethosu_sdk.readers.advise import cpu_calls, tried_record
from ethosu_sdk.readers.advise.facts import COMPILE, DEBUG, Facts
from ethosu_sdk.readers.advise.verdict import Verdict
from ethosu_sdk.records import kinds
from ethosu_sdk.records.advice import Advice
from ethosu_sdk.records.common import Unavailable
from ethosu_sdk.results import host_facts
from ethosu_sdk.results.trials import Tries

RECORD_NAME = kinds.ADVICE.file


def make(
    facts: Facts, verdict: Verdict, files: Sequence[tuple[str, Path]], tries: Tries | None = None
) -> Advice:
    """The record. `files` are what it was made from, each with its role; `tries` are what came of changes."""
    profile = facts.profile
    inputs = [provenance.file_entry(*row) for row in files]
    tools = [row.to_json() for row in profile.provenance.tools]
    return Advice(
        status="done",
        **provenance.origin(inputs, tools),
        model=profile.model,
        target=profile.target,
        advice=verdict.advice,
        cpu=cpu_calls.lines(facts) if facts.compilation is not None else None,
        tried=None if tries is None else tried_record.make(facts, tries),
        silent=verdict.silent,
        unavailable=tuple(
            Unavailable(path=f"/{kind}", reason=facts.missing[kind])
            for kind in (COMPILE, DEBUG)
            if kind in facts.missing
        ),
        host=host_facts.this_host(),
    )
