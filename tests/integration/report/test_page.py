"""The page in a browser: it shows what the records say, works without a network, and lets nothing break out."""

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from ethosu_sdk.files import hashing, json_text
from ethosu_sdk.npu import timing
from tests.integration.browsing import BREAKING, HOSTILE, WINDOWS, Scheme, opened
from tests.integration.cli import sdk
from tests.integration.report.pages import read

pytestmark = [pytest.mark.torch, pytest.mark.toolchain, pytest.mark.qemu]


@pytest.mark.parametrize(("width", "scheme"), WINDOWS)
def test_the_page_opens_without_a_network(browser: Browser, report: Path, width: int, scheme: Scheme) -> None:
    with opened(browser, report, width=width, scheme=scheme) as shown:
        shown.assert_fits(report, width, scheme)
        page = shown.page
        for plot in page.query_selector_all(".plot"):
            box = plot.query_selector("svg").bounding_box()
            assert box is not None
            assert box["width"] > width * 0.6, plot.get_attribute("id")
            assert box["x"] + box["width"] <= width, plot.get_attribute("id")
        assert len(page.query_selector_all(".plot")) == 5


def test_figures_are_those_of_the_records(browser: Browser, report: Path, run_folder: Path) -> None:
    profile, run = read(run_folder / "profile.json"), read(run_folder / "run.json")
    with opened(browser, report) as shown:
        operations = profile["operations"]
        assert [int(text) for text in shown.cells("#")] == [row["index"] for row in operations]
        assert shown.cells("operation") == [row["name"] for row in operations]
        sums, npu = shown.sums(), profile["totals"]["npu"]
        cycles = {row["source"]: row["value"] for row in npu["cycles"]}
        assert sums["cycles modelled"] == f"{cycles['modelled']:,}" == f"{run['npu']['cycles']['value']:,}"
        assert sums["cycles estimated by Vela"] == f"{cycles['estimated']:,}"
        assert sums["MACs"] == f"{npu['macs']:,}"
        assert sums["CPU instructions"] == f"{profile['totals']['cpu']['instructions']['value']:,}"
        text = shown.page.inner_text("body")
        for region in run["memory"]["regions"]:
            assert f"{region['used_bytes']:,} of {region['size_bytes']:,} bytes" in text
        assert re.search(rf"CPU cycles\s+{run['cpu']['cycles']['value']:,} \(modelled\)", text)
        assert timing.band(run["target"]["npu"], run["target"]["macs"]) in text


def test_the_arena_peaks_where_vela_says(browser: Browser, report: Path, run_folder: Path) -> None:
    """What the command stream writes and reads, beside what Vela's allocator states of its own plan."""
    profile = read(run_folder / "profile.json")
    stated = max(row["scratch_bytes"] for row in profile["operations"] if "scratch_bytes" in row)
    with opened(browser, report) as shown:
        caption = shown.page.locator("figure", has_text="Use of the arena").locator("figcaption").inner_text()
        assert f"at most {stated:,} of them are needed at once" in caption
        assert f"Vela states up to {stated:,} bytes" in caption


def test_sorting_and_searching(browser: Browser, report: Path, run_folder: Path) -> None:
    operations = read(run_folder / "profile.json")["operations"]
    with opened(browser, report) as shown:
        page = shown.page
        button = page.get_by_role("button", name="cycles modelled")
        heading = page.locator("th", has=button)
        for direction in ("ascending", "descending"):
            button.focus()
            page.keyboard.press("Enter")
            assert heading.get_attribute("aria-sort") == direction
            assert page.locator('.sortable th[aria-sort]:not([aria-sort="none"])').count() == 1
            texts = shown.cells("cycles modelled")
            known = [int(text.replace(",", "")) for text in texts if text]
            assert known == sorted(known, reverse=direction == "descending")
            assert len(set(known)) > 2
            assert all(text == "" for text in texts[len(known) :])
        wanted = [row for row in operations if row["runs_on"] == "CPU"]
        assert 0 < len(wanted) < len(operations)
        page.get_by_label("Search").fill("cpu QUANT")
        assert sorted(map(int, shown.cells("#"))) == [row["index"] for row in wanted]
        assert page.locator("output").inner_text() == f"{len(wanted)} of {len(operations)} rows"
        page.get_by_label("Search").fill("there is nothing like this")
        assert shown.cells("#") == []


