"""Every link between the pages of the project leads to a file, and to a heading of it where it names one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.places import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
# Pages that mkdocs makes (scripts/docs_pages.py) and checks the links to.
GENERATED = {ROOT / "docs" / "reference" / name for name in ("python.md", "records.md")}
_LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def text_of(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings: lower case, spaces to hyphens, most other signs left out."""
    headings = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(text_of(page)))
    return {heading.strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(text_of(page)):
        name, _, heading = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists() or target in GENERATED, link
        assert not heading or heading in anchors(target), link


def test_there_are_links_to_check() -> None:
    assert sum(len(_LINK.findall(text_of(page))) for page in PAGES) > 50
