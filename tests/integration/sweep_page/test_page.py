"""The page of a sweep in a browser: it shows what the rows and the verdict say, whatever the reader does to it."""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.integration.browsing import HOSTILE, WINDOWS, Scheme, Shown, opened
from tests.integration.sweep_page import sweeps
from tests.integration.sweep_page.sweeps import Sweep
from tests.unit.sweep.rows import Row, row, without_result

PAGE_ROWS = 200  # of the list that are shown at once
MOST_BYTES = 5_000_000
MOST_SECONDS = 20.0  # for a filter over 5,000 cells, on a busy machine


def listed(shown: Shown) -> list[str]:
    """The cells of the list, all of them, as the reader gets them with "Show more"."""
    more = shown.page.locator("#more")
    while more.is_visible():
        more.click()
    return shown.cells("cell")


def fields(page: Page) -> list[str]:
    """The cells that have a field in the matrix."""
    found = page.evaluate("[...document.querySelectorAll('#grid button')].map(field => field.dataset.cell)")
    assert isinstance(found, list)
    return found


def choose(page: Page, label: str, value: str) -> None:
    """Set a filter, and wait until the page has followed it."""
    page.locator("#selects").get_by_label(label, exact=True).select_option(value)
    page.wait_for_timeout(50)


def search(page: Page, words: str) -> None:
    page.locator("#search").fill(words)
    page.wait_for_timeout(400)  # what is typed is searched when the typing pauses


@pytest.mark.parametrize(("width", "scheme"), WINDOWS)
def test_the_page_opens_without_a_network(browser: Browser, sweep: Sweep, width: int, scheme: Scheme) -> None:
    with opened(browser, sweep.path, width=width, scheme=scheme) as shown:
        back = shown.assert_fits(sweep.path, width, scheme)
        page = shown.page
        box = page.locator("#pareto svg").first.bounding_box()
        assert box is not None
        assert box["width"] > width * 0.6
        assert box["x"] + box["width"] <= width
        marks = page.locator("#pareto .role-legend-symbol path").evaluate_all(
            "all => all.map(mark => getComputedStyle(mark).fill)"
        )
        assert back not in marks
        assert scheme == "light" or "rgb(0, 0, 0)" not in marks
        assert len(marks) > 10


def test_every_row_is_a_field_and_a_line(browser: Browser, sweep: Sweep) -> None:
    wanted = sorted(row["cell"] for row in sweep.rows)
    assert len(wanted) > PAGE_ROWS
    with opened(browser, sweep.path) as shown:
        assert len(shown.cells("cell")) == PAGE_ROWS
        assert sorted(listed(shown)) == wanted
        assert sorted(fields(shown.page)) == wanted
        assert shown.page.locator("#count").inner_text() == f"{len(wanted)} of {len(wanted)} cells"
        standings = dict(zip(shown.cells("cell"), shown.cells("standing"), strict=True))
        assert standings == sweep.standings
        assert len(set(standings.values())) > 4
        statuses = dict(zip(shown.cells("cell"), shown.cells("status"), strict=True))
        assert statuses == {row["cell"]: row["status"] for row in sweep.rows}
        sram = dict(zip(shown.cells("cell"), shown.cells("SRAM, bytes"), strict=True))
        for entry in sweep.rows:
            known = entry["sram_bytes"]
            assert sram[entry["cell"]] == ("" if known is None else f"{known:,}")


def test_the_verdict_comes_first(browser: Browser, sweep: Sweep) -> None:
    models, counts = sweep.verdict.models, sweep.verdict.counts
    passed = Counter(row["status"] for row in sweep.rows)["pass"]
    kept = sum(model.counts.kept > 0 for model in models)
    with opened(browser, sweep.path) as shown:
        page = shown.page
        cards = page.locator(".card .text").all_inner_texts()
        assert kept == len(models) - 1  # one is too slow everywhere
        assert cards[0] == f"{kept} of {len(models)}"
        assert cards[2:] == [f"{counts.kept} of {len(sweep.rows)}", f"{passed}"]
        first = page.locator("main h3").first.bounding_box()
        grid = page.locator("#grid").bounding_box()
        assert first is not None
        assert grid is not None
        assert first["y"] < grid["y"]
        lines = page.locator("table.models tbody tr")
        assert lines.count() == len(models)
        for index, model in enumerate(models):
            line = lines.nth(index)
            assert line.locator("th").inner_text() == model.model
            opens = line.locator("button").evaluate_all("all => all.map(button => button.dataset.cell)")
            nearest = model.no_winner.nearest if model.no_winner is not None else None
            cells = model.winners[:3] or (nearest.cell if nearest is not None else None,)
            assert opens == list(cells)
            has_star = [sweep.standings[cell] == "winner" for cell in model.winners[:1]]
            assert line.locator(".stand").all_inner_texts()[:1] == ["★" if star else "☆" for star in has_star]
        every = [row.target for row in sweep.verdict.targets if row.every_model]
        marked = page.locator("table.targets tr", has_text="✓ every model").locator("th").all_inner_texts()
        assert marked == every


