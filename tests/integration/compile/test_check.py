"""What `compile` says of the program that it made, and `run` of what it ran: a whole program passes, and a fault is
found and named."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.base import npz
from ethosu_sdk.compile import check_references
from ethosu_sdk.records import validation
from tests.integration.cli import Outcome, sdk
from tests.integration.compile.wrong_programs import (
    MODEL,
    PRODUCT,
    SKIP,
    TIES,
    WITHOUT_REPAIRS,
    WRONG_SCALE,
    WRONG_WEIGHTS,
)
from tests.records import read

pytestmark = pytest.mark.torch


DOUBLED, STRETCHED = {"scale_factor": 2}, {"size": (28, 35)}
CORNERS = {"scale_factor": 2, "align_corners": True}  # leads to no ties


def compiled(folder: Path, fault: str, *options: str, model: str = MODEL) -> tuple[Outcome, dict[str, Any]]:
    (folder / "net.py").write_text(model.format(fault=fault))
    outcome = sdk("compile", "net.py", "-o", "out", "--json", *options, cwd=folder, timeout_s=900)
    record = json.loads(outcome.out)
    assert validation.record_problems(record) == []
    assert (folder / "out" / "net.pte").is_file()
    return outcome, record


@pytest.mark.parametrize(
    ("target", "options", "most_equal"),
    [
        ("ethos-u85-256", (DOUBLED,), 0.95),  # the NPU rounds all ties up
        ("ethos-u55-128", (DOUBLED, STRETCHED, CORNERS), 1.0),  # on the CPU, where few come out otherwise
    ],
)
def test_what_only_the_rounding_of_ties_moves_is_called_so(
    tmp_path: Path, target: str, options: tuple[dict[str, Any], ...], most_equal: float
) -> None:
    model = TIES.replace("{options}", repr(options))
    outcome, record = compiled(
        tmp_path, "", "--target", target, "--as-written", model=model.replace("{", "{{").replace("}", "}}")
    )
    assert outcome.code == 0, outcome.err
    rows = record["check"]["outputs"]
    assert len(rows) == len(options)
    for row, used in zip(rows, options, strict=True):
        assert row["ties_up"] == {"equal": row["elements"], "largest": 0.0}
        if used is not CORNERS:  # PyTorch rounds half of the ties otherwise
            assert row["equal"] < most_equal * row["elements"]
            assert row["detail"].endswith("; with ties rounded up, as the NPU does, all elements are equal")


def fault_line(folder: Path) -> int:
    lines = (folder / "net.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if "# THE FAULT" in line)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a program that `compile` has checked, and its record."""
    folder = tmp_path_factory.mktemp("whole")
    outcome, record = compiled(folder, "")
    assert outcome.code == 0, outcome.err
    assert record["check"]["status"] == "pass"
    return folder


def ran(whole: Path, folder: Path, *options: str) -> tuple[Outcome, dict[str, Any]]:
    """A run of a copy of the program, in the folder `out`, which may have been changed before."""
    if not (folder / "out").is_dir():
        shutil.copytree(whole / "out", folder / "out")
    outcome = sdk("run", "out/net.pte", "--json", *options, cwd=folder)
    record = json.loads(outcome.out)
    assert validation.record_problems(record) == []
    return outcome, record


def reference_check(record: dict[str, Any]) -> str | None:
    """How the comparison with what `compile` executed ended; None without one."""
    rows = {row["name"]: row["status"] for row in record["verdict"]["checks"]}
    return rows.get("the outputs are those that compile executed")


def test_functions_of_int16_values_are_lines_between_the_entries_of_a_table() -> None:
    import torch

    codes = torch.tensor([1280, 1281, 1344, 1407, 1408])
    found = check_references.interpolated(torch.reciprocal, codes * 0.001, 0.001, 0, (-1.0, 0.75))
    left, right = min(1 / 1.280, 0.75), 1 / 1.408  # the table holds what the output's quantisation can
    expected = [left + (right - left) * part / 128 for part in (0, 1, 64, 127, 128)]
    assert found.tolist() == pytest.approx(expected, abs=1e-5)


def test_a_whole_program_passes_with_its_figures(whole: Path) -> None:
    record = read(whole / "out" / "net.compile.json")
    (output,) = record["check"]["outputs"]
    assert output["elements"] == 3 * 6 * 6
    assert 0 < output["rms"]["rounding"] < output["rms"]["limit"]
    assert output["rms"]["executed"] <= output["rms"]["limit"]
    assert 0 < record["check_time_s"] < record["wall_time_s"]
    assert not list((whole / "out").glob(".check-*"))


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u85-256"])
def test_a_fault_of_the_lowering_is_named_with_its_line(target: str, tmp_path: Path) -> None:
    outcome, record = compiled(tmp_path, WRONG_SCALE, "--target", target)
    assert outcome.code == 7, outcome.err
    assert record["status"] == record["check"]["status"] == "fail"
    start = record["check"]["start"]
    assert start["certain"]
    assert start["operator"] == "aten.conv2d → aten.relu"
    assert start["tosa"]["operator"] == "RESCALE"
    assert (start["source"]["file"], start["source"]["line"]) == ("net.py", fault_line(tmp_path))
    assert f"net.py, line {fault_line(tmp_path)}, in " in outcome.err
    assert "rounding explains" in outcome.err


