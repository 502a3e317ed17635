"""The page in a browser: it shows what the records say, works without a network, and lets nothing break out."""

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from ethosu_sdk.base import filesystem, json_text
from ethosu_sdk.npu import timing
from tests.integration.browsing import BREAKING, HOSTILE, WINDOWS, Scheme, opened
from tests.integration.cli import sdk_ok
from tests.records import read

pytestmark = [pytest.mark.torch, pytest.mark.toolchain, pytest.mark.qemu]


@pytest.mark.parametrize(("width", "scheme"), WINDOWS)
def test_the_page_opens_without_a_network(browser: Browser, report: Path, width: int, scheme: Scheme) -> None:
    with opened(browser, report, width=width, scheme=scheme) as shown:
        shown.assert_fits(report, width, scheme)
        page = shown.page
        for plot in page.query_selector_all(".plot"):
            box = plot.query_selector("svg").bounding_box()
            assert box is not None
            share = 0.4 if width > 1000 and plot.evaluate("plot => !!plot.closest('.answer')") else 0.6
            assert box["width"] > width * share, plot.get_attribute("id")
            assert box["x"] + box["width"] <= width, plot.get_attribute("id")
        assert len(page.query_selector_all(".plot")) == 5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_table_fits_its_place(browser: Browser, report: Path, scheme: Scheme) -> None:
    with opened(browser, report, width=1280, scheme=scheme) as shown:
        shown.assert_fits(report, 1280, scheme)
        shown.page.get_by_role("button", name="Open all").click()
        sizes = shown.page.locator("[aria-label=Profile]").evaluate(
            "part => [part.scrollWidth, part.clientWidth]"
        )
        assert sizes[0] <= sizes[1]


def test_figures_are_those_of_the_records(browser: Browser, report: Path, run_folder: Path) -> None:
    profile, run = read(run_folder / "profile.json"), read(run_folder / "run.json")
    with opened(browser, report) as shown:
        operations = profile["operations"]
        shown.page.get_by_role("button", name="Open all").click()
        assert sorted(int(text) for text in shown.cells("#") if text) == [row["index"] for row in operations]
        cycles_of_roots = shown.page.eval_on_selector_all(
            "table.tree tr[data-parent='']",
            """rows => rows.map(row => row.cells[document.querySelector("th[data-key=modelled]").cellIndex])
                .map(cell => Number(cell.dataset.sort))""",
        )
        assert cycles_of_roots == sorted(cycles_of_roots, reverse=True)
        shown.page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
        sums, npu = shown.sums(), profile["totals"]["npu"]
        cycles = {row["source"]: row["value"] for row in npu["cycles"]}
        assert sums["NPU cycles"] == f"{cycles['modelled']:,}" == f"{run['npu']['cycles']['value']:,}"
        assert sums["by Vela"] == f"{cycles['estimated']:,}"
        assert sums["CPU cycles"] == f"{profile['totals']['cpu']['cycles']['value']:,}"
        assert sums["MACs"] == f"{npu['macs']:,}"
        assert sums["CPU instr."] == f"{profile['totals']['cpu']['instructions']['value']:,}"
        text = shown.page.inner_text("body")
        for region in run["memory"]["regions"]:
            used, size = (f"{region[name]:,}" for name in ("used_bytes", "size_bytes"))
            assert re.search(rf"{region['name']}\s+region\s+{used}\s+{size}\s", text)
        for pool in read(run_folder / "build.json")["memory"]["pools"]:
            assert re.search(
                rf"{pool['name']}\s+pool in {pool['region']}\s+[\d,]+\s+{pool['size_bytes']:,}\s", text
            )
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


def _whole(texts: list[str]) -> list[int]:
    return [int(text.replace(",", "")) for text in texts if text]