def _wanted(rows: list[Row], keep: Callable[[Row], bool]) -> list[str]:
    found = sorted(row["cell"] for row in rows if keep(row))
    assert 0 < len(found) < len(rows)
    return found


def test_filters_and_search(browser: Browser, sweep: Sweep) -> None:
    with opened(browser, sweep.path) as shown:
        page = shown.page
        choose(page, "target", "ethos-u55-256")
        wanted = _wanted(sweep.rows, lambda row: row["target"] == "ethos-u55-256")
        assert sorted(listed(shown)) == sorted(fields(page)) == wanted
        choose(page, "quantised", "int16")
        both = _wanted(sweep.rows, lambda row: row["cell"] in wanted and row["quantize"] == "int16")
        assert sorted(listed(shown)) == sorted(fields(page)) == both
        assert page.locator("#count").inner_text() == f"{len(both)} of {len(sweep.rows)} cells"
        page.get_by_role("button", name="Clear").click()
        page.wait_for_timeout(100)
        assert len(listed(shown)) == len(sweep.rows)
        choose(page, "standing", "winner")
        assert sorted(listed(shown)) == sorted(
            cell for cell, standing in sweep.standings.items() if standing == "winner"
        )
        choose(page, "standing", "")
        search(page, "2,412,544 U85-1024")
        refused = _wanted(
            sweep.rows, lambda row: row["message"] == sweeps.REFUSED and row["target"] == "ethos-u85-1024"
        )
        assert sorted(listed(shown)) == refused
        search(page, "there is nothing like this")
        assert listed(shown) == fields(page) == []
        assert page.locator("#list-note").inner_text() == "No cell is left by the filters."


def test_sorting(browser: Browser, sweep: Sweep) -> None:
    known = sorted((row["time_ms"] for row in sweep.rows if row["time_ms"] is not None), reverse=True)
    cell_of = {row["cell"]: row for row in sweep.rows}
    with opened(browser, sweep.path) as shown:
        page = shown.page
        button = page.locator("#list").get_by_role("button", name="NPU time, ms")
        heading = page.locator("#list th", has=page.get_by_role("button", name="NPU time, ms"))
        for direction in ("ascending", "descending"):
            button.focus()
            page.keyboard.press("Enter")
            assert heading.get_attribute("aria-sort") == direction
            assert page.locator('#list th[aria-sort]:not([aria-sort="none"])').count() == 1
            times = [cell_of[cell]["time_ms"] for cell in listed(shown)]
            assert times[: len(known)] == (known if direction == "descending" else known[::-1])
            assert all(number is None for number in times[len(known) :])
            assert len(times) > len(known)
        page.locator("#list").get_by_role("button", name="target").click()
        first = shown.cells("target")[0]
        assert first == "ethos-u55-32"  # before 128: by the number


def test_the_reader_chooses_what_stands_in_the_fields(browser: Browser, sweep: Sweep) -> None:
    entry = next(row for row in sweep.rows if sweep.standings[row["cell"]] == "winner" and row["sqnr_db"])
    with opened(browser, sweep.path) as shown:
        page = shown.page
        select = page.get_by_label("In each field")
        field = page.locator(f'#grid button[data-cell="{entry["cell"]}"]')
        assert field.inner_text().startswith("★ ")
        assert field.inner_text().endswith((" B", "kB", "MB"))  # of the first goal
        select.select_option("SQNR")
        assert field.inner_text() == f"★ {entry['sqnr_db']:.1f} dB"
        select.select_option("standing alone")
        assert field.inner_text() == "★ winner"
        refused = next(row["cell"] for row in sweep.rows if row["status"] == "refused")
        assert page.locator(f'#grid button[data-cell="{refused}"]').inner_text() == "! refused"