def test_tooltips_say_what_is_under_the_pointer(browser: Browser, report: Path, run_folder: Path) -> None:
    operations = [row for row in read(run_folder / "profile.json")["operations"] if row["runs_on"] == "NPU"]
    with opened(browser, report) as shown:
        bars = shown.page.locator("#run1-plot-timeline .mark-rect path")
        longest = max(
            range(bars.count()), key=lambda at: (bars.nth(at).bounding_box() or {"width": 0})["width"]
        )
        bars.nth(longest).hover()
        tooltip = shown.page.locator("#vg-tooltip-element.visible")
        tooltip.wait_for()
        cycles = {row["source"]: row["value"] for entry in operations for row in entry["cycles"]}
        most = max(
            row["value"] for entry in operations for row in entry["cycles"] if row["source"] == "modelled"
        )
        assert "modelled" in cycles
        assert f"{most:,}" in tooltip.inner_text()


def _hostile(source: Path, folder: Path) -> Path:
    """The run with names that are meant to leave their places, in the profile and the run's checks."""
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("manifest.json", "*.elf", "firmware"))
    run, profile = read(folder / "run.json"), read(folder / "profile.json")
    run["verdict"]["checks"][0]["detail"] = "".join(HOSTILE)
    run["board_reason"] = HOSTILE[0]
    run["memory"]["pools"][0]["name"] = HOSTILE[1]
    json_text.write_json(folder / "run.json", run)
    for row, name in zip(profile["operations"], HOSTILE * len(profile["operations"]), strict=False):
        row["name"] = name
        if "tosa" in row:
            row["tosa"]["operator"] = name
    for row in profile["memories"]:
        row["memory"] = HOSTILE[0]
    for row in profile["operations"]:
        for part in row.get("traffic", ()):
            part["memory"] = HOSTILE[0]
    entry = next(row for row in profile["provenance"]["inputs"] if row["role"] == "run")
    entry["sha256"] = hashing.sha256_file(folder / "run.json")
    json_text.write_json(folder / "profile.json", profile)
    return folder


def test_hostile_names_stay_texts(browser: Browser, run_folder: Path, tmp_path: Path) -> None:
    folder = _hostile(run_folder, tmp_path / "a <b>&'\" {{ 1 }}")
    done = sdk("report", folder, "-o", "page.html", cwd=tmp_path)
    assert done.code == 0, done.err
    with opened(browser, tmp_path / "page.html", width=400) as shown:
        assert shown.said == []
        assert shown.page.evaluate("window.broken") is None
        assert shown.page.locator("img").count() == 0
        names = shown.cells("operation")
        for name in (*HOSTILE[:4], HOSTILE[5]):
            assert name in names
        assert "\\u202egnp.exe\\u2028\\x00\\x1b[2J" in names
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= 400
        shown.page.locator("#run1-plot-cycles .mark-rect path").first.hover()
        shown.page.locator("#vg-tooltip-element.visible").wait_for()
        assert shown.page.locator("#vg-tooltip-element img, #vg-tooltip-element svg").count() == 0
        assert shown.page.evaluate("window.broken") is None


def test_the_policy_stops_scripts_and_connections(browser: Browser, report: Path, tmp_path: Path) -> None:
    """A script that did get into the page would not run; without the policy it does."""
    text = report.read_text(encoding="utf-8")
    start = text.index('<meta http-equiv="Content-Security-Policy"')
    policy = text[start : text.index(">", start) + 1]
    planted = text.replace("<footer>", f"<script>{BREAKING}</script><footer>")
    for name, content, ran in (("with", planted, False), ("without", planted.replace(policy, ""), True)):
        path = tmp_path / f"{name}.html"
        path.write_text(content, encoding="utf-8")
        with opened(browser, path) as shown:
            assert bool(shown.page.evaluate("window.broken")) is ran
            assert any("Content Security Policy" in line for line in shown.said) is not ran
            if not ran:
                refused = shown.page.evaluate(
                    """() => new Promise(done => {
                      document.addEventListener("securitypolicyviolation", event => done(event.effectiveDirective));
                      fetch("http://127.0.0.1:9/").catch(() => {});
                    })"""
                )
                assert refused == "connect-src"