def test_a_vanished_relu_is_found_where_it_is_not_repaired(tmp_path: Path) -> None:
    outcome, record = compiled(tmp_path, WITHOUT_REPAIRS, "--target", "ethos-u85-256", model=SKIP)
    assert outcome.code == 7, outcome.err
    assert record["check"]["start"]["source"]["line"] == fault_line(tmp_path)


def test_an_access_outside_of_the_tensors_is_blamed_on_the_tools(tmp_path: Path) -> None:
    outcome, record = compiled(tmp_path, WITHOUT_REPAIRS, "--target", "ethos-u55-128", model=PRODUCT)
    assert outcome.code == 3, outcome.err
    assert record["check"]["status"] == "fail"
    np.savez(tmp_path / "data.npz", input0=np.zeros((3, 2, 8, 8), np.float32))
    options = ("--target", "ethos-u55-128", "--evaluate", "data.npz", "-o", "other")
    evaluated = sdk("compile", "net.py", *options, cwd=tmp_path, timeout_s=900)
    assert evaluated.code == 3, evaluated.err
    for printed in (outcome.err, evaluated.err):
        assert "error: the program that was made does not run: OFM access" in printed


def test_a_product_of_parts_is_right(tmp_path: Path) -> None:
    outcome, record = compiled(tmp_path, "", "--target", "ethos-u55-128", model=PRODUCT)
    assert outcome.code == 0, outcome.err
    (output,) = record["check"]["outputs"]
    assert output["ties_up"]["equal"] == output["elements"]


def test_a_relu_that_shares_its_quantisation_stays(tmp_path: Path) -> None:
    outcome, record = compiled(tmp_path, "", "--target", "ethos-u85-256", model=SKIP)
    assert outcome.code == 0, outcome.err
    assert record["check"]["status"] == "pass"


def test_a_fault_behind_the_tosa_graph_is_seen_at_the_delegate(tmp_path: Path) -> None:
    outcome, record = compiled(tmp_path, WRONG_WEIGHTS)
    assert outcome.code == 7, outcome.err
    assert record["check"]["status"] == "fail"
    assert not record["check"]["start"]["certain"]
    assert "Vela's output for it" in record["check"]["start"]["text"]


def test_without_a_check_nothing_is_said_of_the_program(tmp_path: Path) -> None:
    outcome, record = compiled(tmp_path, WRONG_SCALE, "--no-check")
    assert outcome.code == 0, outcome.err
    assert record["check"] == {"status": "left-out", "reason": "--no-check"}


def test_without_a_compiler_the_check_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MODEL.format(fault=""))
    environment = {"PATH": "/nowhere", "ETHOSU_SDK_CACHE": str(tmp_path / "cache")}
    outcome = sdk("compile", "net.py", "-o", "out", "--json", cwd=tmp_path, env=environment)
    record = json.loads(outcome.out)
    assert outcome.code == 0, outcome.err
    assert record["check"]["status"] == "unavailable"
    assert "g++" in record["check"]["reason"]
    assert "The program was not executed" in outcome.err


@pytest.mark.parametrize("simulator", ["host", pytest.param("qemu", marks=pytest.mark.qemu)])
def test_a_run_gives_what_compile_executed(simulator: str, whole: Path, tmp_path: Path) -> None:
    outcome, record = ran(whole, tmp_path, "--simulator", simulator)
    assert outcome.code == 0, outcome.err
    assert reference_check(record) == "pass"
    stored, got = (np.load(tmp_path / "out" / name)["output0"] for name in ("net.io.npz", "outputs.npz"))
    (row,) = record["reference"]["outputs"]
    assert (row["elements"], row["equal"]) == (stored.size, int((stored == got).sum()))
    if row["equal"] < row["elements"]:
        assert row["max_abs_error"] == pytest.approx(np.abs(got - stored).max())
        error = np.linalg.norm(got.astype(float) - stored)
        assert row["sqnr_db"] == pytest.approx(20 * np.log10(np.linalg.norm(stored) / error))


def test_a_run_that_gives_something_else_fails(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "out", tmp_path / "out")
    path = tmp_path / "out" / "net.compile.json"
    record = read(path)
    record["check"]["outputs"][0]["sha256"] = "0" * 64
    path.write_text(json.dumps(record))
    outcome = sdk("run", "out/net.pte", "-o", "out", "--simulator", "host", cwd=tmp_path)
    assert outcome.code == 3
    assert "net.compile.json" in outcome.err
    (tmp_path / "out" / "manifest.json").unlink()
    outcome, result = ran(whole, tmp_path, "--simulator", "host")
    assert outcome.code == 7
    assert reference_check(result) == result["status"] == "fail"


def test_other_inputs_have_no_reference(whole: Path, tmp_path: Path) -> None:
    npz.write_npz(tmp_path / "other.npz", {"input0": np.ones((1, 2, 8, 8), np.float32)})
    outcome, record = ran(whole, tmp_path, "--simulator", "host", "--inputs", "other.npz")
    assert outcome.code == 0, outcome.err
    assert "reference" not in record
    assert reference_check(record) is None
    (reason,) = (row["reason"] for row in record["unavailable"] if row["path"] == "/reference")
    assert reason == "the inputs are not those of net.io.npz"
