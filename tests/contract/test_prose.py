"""Pages for people are in plain English: short sentences that begin with their subject.

docs/reference is left out: its pages quote what tools and models say.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.contract.sources import offenders, text
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


def sentences(page: str) -> Iterator[str]:
    """The sentences of a page's paragraphs and lists; code is one word."""
    prose = re.sub(r"`[^`]*`", "CODE", _NOT_PROSE.sub("", page)).replace("*", "")
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:-|\d+\.) )", prose):
        words = " ".join(paragraph.split())
        yield from filter(None, re.split(r"(?<=[.!?:;])\s+(?=[A-Z\[])", re.sub(r"^(?:-|\d+\.) ", "", words)))


def riddles(page: Path) -> str:
    """The sentences that are too long or not plain, each with what to write instead."""
    found = []
    for sentence in sentences(text(page)):
        if len(sentence.split()) > LONGEST:
            found.append(f"{len(sentence.split())} words: {sentence}")
        found += [f"{sentence} → {say}" for pattern, say in INSTEAD.items() if re.search(pattern, sentence)]
    return "\n  ".join(found)


def test_sentences_are_short_and_plain() -> None:
    found = offenders(PAGES, riddles)
    assert not found, found


def test_planted_riddles_are_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Of no page\n\nOf a fault the\nmessage has `pc`.\n\n- What is not known is listed.\n- A pass is fine.\n\n"
        + "long " * 46
    )
    found = riddles(page).splitlines()
    assert [row.strip().partition(" → ")[0].split(": ")[0] for row in found] == [
        "Of a fault the message has CODE.",
        "What is not known is listed.",
        "46 words",
    ]