def test_subtotals_add_up(browser: Browser, report: Path, run_folder: Path) -> None:
    """Every group is the sum of its leaves, and the last row that of all leaves: of the whole inference, with what a
    delegate's start takes, or of those that fit the search."""
    profile = read(run_folder / "profile.json")
    modelled = {
        row["index"]: part["value"]
        for row in profile["operations"]
        for part in row.get("cycles", ())
        if part["source"] == "modelled"
    }
    started = profile["delegates"][0]["start_cycles"]
    transposed = [
        row["index"] for row in profile["operations"] if row.get("tosa", {}).get("operator") == "TRANSPOSE"
    ]
    assert len(transposed) > 1
    with opened(browser, report) as shown:
        assert started > 0
        assert shown.sums()["NPU cycles"] == f"{sum(modelled.values()) + started:,}"
        for words, expected in (("", None), ("transpose", sum(modelled[index] for index in transposed))):
            shown.page.get_by_label("Search").fill(words)
            shown.page.get_by_role("button", name="Open all").click()
            assert sum(_whole(shown.cells("NPU cycles"))) == _whole([shown.sums()["NPU cycles"]])[0]
            assert expected in (None, _whole([shown.sums()["NPU cycles"]])[0])
            groups = shown.page.evaluate(
                """() => {
                  const rows = [...document.querySelectorAll("table.tree tbody tr")].filter(row => !row.hidden);
                  const at = document.querySelector("th[data-key=modelled]").cellIndex;
                  const value = row => Number(row.cells[at].textContent.replaceAll(",", ""));
                  return rows.filter(row => !("leaf" in row.dataset)).map(row => [value(row), rows
                    .filter(leaf => "leaf" in leaf.dataset && leaf.dataset.id.startsWith(row.dataset.id + "."))
                    .reduce((sum, leaf) => sum + value(leaf), 0)]);
                }"""
            )
            assert groups
            assert all(group == leaves > 0 for group, leaves in groups)


def test_sorting_and_searching(browser: Browser, report: Path, run_folder: Path) -> None:
    operations = read(run_folder / "profile.json")["operations"]
    with opened(browser, report) as shown:
        page = shown.page
        heading = page.locator('th[data-key="modelled"]')
        button = heading.get_by_role("button")
        for direction in ("ascending", "descending"):
            button.focus()
            page.keyboard.press("Enter")
            assert heading.get_attribute("aria-sort") == direction
            assert page.locator('.sortable th[aria-sort]:not([aria-sort="none"])').count() == 1
            texts = page.eval_on_selector_all(
                'table.tree tr[data-parent=""]',
                "(rows, at) => rows.map(row => row.cells[at].textContent)",
                heading.evaluate("cell => cell.cellIndex"),
            )
            known = _whole(texts)
            assert known == sorted(known, reverse=direction == "descending")
            assert len(set(known)) > 2
            assert all(text == "" for text in texts[len(known) :])
        wanted = [row for row in operations if row["runs_on"] == "CPU"]
        assert 0 < len(wanted) < len(operations)
        page.get_by_label("Search").fill("cpu QUANT")
        assert sorted(map(int, shown.cells("#"))) == [row["index"] for row in wanted]
        assert page.locator(".search output").inner_text().startswith(f"{len(wanted)} of ")
        page.get_by_label("Search").fill("there is nothing like this")
        assert shown.cells("#") == []


def test_slices_and_transfers_are_folded(browser: Browser, report: Path, run_folder: Path) -> None:
    operations = read(run_folder / "profile.json")["operations"]
    operators = {row.get("tosa", {}).get("index", row["name"]) for row in operations}
    with opened(browser, report) as shown:
        page = shown.page
        toggle = page.locator("tr.operator .toggle", has_text="TRANSPOSE")
        hidden = "tr.operator + tr.operation"
        assert not page.locator(hidden).is_visible()
        toggle.focus()
        page.keyboard.press("Enter")
        assert toggle.get_attribute("aria-expanded") == "true"
        assert page.locator(hidden).is_visible()
        assert page.locator("#run1-graph .node").count() == len(operators)


