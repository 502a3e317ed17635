"""Every link of pages and notebooks of the project leads to a file, and to a heading of it where it names one."""

import functools
import json
import re
from pathlib import Path

from tests.contract.sources import offenders
from tests.places import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/**/*.ipynb")])
# Pages that mkdocs makes (scripts/docs_pages.py) and checks the links to.
GENERATED = {
    ROOT / "docs" / name for name in ("reference/python.md", "reference/records.md", "guide/errors.md")
}
_LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@functools.cache
def prose(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        cells = (cell["source"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")
        text = "\n\n".join("".join(lines) for lines in cells)
    return _FENCE.sub("", text)


@functools.cache
def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings: lower case, spaces to hyphens, most other signs left out."""
    headings = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(prose(page)))
    return {heading.strip().replace(" ", "-") for heading in headings}


def broken(page: Path) -> list[str]:
    """The links that lead nowhere."""
    found = []
    for link in _LINK.findall(prose(page)):
        name, _, heading = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        there = target.exists() or target in GENERATED
        if not there or (heading and heading not in anchors(target)):
            found.append(link)
    return found


def test_links_lead_somewhere() -> None:
    found = offenders(PAGES, broken)
    assert not found, found


def test_planted_links_are_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b`\n[1](page.md#a-b) [2](#none) [3](other.md) [4](https://a.b/)\n```\n[5](code)\n```\n"
    )
    assert broken(page) == ["#none", "other.md"]


def test_there_are_links_to_check() -> None:
    assert sum(len(_LINK.findall(prose(page))) for page in PAGES) > 50
    notebooks = [page for page in PAGES if page.suffix == ".ipynb"]
    assert all(_LINK.findall(prose(page)) for page in notebooks)
    assert len(notebooks) == 2
