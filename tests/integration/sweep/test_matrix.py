"""A sweep from end to end: each cell is what `compile` and `run` make of it, and what cells share is done once."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from ethosu_sdk.records import provenance
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.integration.sweep.sweeps import SCALE, by_cell, finished, record, rows, sweep, write
from tests.records import read

pytestmark = [pytest.mark.torch]

CELLS, LOWERINGS = 22, 6  # two models; U55: 2 modes, U65: 3, U85: 2 by 3; U55-32 is lowered by itself


def test_every_cell_is_a_valid_bundle(matrix: Path) -> None:
    found = rows(matrix / "out")
    assert len(found) == CELLS
    assert {row["status"] for row in found} == {"pass"}
    assert {row["check"] for row in found} == {"pass"}
    for row in found:
        folder = matrix / "out" / row["folder"]
        assert {"cell.json", "run.json", "outputs.npz", "manifest.json"} <= {p.name for p in folder.iterdir()}
        run = read(folder / "run.json")
        assert row["npu_cycles"] == run["npu"]["cycles"]["value"]
        assert row["npu_cycles_source"] == "modelled"
        assert row["target"] == f"{run['target']['npu']}-{run['target']['macs']}"
        assert row["memory_mode"] == run["target"]["memory_mode"]
        program = next(folder.glob("*.pte")).read_bytes()
        assert hashlib.sha256(program).hexdigest() == row["program_sha256"] == run["model"]["sha256"]
        assert len(program) == row["program_bytes"]
        assert row["time_ms"] == pytest.approx(row["npu_cycles"] / row["clock_mhz"] / 1e3)
    assert sdk("validate", matrix / "out", cwd=matrix).code == 0


def test_a_changed_cell_is_noticed(matrix: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(matrix / "out", copy)
    path = finished(copy)[0]
    path.write_text(path.read_text(encoding="utf-8").replace('"pass"', '"fail"'), encoding="utf-8")
    assert_clear(sdk("validate", copy, cwd=tmp_path), 3, path.parent.name)


def test_each_model_is_lowered_once_for_each_tosa_specification(matrix: Path) -> None:
    made = record(matrix / "out")
    assert made["plan"]["lowerings"] == LOWERINGS
    assert made["session"] == {
        "cells_before": 0,
        "jobs": made["session"]["jobs"],
        "lower_steps": LOWERINGS,
        "compile_steps": CELLS,
        "finish_steps": CELLS,
    }
    assert len(list((matrix / "out" / "lowered").glob("[0-9a-f]*"))) == LOWERINGS
    assert made["plan"]["dropped"] == [
        {
            "reason": "memory mode 'Dedicated_Sram' cannot be used with Ethos_U55_High_End_Embedded",
            "count": 2,
        }
    ]


@pytest.mark.parametrize(
    ("target", "mode"), [("ethos-u65-512", "Dedicated_Sram"), ("ethos-u85-1024", "Shared_Sram")]
)
def test_a_cell_is_what_compile_makes(matrix: Path, tmp_path: Path, target: str, mode: str) -> None:
    """The lowering was for another target: program, graphs, reports and record are the same, byte for byte."""
    words = ("--target", target, "--memory-mode", mode, "-q", "-o", tmp_path)
    sdk_ok("compile", "net.py", *words, cwd=matrix)
    (row,) = (
        row
        for row in rows(matrix / "out")
        if (row["model"], row["target"], row["memory_mode"]) == ("net.py", target, mode)
    )
    folder = matrix / "out" / row["folder"]
    # Not Vela's debug database: the columns of its tables come in another order each time.
    for name in (
        "net.pte",
        "net.io.npz",
        "delegate0.tosa",
        "delegate0.summary.csv",
        "delegate0.per-layer.csv",
    ):
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes(), name
    ours, theirs = (read(path / "net.compile.json") for path in (folder, tmp_path))
    assert provenance.comparable(ours) == provenance.comparable(theirs)


def test_the_graphs_of_the_two_specifications_differ(matrix: Path) -> None:
    """Control: one lowering for all targets would be one too few."""
    digests = {
        (
            row["npu"],
            hashlib.sha256((matrix / "out" / row["folder"] / "delegate0.tosa").read_bytes()).hexdigest(),
        )
        for row in rows(matrix / "out")
        if row["model"] == "net.py"
    }
    graphs = {npu: {digest for name, digest in digests if name == npu} for npu, _ in digests}
    assert {npu: len(found) for npu, found in graphs.items()} == {
        "ethos-u55": 1,
        "ethos-u65": 1,
        "ethos-u85": 1,
    }
    assert graphs["ethos-u55"] == graphs["ethos-u65"] != graphs["ethos-u85"]


def test_what_is_there_is_not_done_again(matrix: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(matrix, folder)
    before = by_cell(folder / "out")
    done = sweep(folder / "sweep.toml", folder / "out")
    assert done.code == 0, done.err
    again = record(folder / "out")
    assert again["session"]["cells_before"] == CELLS
    assert [again["session"][f"{name}_steps"] for name in ("lower", "compile", "finish")] == [0, 0, 0]
    assert again["wall_time_s"] < 5
    assert by_cell(folder / "out") == before


def test_what_a_model_imports_is_part_of_it(matrix: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(matrix, folder)
    write(folder, SCALE.replace("0.5", "0.75"), "scale.py")
    done = sdk("sweep", folder / "sweep.toml", "--dry-run", "--json", "-o", folder / "out", cwd=folder)
    left = json.loads(done.out)["left"]
    assert left == {"cells": 11, "lowerings": 3, "vela_runs": 11, "simulations": 11}
    write(folder, SCALE, "scale.py")
    done = sdk("sweep", folder / "sweep.toml", "--dry-run", "--json", "-o", folder / "out", cwd=folder)
    assert json.loads(done.out)["left"]["cells"] == 0
