"""What the page's script gets of rows, and a cell's figures out of its records."""

import json
import math
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urljoin

import pytest
from hypothesis import given, settings as options, strategies as st
from msgspec.structs import replace

from ethosu_sdk.compile import vela_versions
from ethosu_sdk.records import kinds
from ethosu_sdk.records.compile import (
    Accuracy,
    CheckedOutput,
    Compilation,
    EvaluationData,
    Figure,
    Pair,
    Top1,
)
from ethosu_sdk.sweep import cell_rows, sweep_page
from ethosu_sdk.sweep.sweep_goals import Goals
from ethosu_sdk.sweep.sweep_verdict import judge_sweep
from tests.records import example
from tests.tables import each
from tests.unit.sweep.rows import Row, row, without_result
from tests.unit.sweep.test_goals import of_tables

BASE = "file:///sweep/"
numbers = st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=3), st.booleans())


def unpacked(data: dict[str, Any]) -> list[Row]:
    """The rows as the script reads them."""
    texts, width = data["texts"], len(data["textColumns"])
    return [
        {name: texts[place] for name, place in zip(data["textColumns"], entry[:width], strict=True)}
        | dict(zip(data["numberColumns"], entry[width:], strict=True))
        for entry in data["rows"]
    ]


def packed(rows: list[Row], folder: Path = Path("/nowhere")) -> dict[str, Any]:
    verdict = judge_sweep(rows, Goals())
    data = sweep_page.page_cells(folder, verdict, rows, sweep_page.settings_of(rows))
    sweep_page.verdict_overview(verdict, rows, sweep_page.settings_of(rows))
    return dict(json.loads(json.dumps(data, allow_nan=False)))


@given(st.lists(st.tuples(st.text(max_size=5), numbers, numbers, numbers), max_size=6))
@options(max_examples=60)
def test_nothing_of_a_row_is_lost_or_made_up(drawn: list[tuple[str, Any, Any, Any]]) -> None:
    rows = [
        row(cell=f"{number:012x}", model=name, sram_bytes=sram, sqnr_db=sqnr, seconds=seconds)
        for number, (name, sram, sqnr, seconds) in enumerate(drawn)
    ]
    for entry, found in zip(rows, unpacked(packed(rows)), strict=True):
        assert found["cell"] == entry["cell"]
        assert found["model"].isprintable()
        if entry["model"].isprintable() and "://" not in entry["model"]:
            assert found["model"] == entry["model"]
        for name in ("sram_bytes", "sqnr_db", "seconds"):
            given_number = entry[name]
            is_number = isinstance(given_number, (int, float)) and not isinstance(given_number, bool)
            if is_number and abs(given_number) <= 1e15:
                assert found[name] == given_number
            else:
                assert found[name] == ("inf" if is_number and given_number == math.inf else None)


@each(
    ("place", "address"),
    [
        ("cells/a", "./cells/a/report.html"),
        ("cells/b", "./cells/b/run.json"),
        ("cells/c", "./cells/c/"),
        ("cells/a b#?%&'\"<", "./cells/a%20b%23%3F%25%26%27%22%3C/report.html"),
        ("javascript:alert(1)", "./javascript%3Aalert%281%29/report.html"),
        ("cells/absent", ""),
        ("../outside", ""),
        ("cells/../../outside", ""),
        ("/etc", ""),
        ("a\0b", ""),
        ("", ""),
        (None, ""),
        (7, ""),
        ("x" * 5000, ""),
    ],
)
def test_links_stay_in_the_folder(place: object, address: str, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    names = ("cells/a", "cells/a b#?%&'\"<", "javascript:alert(1)", "../outside")
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "report.html").write_text("", encoding="utf-8")
    (folder / "cells/b").mkdir()
    (folder / "cells/b/run.json").write_text("", encoding="utf-8")
    (folder / "cells/c").mkdir()
    (found,) = unpacked(packed([row(folder=place)], folder))
    assert found["link"] == address
    whole = urljoin(BASE, found["link"])
    assert whole.startswith(BASE)
    if address.endswith(".html"):
        assert (folder / unquote(whole.removeprefix(BASE))).is_file()


def test_a_cell_has_the_command_that_repeats_it() -> None:
    own = row(quantize="default", inputs="default", vela=vela_versions.own_version())
    target = "--target ethos-u55-128 --system-config Ethos_U55_High_End_Embedded --memory-mode Shared_Sram"
    run = f"ethosu-sdk run zoo:ds_cnn {target} --simulator qemu --board corstone-300"
    assert sweep_page.repeat_command(own) == run
    compiled = {
        **own,
        "simulator": "none",
        "board": None,
        "inputs": None,
        "quantize": "none",
        "model": "a b.py",
    }
    assert sweep_page.repeat_command(compiled) == f"ethosu-sdk compile 'a b.py' {target} --quantize none"
    core = {**own, "target": "cortex-m55", "system_config": "none", "memory_mode": "none", "vela": "none"}
    assert sweep_page.repeat_command(core).startswith("ethosu-sdk run zoo:ds_cnn --target cortex-m55 --sim")
    assert sweep_page.repeat_command({**own, "vela": "1.0"}) == ""
    assert sweep_page.repeat_command({**own, "memory_mode": "Of_A_File"}) == ""


