"""Make the gallery of the documentation in build/gallery: pages of real runs, and pictures of them.

scripts/docs calls it before mkdocs, and scripts/docs_pages.py takes the pages into the site. With --picture, the
picture of a report's plots also becomes docs/images/report.png, for readers of the repository.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
GALLERY = ROOT / "build" / "gallery"
PLOTS = "report.png"  # the picture of a report's plots
_COLOURS = 64  # of a picture
_MOST_PICTURE_BYTES = 150_000
_WINDOW = {"width": 1280, "height": 860}
_MOST_HEIGHT = 900
_TIMEOUT_S = 900
_DRAWN_MS = 60_000
_SWEEP = """
name = "keyword"
models = ["zoo:ds_cnn", "zoo:digits_cnn"]
targets = ["ethos-u55-*", "ethos-u85-256"]
simulators = ["host"]

[[constraints]]
figure = "sram_bytes"
max = "256 KiB"
"""


@dataclass(frozen=True)
class Shown:
    """A page of the gallery: its file, and the commands that make it in the folder `work`."""

    page: str
    commands: tuple[str, ...]


PAGES = (
    Shown(
        "network.html",
        (
            "profile zoo:ds_cnn --system alif-e8-hp -o ds_cnn",
            "report ds_cnn -o network.html",
        ),
    ),
    Shown(
        "comparison.html",
        (
            "profile zoo:ds_cnn --system alif-e8-he -o ds_cnn-he",
            "report ds_cnn ds_cnn-he -o comparison.html",
        ),
    ),
    Shown("sweep/index.html", ("sweep run sweep.toml -o sweep",)),
)


def make(work: Path) -> None:
    """Run the commands in `work`, and leave pages and pictures in GALLERY."""
    (work / "sweep.toml").write_text(_SWEEP, encoding="utf-8")
    for page in PAGES:
        for command in page.commands:
            _sdk(command, work)
    shutil.rmtree(GALLERY, ignore_errors=True)
    for path in _files(work):
        target = GALLERY / path.relative_to(work)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    _pictures()


def _sdk(command: str, work: Path) -> None:
    print(f"$ ethosu-sdk {command}", flush=True)
    program = Path(sys.executable).with_name("ethosu-sdk")
    subprocess.run([program, *command.split(), "-q"], cwd=work, check=True, timeout=_TIMEOUT_S)


def _files(work: Path) -> Iterator[Path]:
    """The pages, and the records of cells that the page of the sweep has links to."""
    yield from (work / page.page for page in PAGES)
    yield from sorted(work.glob("sweep/cells/*/run.json"))


def _pictures() -> None:
    program = shutil.which("chromium")
    if program is None:
        raise SystemExit("chromium is not installed: scripts/setup installs it")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        for page in PAGES:
            path = GALLERY / page.page
            with _drawn(browser, path) as shown:
                shown.screenshot(path=path.with_suffix(".png"))
                _reduce(path.with_suffix(".png"))
        with _drawn(browser, GALLERY / PAGES[0].page) as shown:
            _picture_plots(shown)
        browser.close()


@contextmanager
def _drawn(browser: Browser, path: Path) -> Iterator[Page]:
    """The page at `path` with its plots, in a browser without a network."""
    context = browser.new_context(viewport=_WINDOW, color_scheme="light", offline=True)
    shown = context.new_page()
    shown.goto(path.as_uri())
    shown.wait_for_selector("html[data-drawn=light]", timeout=_DRAWN_MS)
    yield shown
    context.close()


def _picture_plots(shown: Page) -> None:
    """The first section with plots, as many of them as a picture has room for."""
    section = shown.locator("section:has(figure)").first
    box = section.bounding_box()
    assert box is not None
    figures = (figure.bounding_box() for figure in section.locator("figure").all())
    ends = [found["y"] + found["height"] - box["y"] for found in figures if found is not None]
    box["height"] = max((end for end in ends if end <= _MOST_HEIGHT), default=_MOST_HEIGHT)
    shown.screenshot(path=GALLERY / PLOTS, clip=box, full_page=True)
    _reduce(GALLERY / PLOTS)


def _reduce(path: Path) -> None:
    """Fewer colours in a picture, which must be small."""
    Image.open(path).convert("RGB").quantize(_COLOURS).save(path, optimize=True)
    if path.stat().st_size > _MOST_PICTURE_BYTES:
        raise SystemExit(f"{path} has {path.stat().st_size:,} bytes, more than {_MOST_PICTURE_BYTES:,}")


def main() -> None:
    """Make all."""
    with tempfile.TemporaryDirectory() as work:
        make(Path(work))
    if "--picture" in sys.argv[1:]:
        shutil.copyfile(GALLERY / PLOTS, ROOT / "docs" / "images" / PLOTS)


if __name__ == "__main__":
    main()
