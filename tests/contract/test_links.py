"""Every link of pages and notebooks of the project leads to a file, and to a heading of it where it names one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.places import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/**/*.ipynb")])
# Pages that mkdocs makes (scripts/docs_pages.py) and checks the links to.
GENERATED = {ROOT / "docs" / "reference" / name for name in ("python.md", "records.md")}
_LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def text_of(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        cells = (cell["source"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")
        text = "\n\n".join("".join(lines) for lines in cells)
    return _FENCE.sub("", text)


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
    notebooks = [page for page in PAGES if page.suffix == ".ipynb"]
    assert all(_LINK.findall(text_of(page)) for page in notebooks)
    assert len(notebooks) == 2