def test_times_have_their_clock(browser: Browser, sweep: Sweep) -> None:
    """The constraint is at 500 MHz, and so is all that is judged; the time at a cell's own clock has it beside it."""
    entry = next(
        row for row in sweep.rows if row["clock_mhz"] == 1000.0 and sweep.standings[row["cell"]] == "winner"
    )
    with opened(browser, sweep.path) as shown:
        page = shown.page
        assert "least NPU time at 500 MHz" in page.locator(".asked").inner_text()
        assert "NPU time at 500 MHz" in page.locator("table.models thead").inner_text()
        headings = page.locator("#list thead th").all_inner_texts()
        at = next(number for number, text in enumerate(headings) if text.startswith("NPU time"))
        assert headings[at + 1].startswith("clock, MHz")
        times = dict(zip(listed(shown), shown.cells("at 500 MHz, ms"), strict=True))
        assert float(times[entry["cell"]]) == pytest.approx(entry["npu_cycles"] / 500e3, abs=0.001)
        page.get_by_label("In each field").select_option("NPU time")
        assert (
            page.locator(f'#grid button[data-cell="{entry["cell"]}"]').inner_text().endswith("at 1,000 MHz")
        )
        shapes = (
            page.locator("#pareto .role-legend")
            .last.locator("path")
            .evaluate_all("all => all.map(mark => mark.getAttribute('d')).filter(Boolean)")
        )
        assert len(shapes) == len(set(shapes)) > 2


def test_a_cell_opens_by_keyboard_and_links_to_its_report(browser: Browser, sweep: Sweep) -> None:
    places = {path.parent.name: path for path in (sweep.path.parent / "cells").glob("*/report.html")}
    entry = next(row for row in sweep.rows if row["cell"] in places and row["status"] == "refused")
    with opened(browser, sweep.path) as shown:
        page = shown.page
        page.locator(f'#grid button[data-cell="{entry["cell"]}"]').focus()
        page.keyboard.press("Enter")
        dialog = page.locator("dialog[open]")
        text = dialog.inner_text()
        for words in (
            f"Cell {entry['cell']}",
            sweeps.REFUSED,
            "--memory-mode Shared_Sram",
            entry["model_sha256"],
        ):
            assert words in text
        href = dialog.locator("a").evaluate("link => link.href")
        assert href == places[entry["cell"]].as_uri()
        page.keyboard.press("Escape")
        has_run = next(path for path in (sweep.path.parent / "cells").glob("*/run.json")).parent
        page.locator(f'#grid button[data-cell="{has_run.name}"]').click()
        commands = dialog.locator(".command code").all_inner_texts()
        assert commands[-1] == f"ethosu-sdk report {has_run}"
        page.keyboard.press("Escape")
        page.locator(f'#grid button[data-cell="{entry["cell"]}"]').focus()
        assert page.locator("dialog[open]").count() == 0
        assert page.evaluate("document.activeElement.dataset.cell") == entry["cell"]


def test_the_plot_has_the_cells_of_a_model(browser: Browser, sweep: Sweep) -> None:
    with opened(browser, sweep.path) as shown:
        page = shown.page
        for model in ("ds_cnn.pte", "models/net_3.py:Net"):
            page.get_by_label("Model", exact=True).select_option(model)
            page.wait_for_selector(f'#pareto[data-model="{model}"]')
            drawn = [row for row in sweep.rows if row["model"] == model and row["status"] == "pass"]
            assert page.locator(
                "#pareto .mark-symbol.layer_0_marks, #pareto .mark-symbol path"
            ).count() >= len(drawn)
            points = page.locator("#pareto g.mark-symbol[aria-roledescription='symbol mark container'] path")
            assert points.count() == len(drawn)
            page.locator("#pareto path[tabindex='0']").focus()
            page.keyboard.press("End")
            assert any(row["cell"] in page.locator("#tip").inner_text() for row in drawn)
        points.first.hover(force=True)
        page.locator("#vg-tooltip-element.visible").wait_for()


def test_the_plot_is_fitted_to_the_model(browser: Browser, sweep: Sweep) -> None:
    """A limit that is far away leaves the points their place; axes have titles, memory modes have marks."""
    name = "models/net_2.py:Net"  # a hundred times slower than the limit of the time
    modes = {row["memory_mode"] for row in sweep.rows if row["model"] == name and row["status"] == "pass"}
    with opened(browser, sweep.path) as shown:
        page = shown.page
        page.get_by_label("Model", exact=True).select_option(name)
        page.wait_for_selector(f'#pareto[data-model="{name}"]')
        titles = page.locator("#pareto .role-axis-title text").all_text_contents()
        assert titles == ["SRAM, bytes", "NPU time at 500 MHz, ms"]
        frame = page.locator("#pareto .root .background").first.bounding_box()
        marks = page.locator("#pareto g.mark-symbol[aria-roledescription='symbol mark container'] path")
        boxes = marks.evaluate_all(
            """all => all.map(mark => mark.getBoundingClientRect())
              .map(({ x, y, width, height }) => [x + width / 2, y + height / 2, width])"""
        )
        assert frame is not None
        for axis, size in ((0, frame["width"]), (1, frame["height"])):
            places = [box[axis] for box in boxes]
            assert max(places) - min(places) > 0.75 * size
        assert min(box[2] for box in boxes) >= 8
        fills = marks.evaluate_all("all => all.map(mark => getComputedStyle(mark).fillOpacity)")
        assert len(set(fills)) == len(modes) > 1
        caption = page.locator("figcaption").inner_text()
        assert all(f"marks are {mode}" in caption for mode in modes)


