"""What the summaries of records are made of: Markdown as GitHub and GitLab show it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ethosu_sdk import plain_text
from ethosu_sdk.records.common import Target

_SIGNS = {"pass": "✅", "fail": "❌", "error": "❌", "blocked": "❌", "interrupted": "⏹"}
# What means something to Markdown; a record's texts are names of other people's files and models.
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&$])")
# What GitHub or GitLab make a link, a mention, a reference, an image or HTML of, some of it despite a backslash.
_ACTIVE = re.compile(r"""[@!#&<>$~`]|%[\w"]|://|www\.|mailto:|xmpp:""", re.IGNORECASE)
_BARE_BAR = re.compile(r"(?<!\\)\|")
_BACKTICKS = re.compile(r"`+")


def escaped(value: object) -> str:
    """`value` as a text that Markdown shows as it is, on one line: as code where that alone is certain."""
    words = plain_text.line(" ".join(str(value).split()))
    if not _ACTIVE.search(words):
        return _SPECIAL.sub(r"\\\1", words)
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(words)), default=0))
    padding = " " if "`" in (words[0], words[-1]) else ""
    return f"{fence}{padding}{words}{padding}{fence}"


def _cell(value: object) -> str:
    # A bar parts cells in code, too, unless a backslash precedes it: that one is not shown.
    return _BARE_BAR.sub(r"\\|", escaped(value))


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """The lines of a table, an empty one first; none without rows."""
    lines = ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    if not lines:
        return []
    return ["", f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}", *lines]


def title(status: str, what: str, name: str) -> str:
    """The heading of a record that is about `name`, with its status as a sign."""
    return f"### {_SIGNS[status]} {what}: {escaped(name)}"


def target_text(target: Target | None) -> str:
    """What a record's program was compiled for."""
    return "no NPU" if target is None else target.words