def test_the_keyboard_finds_names(browser: Browser, report: Path) -> None:
    with opened(browser, report) as shown:
        page = shown.page
        for plot in ("slowest", "roofline", "timeline", "arena1"):
            marks = page.locator(f"#run1-plot-{plot} path[tabindex]")
            first = page.locator(f'#run1-plot-{plot} path[tabindex="0"]')
            assert first.count() == 1, plot
            first.focus()
            said = [page.locator("#tip").inner_text()]
            page.keyboard.press("ArrowRight")
            said.append(page.locator("#tip").inner_text())
            assert marks.count() > 2
            assert len(set(said)) == 2, plot
        page.locator("#run1-graph .node", has_text="MAX_POOL2D").first.focus()
        assert "MAX_POOL2D" in page.locator("#tip").inner_text()
        page.keyboard.press("Enter")
        target = page.locator("table.tree tr:target")
        assert "MAX_POOL2D" in target.inner_text()


def test_the_graph_is_the_models(browser: Browser, report: Path) -> None:
    """The model is a chain, whose layers the zoo's source names."""
    with opened(browser, report) as shown:
        names = shown.page.locator("#run1-graph .node .name").all_text_contents()
        edges = shown.page.eval_on_selector_all(
            "#run1-graph .edge", "lines => lines.map(line => line.dataset.ends.split(' ').map(Number))"
        )
        following = dict(edges)
        assert len(following) == len(edges) == len(names) - 1
        at, chain = (set(following) - set(following.values())).pop(), []
        while at is not None:
            chain.append(names[at])
            at = following.get(at)
    numbers, operators = zip(*(name.split(" ", 1) for name in chain), strict=True)
    assert list(map(int, numbers)) == sorted(map(int, numbers))  # as the table of operations has them
    assert [name for name in operators if "quantize" not in name and name != "TRANSPOSE"] == [
        "DEPTHWISE_CONV2D", "MAX_POOL2D", "CONV2D", "MAX_POOL2D", "Linear: CONV2D"
    ]  # fmt: skip
    assert (operators[0], operators[-1]) == ("quantize_per_tensor", "dequantize_per_tensor")


def test_the_title_and_the_lead_say_what_limits(browser: Browser, report: Path, run_folder: Path) -> None:
    run = read(run_folder / "run.json")
    with opened(browser, report) as shown:
        page, target = shown.page, run["target"]
        assert page.inner_text("h1") == f"digits_cnn on {target['npu']}-{target['macs']}"
        text = page.inner_text(".lead") + page.inner_text(".cards")
        assert "time" not in run  # it was compiled for no board with clocks
        assert (
            f"The NPU takes {run['npu']['cycles']['value']:,} cycles; the time of an inference with the CPU"
            in text
        )
        assert re.search(r"used\s+(< )?[\d.]+ %", text)
        assert "inferences/s" not in page.inner_text("body")


def test_the_first_screen_answers(browser: Browser, report: Path, run_folder: Path) -> None:
    """Tiles, operators, what to change and the next commands, which a button copies; what ran is folded."""
    with opened(browser, report) as shown:
        page = shown.page
        ends = [
            box["y"] + box["height"]
            for part in (".cards", ".lead", ".answer figure svg", ".answer .command")
            if (box := page.locator(part).first.bounding_box()) is not None
        ]
        assert len(ends) == 4
        assert max(ends) < 900
        assert not page.locator("#run1-summary table").first.is_visible()
        page.evaluate("location.hash = '#run1-summary'")
        assert page.locator("#run1-summary table").first.is_visible()
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        command = page.locator(".command", has_text=f"verify {run_folder}")
        command.get_by_role("button", name="Copy").click()
        assert command.get_by_role("button", name="Copied").is_visible()
        assert page.evaluate("navigator.clipboard.readText()") == f"ethosu-sdk verify {run_folder}"
        box, frame = (
            page.locator(place).bounding_box()
            for place in ("#run1-graph .largest .back", "#run1-graph .graph")
        )
        assert box is not None
        assert frame is not None
        assert frame["y"] <= box["y"] < frame["y"] + frame["height"]


