"""The site as people read it from a folder, without a server or a network."""

import re
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from playwright.sync_api import Browser

from tests.integration.browsing import Scheme
from tests.places import ROOT

# A page of each kind: text with a diagram, tables, code and text generated from the program, a notebook.
PAGES = (
    "index.html",
    "guide/boards.html",
    "reference/commands.html",
    "reference/commands/run.html",
    "internals/architecture.html",
    "guide/notebooks/first-model.html",
)
DIAGRAMS = sorted(ROOT.glob("docs/images/*.svg"))
PHONE, MARGIN, LEAST_PX = 400, 16, 11.0
MOST_PICTURE_BYTES = 150_000
_LINK = re.compile(r'(?:href|src)="([^"]+)"')
_TEXTS = """() => [...document.querySelectorAll("text")].map(text => {
  const box = text.getBoundingClientRect(), style = getComputedStyle(text);
  return [text.textContent, style.fill, box.left, box.right, parseFloat(style.fontSize)];
})"""
_GROUND = {"light": 1.0, "dark": 0.02}  # luminance of the site's background


def test_every_link_of_a_page_leads_to_a_file(site: Path) -> None:
    """Those of notebooks too, which mkdocs does not look at."""
    pages = sorted(path for path in site.rglob("*.html") if site / "gallery" not in path.parents)
    assert site / "guide" / "notebooks" / "npu-model.html" in pages
    for page in (page for page in pages if page.name != "404.html"):
        for link in _LINK.findall(page.read_text(encoding="utf-8")):
            if not re.match(r"[a-z]+:|//|#|&#", link):
                assert (page.parent / unquote(urldefrag(link)[0])).resolve().exists(), f"{page}: {link}"


def test_the_search_works_from_files(site: Path, browser: Browser) -> None:
    context = browser.new_context(offline=True)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "guide" / "report.html").as_uri())
    # Words such as "to" do not decide: torch begins with it.
    for words, wanted in (("interrupted sweep", "guide/sweep.html"), ("how to install", "index.html")):
        page.locator("input[name=query]").fill(words)
        page.keyboard.press("End")  # a key that comes up starts the search
        first = f'.md-search-result__item:first-child a[href*="{wanted}"]'
        page.wait_for_selector(first, timeout=30_000)
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, 1280, 1600])
def test_pages_fit_their_window(site: Path, browser: Browser, width: int, scheme: Scheme) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    for name in PAGES:
        page.goto((site / name).as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert (_luminance(page.evaluate("getComputedStyle(document.body).backgroundColor")) < 0.2) == (
            scheme == "dark"
        )
    assert said == []
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("diagram", DIAGRAMS, ids=lambda path: path.stem)
def test_diagrams_are_legible_on_a_phone(browser: Browser, diagram: Path, scheme: Scheme) -> None:
    assert _illegible(browser, diagram, scheme) == []


def test_what_is_not_legible_is_found(browser: Browser, tmp_path: Path) -> None:
    texts = (
        '<text x="10" y="20" font-size="12">small</text>'
        '<text x="10" y="90" font-size="40" fill="#aaaaaa">grey</text>'
        '<text x="970" y="140" font-size="40">beyond</text>'
        '<text x="10" y="190" font-size="40" fill="#303030">fine</text>'
    )
    path = tmp_path / "wide.svg"
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 200" width="1000">{texts}</svg>'
    )
    assert _illegible(browser, path, "light") == ["small: size", "grey: contrast", "beyond: place"]


def _illegible(browser: Browser, diagram: Path, scheme: Scheme) -> list[str]:
    """Texts below 11 px where a phone shrinks the diagram to its width, beyond an edge, or of a contrast below 4.5
    (WCAG 2.1, AA) with the page."""
    context = browser.new_context(viewport={"width": 1200, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.goto(diagram.as_uri())
    width = page.evaluate("document.documentElement.viewBox.baseVal.width")
    texts = page.evaluate(_TEXTS)
    context.close()
    shrunk = min(1.0, (PHONE - 2 * MARGIN) / width)
    found = []
    for text, fill, left, right, size in texts:
        found += [f"{text}: size"] if size * shrunk < LEAST_PX else []
        found += [f"{text}: place"] if left < 0 or right > width else []
        found += [f"{text}: contrast"] if _contrast(_luminance(fill), _GROUND[scheme]) < 4.5 else []
    return found


def test_pictures_are_small() -> None:
    pictures = sorted(ROOT.glob("docs/images/*"))
    assert len(pictures) >= 4
    assert all(path.stat().st_size < MOST_PICTURE_BYTES for path in pictures)


def test_the_first_page_shows_three_commands_and_what_they_print(site: Path) -> None:
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    block = text.partition("```text\n")[2].partition("```")[0]
    assert re.findall(r"^\$ ethosu-sdk (\w+)", block, re.MULTILINE) == ["run", "profile", "report"]
    assert " on alif-e8-hp" in block
    assert "\ntime " in block
    assert max(map(len, block.splitlines())) <= 80
    assert "images/report.png" in (site / "index.html").read_text(encoding="utf-8")


def _luminance(colour: str) -> float:
    """Relative luminance of a colour as the browser has it: rgb(r, g, b) (WCAG 2.1)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: float, other: float) -> float:
    high, low = max(one, other), min(one, other)
    return (high + 0.05) / (low + 0.05)
