"""Accuracy in a sweep: what `compile --evaluate` finds, and verdicts that rest on it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.compile import zoo
from tests.integration.cli import sdk_ok
from tests.integration.sweep.sweeps import record, rows, sweep, write
from tests.records import read

pytestmark = pytest.mark.torch

SAMPLES = 60
TARGETS = ("ethos-u55-128", "ethos-u65-256")
SWEEP = """
models = ["zoo:digits_cnn"]
targets = ["ethos-u55-128", "ethos-u65-256"]

[evaluate]
"zoo:digits_*" = "digits.npz"

[[constraints]]
figure = "top1"
min = "90 %"

[[constraints]]
figure = "sqnr_db"
min = "20 dB"
"""


def figures(folder: Path) -> tuple[float, float]:
    """SQNR against floating point and share of right answers, of the record that `compile` left in `folder`."""
    (path,) = folder.glob("*.compile.json")
    pairs: list[dict[str, Any]] = read(path)["accuracy"]["pairs"]
    by_names = {(row["reference"], row["candidate"]): row for row in pairs}
    return by_names["float", "executed"]["sqnr_db"], by_names["labels", "executed"]["top1"]["share"]


@pytest.mark.thorough
def test_a_cell_has_the_accuracy_that_compile_finds(tmp_path: Path) -> None:
    images, labels = zoo.digits.held_back()
    file = write(tmp_path, SWEEP)
    given = {"input0": images[:SAMPLES], "label0": labels[:SAMPLES]}
    np.savez(tmp_path / "digits.npz", **given)
    done = sweep(file, tmp_path / "out")
    assert done.code == 0, done.err
    alone = tmp_path / "alone"
    options = ("--target", TARGETS[0], "--evaluate", "digits.npz", "-o", alone)
    sdk_ok("compile", "zoo:digits_cnn", *options, cwd=tmp_path)
    found = {row["target"]: (row["sqnr_db"], row["top1"]) for row in rows(tmp_path / "out")}
    assert found == dict.fromkeys(TARGETS, figures(alone))
    assert record(tmp_path / "out")["plan"]["lowerings"] == 1

    # Wrong labels are other samples: the cells are done again, and none keeps the constraint.
    np.savez(tmp_path / "digits.npz", **{**given, "label0": (labels[:SAMPLES] + 1) % 10})
    done = sweep(file, tmp_path / "out")
    assert done.code == 7, done.err
    assert "0.9" in done.out + done.err
    worse = {row["target"]: row["top1"] for row in rows(tmp_path / "out")}
    assert all(worse[target] < 0.1 for target in TARGETS)