def test_a_narrow_window_shows_winners_and_whole_rows(browser: Browser, sweep: Sweep) -> None:
    with opened(browser, sweep.path, width=400) as shown:
        page = shown.page
        frame = page.locator("[aria-label=Matrix]").bounding_box()
        winner = page.locator("#grid .is-winner").first.bounding_box()
        assert frame is not None
        assert winner is not None
        assert frame["x"] <= winner["x"] < winner["x"] + winner["width"] <= frame["x"] + frame["width"]
        cells = page.locator("[aria-label=Cells]")
        cells.evaluate("part => { part.scrollLeft = 300; }")
        place, cell = cells.bounding_box(), page.locator("#list td").first.bounding_box()
        assert place is not None
        assert cell is not None
        assert cell["x"] - place["x"] < 2  # the number of the cell stays


def test_sources_are_apart(browser: Browser, tmp_path: Path) -> None:
    found = [
        row(target=target, npu_cycles=cycles, npu_cycles_source=source, simulator=source)
        for source, cycles in (("modelled", 500_000), ("estimated", 400_000))
        for target in ("ethos-u55-128", "ethos-u55-256")
    ]
    made = sweeps.made(found, tmp_path, goals="")
    with opened(browser, made.path) as shown:
        line = shown.page.locator("table.models").inner_text()
        assert "No winner: figures of different sources, estimated and modelled, are not ranked" in line
        assert "best of its source (estimated)" in line
        assert shown.page.locator("#plot-model option").all_inner_texts() == [
            "zoo:ds_cnn (modelled)",
            "zoo:ds_cnn (estimated)",
        ]
        assert shown.said == []


def _hostile_rows() -> list[Row]:
    found = []
    for number, name in enumerate(HOSTILE):
        for target in ("ethos-u55-128", HOSTILE[1]):
            change: dict[str, Any] = {"model": f"{name}{number}", "target": target, "memory_mode": name}
            found.append(row(**change, quantize=HOSTILE[0], inputs=HOSTILE[2], vela=name))
            found.append(
                without_result(HOSTILE[0], "".join(HOSTILE), **change, hint=HOSTILE[1], simulator=name)
            )
    places = ("javascript:alert(1)", "/etc", "../..", "a\x00b", "cells/<img src=x>/&#'\"")
    for entry, place in zip(found, places, strict=False):
        entry["folder"] = place
    return found


def test_hostile_names_stay_texts(browser: Browser, tmp_path: Path) -> None:
    found = _hostile_rows()
    (tmp_path / "javascript:alert(1)").mkdir()
    made = sweeps.made(found, tmp_path, name="".join(HOSTILE[:5]))
    with opened(browser, made.path, width=400) as shown:
        page = shown.page
        assert shown.said == []
        assert sorted(listed(shown)) == sorted(row["cell"] for row in found)
        assert f"{HOSTILE[0]}0" in shown.cells("model")
        assert "\\u202egnp.exe\\u2028\\x00\\x1b[2J4" in shown.cells("model")
        for index in range(0, len(found), 5):
            page.locator("#grid button").nth(index).evaluate("field => field.click()")
            page.keyboard.press("Escape")
        assert page.locator("img, main svg:not(#pareto svg)").count() == 0
        assert page.evaluate("window.broken") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        links = page.locator("#list a").evaluate_all("all => all.map(link => link.href)")
        base = tmp_path.as_uri() + "/"
        assert links
        assert all(link.startswith(base) for link in links)


def test_nothing_at_all_is_a_page(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, sweeps.made([], tmp_path).path) as shown:
        assert shown.said == []
        assert listed(shown) == []
        assert "0 of 0" in shown.page.locator(".card").first.inner_text()


def test_five_thousand_cells_can_be_used(browser: Browser, tmp_path: Path) -> None:
    made = sweeps.made(sweeps.rows(models=114), tmp_path)
    assert len(made.rows) > 5000
    assert made.path.stat().st_size < MOST_BYTES
    with opened(browser, made.path) as shown:
        page = shown.page
        assert shown.said == []
        assert len(fields(page)) == len(made.rows)
        begin = time.monotonic()
        search(page, "net_77.py")
        assert len(listed(shown)) == 44
        search(page, "")
        page.locator("#list").get_by_role("button", name="SRAM, bytes").click()
        least = min(row["sram_bytes"] for row in made.rows if row["sram_bytes"] is not None)
        assert shown.cells("SRAM, bytes")[0] == f"{least:,}"
        assert time.monotonic() - begin < MOST_SECONDS