def test_a_reader_zooms_into_the_units(browser: Browser, report: Path) -> None:
    """Operations have their names or numbers where bars are wide enough, and so do the dearest points of the
    roofline."""

    def texts(page: Page, plot: str, role: str) -> list[str]:
        found = page.locator(f"#run1-plot-{plot} .mark-text.role-{role} text").all_text_contents()
        return [text for text in found if text]

    with opened(browser, report) as shown:
        page, plot = shown.page, shown.page.locator("figure", has_text="Timeline of units")
        before, ticks = (texts(page, "timeline", role) for role in ("mark", "axis-label"))
        assert before
        plot.get_by_role("button", name="zoom in").click()
        page.wait_for_timeout(200)
        assert texts(page, "timeline", "axis-label") != ticks
        plot.get_by_role("button", name="show all").click()
        page.wait_for_timeout(200)
        assert texts(page, "timeline", "mark") == before
        assert sorted(texts(page, "timeline", "axis-label")) == sorted(ticks)
        assert any("CONV2D" in text for text in texts(page, "roofline", "mark"))


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
    entry["sha256"] = filesystem.sha256_file(folder / "run.json")
    json_text.write_json(folder / "profile.json", profile)
    return folder


def test_hostile_names_stay_texts(browser: Browser, run_folder: Path, tmp_path: Path) -> None:
    folder = _hostile(run_folder, tmp_path / "a <b>&'\" {{ 1 }}")
    sdk_ok("report", folder, "-o", "page.html", cwd=tmp_path)
    with opened(browser, tmp_path / "page.html", width=400) as shown:
        assert shown.said == []
        assert shown.page.evaluate("window.broken") is None
        assert shown.page.locator("img").count() == 0
        shown.page.get_by_role("button", name="Open all").click()
        names = shown.cells("operation")
        for name in (*HOSTILE[:4], HOSTILE[5]):
            assert name in names
        assert "\\u202egnp.exe\\u2028\\x00\\x1b[2J" in names
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= 400
        shown.page.locator("#run1-plot-slowest .mark-rect path").first.hover()
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


def test_lines_and_sums_say_what_they_are(browser: Browser, report: Path, run_folder: Path) -> None:
    """Dashed lines and the flat part of the roof have names; nothing of the table shows below its sum."""
    ideal = read(run_folder / "profile.json")["totals"]["npu"]["macs_per_cycle"]["ideal"]
    with opened(browser, report) as shown:
        for plot, words in (
            ("arena1", "peak: "),
            ("arena-use", "size of the arena: "),
            ("roofline", f"{ideal} MACs per cycle"),
        ):
            texts = shown.page.locator(f"#run1-plot-{plot} .mark-text text").all_text_contents()
            assert any(text.startswith(words) for text in texts), plot
        below = shown.page.locator("table.tree tfoot th").evaluate(
            "cell => [getComputedStyle(cell).boxShadow, getComputedStyle(cell).backgroundColor]"
        )
        assert below[0].startswith(f"{below[1]} 0px 12px")


def test_captions_fit_a_narrow_window(browser: Browser, report: Path) -> None:
    with opened(browser, report, width=400) as shown:
        shown.page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
        parts = shown.page.locator(".scroll:has(caption:not(.hidden))").evaluate_all(
            """parts => parts.map(part => [part.querySelector("caption").getBoundingClientRect().right,
              part.getBoundingClientRect().right, part.scrollWidth > part.clientWidth])"""
        )
        assert any(is_wider for _, _, is_wider in parts)  # there are tables that scroll
        assert all(caption <= frame for caption, frame, _ in parts)
