"""Make the gallery of the documentation in build/gallery: pages of real runs, pictures of them, and what the commands
of the first page print.

scripts/docs calls it before mkdocs, and scripts/docs_pages.py takes all into the site. With --write, docs/index.md
and docs/images/report.png get the same, for readers of the repository.
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
from typing import Literal

from docs_pages import DARK_PLOTS, GALLERY, OUTPUT, PLOTS, with_output
from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

Scheme = Literal["light", "dark"]
ROOT = Path(__file__).resolve().parents[1]
_COLOURS = 64  # of a picture
_MOST_PICTURE_BYTES = 150_000
_WINDOW: ViewportSize = {"width": 1280, "height": 860}
_NARROW: ViewportSize = {"width": 800, "height": 860}  # the site shows its picture little smaller than it is
_MOST_HEIGHT = 900
_COLUMNS = "80"
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
class Step:
    """A command, and whether the first page shows what it prints."""

    command: str
    is_shown: bool = False


_STEPS = (
    Step("run zoo:ds_cnn --system alif-e8-hp -o ds_cnn", is_shown=True),
    Step("profile ds_cnn --rows 3", is_shown=True),
    Step("advise ds_cnn --try-only program,model"),
    Step("report ds_cnn", is_shown=True),
    Step("profile zoo:ds_cnn --system alif-e8-he -o ds_cnn-he"),
    Step("report ds_cnn ds_cnn-he -o comparison.html"),
    Step("sweep run sweep.toml -o sweep"),
)
# The pages of the gallery, and where the commands leave them.
_PAGES = {
    "network.html": "ds_cnn/report.html",
    "comparison.html": "comparison.html",
    "sweep/index.html": "sweep/index.html",
}


def make(work: Path) -> None:
    """Run the commands in `work`, and leave pages, pictures and output in GALLERY."""
    (work / "sweep.toml").write_text(_SWEEP, encoding="utf-8")
    shown = []
    for step in _STEPS:
        output = _output(step.command, work)
        shown += [f"$ ethosu-sdk {step.command}", *output.splitlines()] if step.is_shown else []
    shutil.rmtree(GALLERY, ignore_errors=True)
    linked = [path for name in ("cell.json", "report.html") for path in work.glob(f"sweep/cells/*/{name}")]
    pages = {name: work / place for name, place in _PAGES.items()}
    for name, path in {**pages, **{str(path.relative_to(work)): path for path in linked}}.items():
        (GALLERY / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, GALLERY / name)
    _pictures()
    text = "\n".join(["```text", *shown, "```", ""])
    (GALLERY / OUTPUT).write_text(text, encoding="utf-8")


def _output(command: str, work: Path) -> str:
    print(f"$ ethosu-sdk {command}", flush=True)
    program = Path(sys.executable).with_name("ethosu-sdk")
    environment = {**os.environ, "COLUMNS": _COLUMNS, "TERM": "dumb"}
    done = subprocess.run(
        [program, *command.split()],
        cwd=work,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=_TIMEOUT_S,
    )
    return done.stdout


def _pictures() -> None:
    program = shutil.which("chromium")
    if program is None:
        raise SystemExit("chromium is not installed: scripts/setup installs it")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        for path in (GALLERY / name for name in _PAGES):
            with _drawn(browser, path, _WINDOW, "light") as shown:
                shown.screenshot(path=path.with_suffix(".png"))
                _reduce(path.with_suffix(".png"))
        schemes: tuple[tuple[Scheme, str], ...] = (("light", PLOTS), ("dark", DARK_PLOTS))
        for scheme, name in schemes:
            with _drawn(browser, GALLERY / next(iter(_PAGES)), _NARROW, scheme) as shown:
                _picture_plots(shown, GALLERY / name)
        browser.close()


@contextmanager
def _drawn(browser: Browser, path: Path, window: ViewportSize, scheme: Scheme) -> Iterator[Page]:
    """The page at `path` with its plots, in a browser without a network."""
    context = browser.new_context(viewport=window, color_scheme=scheme, offline=True)
    shown = context.new_page()
    shown.goto(path.as_uri())
    shown.wait_for_selector(f"html[data-drawn={scheme}]", timeout=_DRAWN_MS)
    yield shown
    context.close()


def _picture_plots(shown: Page, path: Path) -> None:
    """The plots of the first screen, as many of them as a picture has room for."""
    section = shown.locator(".answer").first
    box = section.bounding_box()
    assert box is not None
    figures = (figure.bounding_box() for figure in section.locator("figure").all())
    ends = [found["y"] + found["height"] - box["y"] for found in figures if found is not None]
    box["height"] = max((end for end in ends if end <= _MOST_HEIGHT), default=_MOST_HEIGHT)
    shown.screenshot(path=path, clip=box, full_page=True)
    _reduce(path)


def _reduce(path: Path) -> None:
    """Fewer colours in a picture, which must be small."""
    Image.open(path).convert("RGB").quantize(_COLOURS).save(path, optimize=True)
    if path.stat().st_size > _MOST_PICTURE_BYTES:
        raise SystemExit(f"{path} has {path.stat().st_size:,} bytes, more than {_MOST_PICTURE_BYTES:,}")


def main() -> None:
    """Make all."""
    with tempfile.TemporaryDirectory() as work:
        make(Path(work))
    if "--write" in sys.argv[1:]:
        shutil.copyfile(GALLERY / PLOTS, ROOT / "docs" / "images" / PLOTS)
        page = ROOT / "docs" / "index.md"
        block = (GALLERY / OUTPUT).read_text(encoding="utf-8")
        page.write_text(with_output(page.read_text(encoding="utf-8"), block), encoding="utf-8")


if __name__ == "__main__":
    main()
