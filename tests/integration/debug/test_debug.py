"""`debug` as a user starts it: what it writes of a whole program, and that it names the layer that is wrong."""

import csv
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.integration.cli import assert_clear, sdk
from tests.integration.compile.wrong_programs import MODEL as CONVOLUTIONS, WRONG_SCALE, WRONG_WEIGHTS
from tests.integration.debug.networks import Seen, debug
from tests.records import printed

pytestmark = [pytest.mark.torch, pytest.mark.toolchain]

INT8_STEPS = 256


def comparison(seen: Seen, against: str) -> dict[str, Any]:
    return next(row for row in seen.record["comparisons"] if row["against"] == against)


def test_a_whole_program_is_equal_to_its_model(whole: Seen) -> None:
    counts, quantised = whole.record["counts"], comparison(whole, "quantised")
    assert counts["gathered"] == counts["layers"]
    assert counts["left_out_operations"] == 0
    assert counts["quantised"] >= 20
    assert counts["quantised"] == counts["float"] == quantised["layers"]
    assert quantised["rounding"] == "npu"
    assert "first_break" not in quantised
    exact = [row for row in whole.layers if row.get("quantised", {}).get("differing") == 0]
    assert len(exact) >= 0.9 * counts["quantised"]
    modules = {row["source"]["module"] for row in whole.layers if row.get("source", {}).get("module")}
    assert {"first.0", "mix", "qkv", "head"} <= modules


def test_a_state_is_compared_from_its_beginning(tmp_path: Path) -> None:
    """The float model heard the calibration samples, and would still remember the last frames of them."""
    seen = debug("zoo:streaming_kws", tmp_path)
    assert seen.record["counts"]["float"] >= 20
    for against in ("quantised", "float"):
        assert "first_break" not in comparison(seen, against)


def test_parts_of_a_concatenation_are_one_tensor(whole: Seen) -> None:
    (row,) = [row for row in whole.layers if "writers" in row]
    assert {part["source"]["module"] for part in row["writers"]} == {"one", "three"}
    assert row["pytorch"]["operator"].startswith("aten.cat")
    assert sorted(row["shape"]) == [1, 10, 12, 24]


def test_figures_follow_from_the_dump(whole: Seen) -> None:
    """Range and saturation, worked out again; a layer's SQNR is that of the two losses of its tensor at most."""
    for row in whole.layers:
        values = whole.arrays[row["name"]]
        limits, known = np.iinfo(values.dtype), row["range"]
        assert (known["least"], known["largest"]) == (values.min(), values.max())
        assert known["low_share"] == np.mean(values == limits.min)
        assert known["high_share"] == np.mean(values == limits.max)
        if row["dtype"] == "int8":
            used = values.max().astype(int) - values.min().astype(int) + 1
            assert known["used_share"] == used / INT8_STEPS
            assert known["distinct"] == len(set(values.ravel().tolist()))


def test_the_advice_is_ranked_by_its_rule(whole: Seen) -> None:
    rows = [row for row in whole.record["advice"] if row["remedy"] == "16 bits"]
    assert rows
    own = {row["index"]: row["own"]["rounding_db"] for row in whole.layers if "own" in row}
    ranked = [own[row["layer"]] for row in rows]
    assert ranked == sorted(ranked)
    assert ranked == [row["sqnr_db"] for row in rows]
    assert ranked[0] == min(own.values())
    assert all(value < whole.record["thresholds"]["advice_db"] for value in ranked)


def test_the_table_and_the_csv_say_what_the_record_says(whole: Seen) -> None:
    shown = whole.shown
    counts = whole.record["counts"]
    assert f"{counts['quantised']} of {counts['layers']} layers with the quantised model" in shown
    assert "no layer falls below 20 dB" in shown
    with (whole.folder / "debug.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["tensor"] for row in rows] == [row["tensor"] for row in whole.layers]
    for text, row in zip(rows, whole.layers, strict=True):
        near = row.get("float", {})
        assert text["float_sqnr_db"] == (str(near["sqnr_db"]) if "sqnr_db" in near else "")


@pytest.mark.parametrize("fault", [WRONG_SCALE, WRONG_WEIGHTS], ids=["scale", "weights"])
def test_the_layer_with_the_fault_is_named(fault: str, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(CONVOLUTIONS.format(fault=fault), encoding="utf-8")
    seen = debug("net.py", tmp_path)
    quantised = comparison(seen, "quantised")
    layers = {row["index"]: row for row in seen.layers}
    for found in (quantised["first_break"], quantised["largest_drop"]):
        assert layers[found["layer"]]["source"]["module"] == "second"
        assert found["output_db"] < seen.record["thresholds"]["break_db"]
        assert found["inputs_equal"]
    before = [row for row in seen.layers if row["index"] < quantised["first_break"]["layer"]]
    assert all(row["quantised"]["differing"] == 0 for row in before if "quantised" in row)
    assert "first breaks in layer" in seen.shown


def test_a_program_with_its_notes_is_joined_and_not_compared(whole: Seen, tmp_path: Path) -> None:
    again = debug(whole.folder / "net.pte", tmp_path)
    assert [row["tensor"] for row in again.layers] == [row["tensor"] for row in whole.layers]
    for name, values in whole.arrays.items():
        np.testing.assert_array_equal(again.arrays[name], values)
    assert again.record["comparisons"] == []
    assert {"/comparisons/quantised", "/comparisons/float"} <= {
        row["path"] for row in again.record["unavailable"]
    }


def test_a_bare_program_gives_values_and_ranges_alone(whole: Seen, tmp_path: Path) -> None:
    shutil.copy(whole.folder / "net.pte", tmp_path / "bare.pte")
    done = sdk("debug", "bare.pte", "--json", "-o", "out", cwd=tmp_path)
    record = printed(done)
    assert record["counts"]["of_the_graph"] == 0
    assert record["counts"]["gathered"] == len(record["layers"]) > len(whole.layers)
    assert all("range" in row and "tosa" not in row for row in record["layers"])
    assert "/layers/-/tosa" in {row["path"] for row in record["unavailable"]}
    assert "random values" in done.err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder / "delegate0.debug.xml").write_bytes(b"<debug>"), "delegate 0"),
        (lambda folder: (folder / "delegate0.debug.xml").write_bytes(b"<debug/>"), "delegate 0"),
        (lambda folder: (folder / "delegate0.tosa").write_bytes(b"\xff" * 64), "delegate 0"),
        (lambda folder: (folder / "delegate0.tosa").unlink(), "there is no file"),
    ],
    ids=["no XML", "no tables", "no TOSA graph", "missing"],
)
def test_damaged_notes_are_refused(whole: Seen, change: Any, words: str, tmp_path: Path) -> None:
    for file in whole.folder.iterdir():
        if file.is_file() and file.name != "debug.json":
            shutil.copy(file, tmp_path)
    change(tmp_path)
    assert_clear(sdk("debug", "net.pte", cwd=tmp_path), 3, words)
    assert not (tmp_path / "debug.json").exists()


def test_inputs_that_do_not_fit_are_refused(whole: Seen, tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", input0=np.zeros((2, 1, 3, 12, 10), np.float32))
    done = sdk("debug", whole.folder / "net.pte", "--inputs", "two.npz", "-o", "out", cwd=tmp_path)
    assert done.code == 3
    assert "debug takes the inputs of one inference" in done.err
    assert not (tmp_path / "out" / "debug.json").exists()
