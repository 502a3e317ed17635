"""What `compare` and `advise` say first, at three widths: a few lines, whose figures are those of the records."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ethosu_sdk.records import wording
from tests.integration.cli import Outcome, assert_clear, sdk, sdk_ok
from tests.integration.compare.runs import Record, changed
from tests.records import EXAMPLES, read

WIDTHS = (80, 100, 120)
MOST_LINES = 15


def _said(cwd: Path, *words: str | Path, code: int = 0) -> list[str]:
    """The lines of a command at 80 columns; at every width they fit, and say the same words."""
    found: list[list[str]] = []
    for width in WIDTHS:
        done: Outcome = sdk(*words, cwd=cwd, env={"COLUMNS": str(width)})
        assert done.code == code, done.err
        lines = done.out.splitlines()
        assert len(lines) <= MOST_LINES
        assert [line for line in lines if len(line) > width] == []
        assert "…" not in done.out
        found.append(lines)
    assert len({" ".join(" ".join(lines).split()) for lines in found}) == 1
    return found[0]


def _example(name: str, folder: Path) -> str:
    """An example of a record in `folder`; the name of the file."""
    return shutil.copy(EXAMPLES / f"{name}.json", folder / f"{name}.json").name


def _timed(share: float) -> Callable[[Record], None]:
    """The time of every part, times `share`."""

    def change(record: Record) -> None:
        time = record["time"]
        for clock in time["clocks"].values():
            clock["hz"] /= share  # the cycles are the same
        total, sums = time["total"], time["sums"]
        for row, names in (
            (total, ("duration_s", "least_s", "most_s")),
            (sums, tuple(sums)),
            (time["largest"], ("duration_s",)),
            *((part, ("start_s", "duration_s", "waits_s")) for part in time["parts"]),
        ):
            row.update({name: row[name] * share for name in names if name in row})
        record["model"]["sha256"] = "1" * 64
        for part in record["provenance"]["inputs"]:
            if part["role"] == "model":
                part["sha256"] = "1" * 64

    return change


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.4, "FASTER   2.5 times: {} → {} ms ({minus}60 %, modelled, my-board)"),
        (0.97, "FASTER   {} → {} ms ({minus}3.0 %, modelled, my-board)"),
        (3.0, "SLOWER   3.0 times: {} → {} ms (+200 %, modelled, my-board)"),
        (1.0, "SAME     {} ms (modelled, my-board)"),
    ],
)
def test_the_time_decides(share: float, words: str, tmp_path: Path) -> None:
    source = _example("run-add-timed", tmp_path)
    before = read(tmp_path / source)["time"]["total"]["duration_s"] * 1e3
    changed(tmp_path / source, tmp_path / "after.json", _timed(share))
    lines = _said(tmp_path, "compare", source, "after.json")
    assert lines[0] == words.format(f"{before:.3f}", f"{before * share:.3f}", minus=wording.MINUS)
    assert lines[-1] == f"next     ethosu-sdk compare {source} after.json -v"
    assert sdk("compare", source, "after.json", "--check", cwd=tmp_path).code == (7 if share > 1 else 0)


def _without_time(record: Record) -> None:
    del record["time"]
    record["unavailable"].append({"path": "/time", "reason": "no clock of the CPU"})


def _on_the_cpu(record: Record) -> None:
    record["cpu"]["cycles"]["value"] += 3115
    record["cpu"]["parts"][0]["cycles"]["value"] += 3115


def test_without_a_time_cycles_decide(tmp_path: Path) -> None:
    """Those of both processors where both are known, else those of the NPU; 270 and 3,115 in the example."""
    changed(EXAMPLES / "run-add-timed.json", tmp_path / "a.json", _without_time)
    changed(tmp_path / "a.json", tmp_path / "b.json", _on_the_cpu)
    lines = _said(tmp_path, "compare", "a.json", "b.json")
    assert lines[0] == "SLOWER   1.9 times: 3,385 → 6,500 cycles of NPU and CPU (+92 %, modelled)"
    assert lines[-1] == "next     ethosu-sdk compare a.json b.json -v"
    several = _said(tmp_path, "compare", "b.json", "a.json", "b.json")
    assert [line.split()[:2] for line in several if line[0] != " "][:3] == [
        ["beside", f"{tmp_path.name}/b.json"],
        ["FASTER", f"{tmp_path.name}/a.json"],
        ["SAME", f"{tmp_path.name}/b.json"],
    ]


def test_what_went_and_came_has_its_cost(tmp_path: Path) -> None:
    """An operator that only one profile has, and one that takes 1,000 cycles more."""
    source = _example("profile-digits_cnn", tmp_path)
    rows = read(tmp_path / source)["operations"]
    moved = next(row for row in rows if row.get("source", {}).get("module") == "7")
    cycles = next(row["value"] for row in moved["cycles"] if row["source"] == "modelled")

    def change(record: Record) -> None:
        for row in record["operations"]:  # a variant in another file is the same model
            row.get("source", {}).update(file="variant.py")
        row = next(row for row in record["operations"] if row.get("source", {}).get("module") == "7")
        row["source"]["module"] = "head"
        row = next(row for row in record["operations"] if row.get("source", {}).get("module") == "3")
        for part in (row["cycles"], record["delegates"][0]["cycles"], record["totals"]["npu"]["cycles"]):
            next(entry for entry in part if entry["source"] == "modelled")["value"] += 1000

    changed(tmp_path / source, tmp_path / "after.json", change)
    lines = _said(tmp_path, "compare", source, "after.json")
    shown = dict(line.split(maxsplit=1) for line in lines if line[0] != " ")
    calls = moved["calls"]
    assert shown["went"] == f"CONV2D (7) {calls * cycles:,} cycles"
    assert shown["came"] == f"CONV2D (head) {calls * cycles:,} cycles"
    assert shown["changed"] == "CONV2D (3) +1,000 cycles"


def test_quality_is_told_as_what_it_is(tmp_path: Path) -> None:
    """dB to floating point, or right answers on labels: never equality with the int8 model."""
    source = _example("compile-digits_cnn-evaluated", tmp_path)
    pairs = read(tmp_path / source)["accuracy"]["pairs"]
    executed = next(row for row in pairs if (row["reference"], row["candidate"]) == ("float", "executed"))

    def labelled(record: Record) -> None:
        record["accuracy"]["data"]["labels"] = [0]
        top1 = {"share": 0.915, "right": 183, "total": 200, "ties": 0}
        pair = {"reference": "labels", "candidate": "executed", "output": 0, "top1": top1}
        record["accuracy"]["pairs"].append(pair)

    changed(tmp_path / source, tmp_path / "b.json", labelled)
    lines = _said(tmp_path, "compare", source, source)
    assert f"quality  {executed['sqnr_db']:.1f} dB to float" in lines
    lines += _said(tmp_path, "compare", "b.json", "b.json")
    assert "quality  91.5 % top-1" in lines
    assert "accuracy" not in "\n".join(lines)


def test_what_has_no_time_is_not_called_fast(tmp_path: Path) -> None:
    source = _example("build-ds_cnn", tmp_path)
    lines = _said(tmp_path, "compare", source, source)
    assert lines[0] == "NOT COMPARABLE  no figure that both have says how long an inference takes"

    def measured(record: Record) -> None:
        record["simulator"]["name"] = "fvp"
        for row in (record["npu"]["cycles"], *record["npu"]["counters"]):
            row["source"] = "measured"

    changed(EXAMPLES / "run-ds_cnn.json", tmp_path / "fvp.json", measured)
    lines = _said(tmp_path, "compare", _example("run-ds_cnn", tmp_path), "fvp.json", code=3)
    assert lines[0].startswith("NOT COMPARABLE  fidelity modelled → measured")


def test_all_figures_have_their_names_and_changes(tmp_path: Path) -> None:
    """With -v at any width: 80 columns once had no names, and 120 no change."""
    source = _example("run-ds_cnn", tmp_path)

    def other(record: Record) -> None:
        record["outputs"][0]["sha256"] = "2" * 64
        record["npu"]["cycles"]["value"] *= 2

    changed(tmp_path / source, tmp_path / "b.json", other)
    cycles = read(tmp_path / source)["npu"]["cycles"]["value"]
    for width in WIDTHS:
        done = sdk_ok("compare", source, "b.json", "-v", cwd=tmp_path, env={"COLUMNS": str(width)})
        row = next(line.split() for line in done.out.splitlines() if line.startswith("npu.cycles"))
        assert row[:6] == ["npu.cycles", f"{cycles:,}", f"{2 * cycles:,}", "+100.00", "%", "regression"]
        assert re.search(r"^outputs\.0 +[0-9a-f]{12}… +222222222222… ", done.out, re.MULTILINE)
        assert max(map(len, done.out.splitlines())) <= width


def test_changes_are_ranked_and_told_by_number(tmp_path: Path) -> None:
    """By the record of an earlier `advise --try`: the best trial first, each with what it got."""
    record = read(EXAMPLES / "advice-tried.json")
    shutil.copy(EXAMPLES / "advice-tried.json", tmp_path / "advice.json")
    best = record["tried"]["trials"][0]
    done = sdk_ok("advise", tmp_path, 1, cwd=tmp_path, env={"COLUMNS": "200"})
    assert done.out.startswith(f"1. {best['name']}: better -98.6%")
    assert all(line in done.out for line in best["code"])
    assert done.out.splitlines()[-1].endswith(f"ethosu-sdk compare {tmp_path} after")
    assert_clear(sdk("advise", tmp_path, 99, cwd=tmp_path), 2, "there is no change 99: there are 1 to ")