def test_a_winner_needs_the_whole_time() -> None:
    """The NPU's time is not that of an inference where operators run on the CPU; memory alone needs no time."""
    timed, sized = (
        [{"figure": "npu_cycles"}],
        [{"figure": "sram_bytes"}],
    )
    for goals, on_cpu, standing in (
        (timed, 0, "winner"),
        (timed, 2, sweep_page.LEADER),
        (sized, 2, "winner"),
    ):
        rows = [row(operators_cpu=on_cpu)]
        verdict = judge_sweep(rows, of_tables({"goals": goals}))
        assert sweep_page.standing_of(verdict, rows[0], verdict.cells[0]) == standing


def test_settings_that_vary_tell_cells_apart() -> None:
    found = sweep_page.settings_of(
        [row(), row(target="ethos-u85-256", system_config="other", board="corstone-320")]
    )
    assert found.above == ["target", "memory_mode"]  # both others follow from the target
    assert found.beside == ["model"]
    assert found.fixed["vela"] == "5.1.0"
    more = sweep_page.settings_of([row(), row(system_config="other", vela="5.2.0", board="b")])
    assert more.above == ["target", "system_config", "memory_mode"]
    assert more.beside == ["model", "vela", "board"]
    assert more.words(row()) == (
        "ethos-u55-128 · Ethos_U55_High_End_Embedded · Shared_Sram · 5.1.0 · corstone-300"
    )


def test_failures_stand_by_their_message() -> None:
    rows = [
        *(without_result("refused", "too large", model=f"m{number}") for number in range(5)),
        without_result("timeout", "too long", model="t"),
        row(),
    ]
    found = sweep_page.verdict_overview(judge_sweep(rows, Goals()), rows, sweep_page.settings_of(rows))
    assert [(part["status"], part["message"], part["count"]) for part in found["failures"]] == [
        ("refused", "too large", 5),
        ("timeout", "too long", 1),
    ]
    first = found["failures"][0]
    assert len(first["cells"]) + first["more"] == 5


def test_a_page_lists_so_many_cells_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_page, "MOST_CELLS", 50)
    rows = [row(cell=f"{number:012x}") for number in range(51)]
    verdict = judge_sweep(rows, Goals())
    assert (
        len(sweep_page.page_cells(Path("/nowhere"), verdict, rows, sweep_page.settings_of(rows))["rows"])
        == 50
    )
    found = sweep_page.verdict_overview(verdict, rows, sweep_page.settings_of(rows))
    assert (found["cells"], found["listed"]) == (51, 50)


# --- A cell's figures out of its records.

OUTPUT = {"elements": 4, "equal": 4}
NEAR = {"elements": 4, "equal": 1, "sqnr_db": 30.0}
UNKNOWN = {"elements": 4, "equal": 1}  # integers, whose differences mean nothing


def compiled(*pairs: Pair, outputs: tuple[CheckedOutput, ...] = ()) -> Compilation:
    data = EvaluationData(file="a.npz", sha256="0" * 64, samples=1, labels=(), expected=False)
    compiled = kinds.COMPILE.convert(example("compile-add"))
    return replace(
        compiled,
        check=replace(compiled.check, outputs=outputs),
        accuracy=Accuracy(data=data, executions=(), missing=(), outputs=(), pairs=pairs),
    )


def output(**members: Any) -> CheckedOutput:
    known = {
        "index": 0,
        "status": "pass",
        "detail": "",
        "sha256": "",
        "left_out": 0,
        "not_finite": 0,
        "step": 0,
        "differing": Figure(executed=0, rounding=0, limit=0),
    }
    return CheckedOutput(**{**known, **members})


def pair(
    reference: Literal["float", "labels"],
    candidate: Literal["float", "quantised", "executed"],
    share: float | None = None,
    **members: Any,
) -> Pair:
    top1 = None if share is None else Top1(share=share, right=0, total=0, ties=0)
    return Pair(reference=reference, candidate=candidate, output=0, top1=top1, **members)


@pytest.mark.parametrize(
    ("outputs", "worst"),
    [
        ([OUTPUT], math.inf),
        ([OUTPUT, NEAR], 30.0),
        ([UNKNOWN], None),
        ([UNKNOWN, OUTPUT], math.inf),
        ([], None),
    ],
)
def test_equal_outputs_have_no_noise(outputs: list[dict[str, Any]], worst: float | None) -> None:
    record = compiled(outputs=tuple(output(**part) for part in outputs))
    assert cell_rows.cell_figures(record, None)["check_sqnr_db"] == worst
    record = compiled(*(pair("float", "executed", **part) for part in outputs))
    assert cell_rows.cell_figures(record, None)["sqnr_db"] == worst


def test_only_executed_programs_count_and_infinite_figures_come_back() -> None:
    record = kinds.SWEEP_CELL.convert(example("sweep-cell"))
    assert cell_rows.row_of_cell(record)["sqnr_db"] is None
    assert cell_rows.row_of_cell(replace(record, no_noise=("sqnr_db",)))["sqnr_db"] == math.inf
    record = compiled(
        pair("float", "quantised", share=0.1, **NEAR),
        pair("labels", "float", share=0.2),
        pair("labels", "executed", share=0.75),
        pair("float", "executed", share=0.3, **OUTPUT),
    )
    found = cell_rows.cell_figures(record, None)
    assert (found["sqnr_db"], found["top1"]) == (math.inf, 0.75)
