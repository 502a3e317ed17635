"""`convert --to model-explorer`: Model Explorer with Arm's adapter shows the figures at the graph's nodes."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.conftest import KeptFolder
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.integration.convert.reading import refused
from tests.integration.convert.test_etrecord import MODEL
from tests.places import ROOT
from tests.records import read

pytestmark = [pytest.mark.torch, pytest.mark.toolchain]

SERVER = ROOT / "tests" / "integration" / "convert" / "explorer_server.py"
SHOWN_MS = 60_000
WITHOUT = "-"  # what Model Explorer shows at a node that has no figure

Record = dict[str, Any]


@pytest.fixture(scope="module")
def run(kept_folder: KeptFolder) -> Path:
    """The profile of a program with two delegates."""

    def make(folder: Path) -> None:
        (folder / "net.py").write_text(MODEL, encoding="utf-8")
        for words in (
            ("compile", "net.py", "--as-written", "--no-check", "-o", "run"),
            ("run", "run/net.pte", "--simulator", "host", "-o", "run"),
            ("profile", "run"),
        ):
            sdk_ok(*words, "-q", cwd=folder)

    return kept_folder("explorer", make, MODEL, own=True) / "run"


@contextmanager
def _server(graph: Path, data: Path) -> Iterator[str]:
    """The address of Model Explorer with `data` on `graph`."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-u", str(SERVER), str(graph), str(data), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            said = []
            for line in process.stdout:
                said.append(line)
                if address := re.search(rf"http://127\.0\.0\.1:{port}\S*", line):
                    yield address[0]
                    break
            else:
                pytest.fail("".join(said))
        finally:
            process.kill()


def _shown(browser: Browser, graph: Path, data: Path) -> Counter[tuple[str, int]]:
    """Label and figure of each node that Model Explorer shows one at."""
    with _server(graph, data) as address:
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        try:
            page.goto(address)
            page.get_by_text("Root-level nodes stats").wait_for(timeout=SHOWN_MS)
            text = page.inner_text("body")
        finally:
            page.close()
    cells = [row.split("\t") for row in text.rpartition("Node data")[2].splitlines()]
    rows = [row for row in cells if len(row) == 3 and row[0].isdecimal()]
    assert rows, text
    return Counter((label, int(value)) for _, label, value in rows if value != WITHOUT)


def _converted(run: Path, folder: Path, *options: str) -> Path:
    data = folder / "data.json"
    sdk_ok("convert", run, "--to", "model-explorer", *options, "-o", data, cwd=folder)
    return data


def _expected(run: Path, delegate: int, source: str) -> Counter[tuple[str, int]]:
    """TOSA operator and cycles of each node, by its output tensor."""
    record = read(run / "profile.json")
    sums: Counter[tuple[str, str]] = Counter()
    for row in record["operations"]:
        if row.get("delegate") == delegate and "tosa" in row:
            cycles = [part["value"] for part in row["cycles"] if part["source"] == source]
            if cycles:
                sums[row["tosa"]["operator"], row["tosa"]["tensor"]] += cycles[0] * row["calls"]
    assert sums
    return Counter((operator, value) for (operator, _), value in sums.items())


@pytest.mark.parametrize(
    ("delegate", "source", "options"),
    [(0, "modelled", ()), (1, "estimated", ("--delegate", "1", "--figure", "estimated"))],
)
def test_the_figures_are_at_the_nodes(
    run: Path, browser: Browser, tmp_path: Path, delegate: int, source: str, options: tuple[str, ...]
) -> None:
    data = _converted(run, tmp_path, *options)
    found = _shown(browser, run / f"delegate{delegate}.tosa", data)
    assert found == _expected(run, delegate, source)


def test_figures_by_other_names_are_at_no_node(run: Path, browser: Browser, tmp_path: Path) -> None:
    data = _converted(run, tmp_path)
    content = read(data)
    results = content["main"]["results"]
    content["main"]["results"] = {name.replace("main/op", "tosa_"): value for name, value in results.items()}
    data.write_text(json.dumps(content), encoding="utf-8")
    assert not _shown(browser, run / "delegate0.tosa", data)


def test_what_the_profile_has_not_is_refused(run: Path, tmp_path: Path) -> None:
    asked = (run, "--to", "model-explorer")
    assert "choose with --delegate: 0, 1" in refused(tmp_path, *asked, "--delegate", "2")
    assert "has no cycles, measured" in refused(tmp_path, *asked, "--figure", "measured")
    for options, words in (
        (("--to", "model-explorer", "--figure", "modeled"), "modelled"),
        (("--to", "sarif", "--figure", "macs"), "--to model-explorer"),
    ):
        assert_clear(sdk("convert", run, *options, "-o", "x", cwd=tmp_path), 2, words)
