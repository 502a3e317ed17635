"""Pages as a browser shows them, without a network; names that are meant to leave their places in them."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

Scheme = Literal["light", "dark"]
DRAWN_MS = 60_000
WINDOWS: list[tuple[int, Scheme]] = [(400, "light"), (400, "dark"), (1600, "light"), (1600, "dark")]
BREAKING = "window.broken = true"
HOSTILE = (
    f"</script><script>{BREAKING}</script>",
    f'"><img src=x onerror="{BREAKING}">',
    f"'-->]]><svg onload={BREAKING}>",
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.exe\u2028\u0000\x1b[2J",
    "x" * 20_000,
)


@dataclass
class Shown:
    """A page, what its console said, and the addresses that it asked for."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def assert_fits(self, path: Path, width: int, scheme: Scheme) -> str:
        """The page said nothing, asked for itself alone, is no wider than its window, and has the scheme's
        background, which is returned."""
        assert self.said == []
        assert [address for address in self.asked if not address.startswith("data:")] == [path.as_uri()]
        assert self.page.evaluate("document.documentElement.scrollWidth") <= width
        back: str = self.page.evaluate("getComputedStyle(document.body).backgroundColor")
        parts = back.removeprefix("rgb(").removesuffix(")").split(",")
        assert (sum(map(int, parts)) < 384) == (scheme == "dark")
        return back

    def cells(self, column: str) -> list[str]:
        """The texts of a column of the table that sorts, of rows that are shown; in a tree, of its leaves."""
        return list(
            self.page.evaluate(
                """title => {
                  const table = document.querySelector("table.sortable");
                  const at = [...table.tHead.rows[0].cells].findIndex(cell => cell.textContent.trim() === title);
                  const isTree = table.classList.contains("tree");
                  return [...table.tBodies[0].rows].filter(row => !row.hidden && (!isTree || "leaf" in row.dataset))
                    .map(row => (row.cells[at].querySelector(".name") || row.cells[at]).textContent);
                }""",
                column,
            )
        )

    def sums(self) -> dict[str, str]:
        """The last row of that table, by column."""
        found: dict[str, str] = self.page.evaluate(
            """() => {
              const table = document.querySelector("table.sortable");
              const titles = [...table.tHead.rows[0].cells].map(cell => cell.textContent.trim());
              return Object.fromEntries([...table.tFoot.rows[0].cells].map((c, i) => [titles[i], c.textContent]));
            }"""
        )
        return found


@contextmanager
def opened(browser: Browser, path: Path, *, width: int = 1280, scheme: Scheme = "light") -> Iterator[Shown]:
    """The file at `path` in a browser without a network, its plots drawn."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    page = context.new_page()
    shown = Shown(page)
    page.on("console", lambda message: shown.said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: shown.said.append(f"error: {error}"))
    page.on("request", lambda request: shown.asked.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector(f"html[data-drawn={scheme}]", timeout=DRAWN_MS)
    yield shown
    context.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's Chromium, of which a process can have one."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=arguments)
        yield found
        found.close()
