"""Pages for people are in plain English: short sentences that begin with their subject.

docs/reference is left out: its pages quote what tools and models say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.places import ROOT

PAGES = sorted(
    path
    for pattern in ("*.md", "qemu/*.md", "benchmarks/*.md", "docs/*.md", "docs/[!r]*/*.md")
    for path in ROOT.glob(pattern)
)
LONGEST = 45  # words
INSTEAD = {
    r"^Of (?!course)": "begin with the subject: 'Fault messages give …', not 'Of a fault the message has …'",
    r"^(?:What(?! to do)|Whatever|Whoever|Whose) .*[^?]$": "'Unknown figures are …', not 'What is not known …'",
    r"\bwhat (?:is|was|are) \w+ (?:is|are|was)\b": "name the thing",
    r"(?<!there )\bis no (?!longer|more)\w+(?=$|[,.;:])": "'is not a …'",
    r"\b(?:tells?|told) (?:of|that|whether|how|what|which|where)\b": "'says', 'shows', 'reports'",
    r"\b(?:no leave|made anew|falls? away|comes? through|but for|otherwise than)\b": "say what happens",
}
_NOT_PROSE = re.compile(r"^```.*?^```|^ {4,}.*?$|^[#|].*?$|\]\([^)]*\)", re.MULTILINE | re.DOTALL)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a page's paragraphs and lists; code is one word."""
    prose = re.sub(r"`[^`]*`", "CODE", _NOT_PROSE.sub("", text)).replace("*", "")
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:-|\d+\.) )", prose):
        words = " ".join(paragraph.split())
        yield from filter(None, re.split(r"(?<=[.!?:;])\s+(?=[A-Z\[])", re.sub(r"^(?:-|\d+\.) ", "", words)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_are_short_and_plain(page: Path) -> None:
    for sentence in sentences(page.read_text(encoding="utf-8")):
        assert len(sentence.split()) <= LONGEST, sentence
        for pattern, instead in INSTEAD.items():
            assert not re.search(pattern, sentence), f"{sentence}\n→ {instead}"


def test_riddles_are_noticed() -> None:
    text = "# Of no page\n\nOf a fault the\nmessage has `pc`.\n\n- What is not known is listed.\n- A pass is fine.\n"
    found = [sum(bool(re.search(p, s)) for p in INSTEAD) for s in sentences(text)]
    assert found == [1, 1, 0]
