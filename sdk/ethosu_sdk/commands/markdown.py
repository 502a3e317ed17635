"""What the summaries of records are made of: Markdown as GitHub and GitLab show it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ethosu_sdk.records import Record

_SIGNS = {"pass": "✅", "fail": "❌", "error": "❌"}
# What means something to Markdown or HTML; a record's texts are names of other people's files and models.
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&$])")


def text(value: object) -> str:
    """`value` as a text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(str(value).split()))


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """The lines of a table, an empty one first; none without rows."""
    lines = ["| " + " | ".join(text(cell) for cell in row) + " |" for row in rows]
    if not lines:
        return []
    return ["", f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}", *lines]


def title(record: Record, what: str, name: str) -> str:
    """The heading of a record that is about `name`, with its status as a sign."""
    return f"### {_SIGNS[record['status']]} {what}: {text(name)}"


def target_text(record: Record) -> str:
    """What a record's program was compiled for."""
    target = record.get("target")
    if target is None:
        return "no NPU"
    return f"{target['npu']}-{target['macs']}, {target['system_config']}, {target['memory_mode']}"
