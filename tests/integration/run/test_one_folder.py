"""Commands that write into one folder one after the other, as a user types them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk.base import json_text, npz
from ethosu_sdk.program import pte
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.places import GOLDEN_PTE

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]
PROGRAM = GOLDEN_PTE / "add_u55.pte"


def test_run_builds_anew_what_build_left(tmp_path: Path) -> None:
    """Two sets of inputs need another firmware than one: its record is another, too."""
    assert sdk("build", PROGRAM, "-o", "out", cwd=tmp_path).code == 0
    before = json_text.read_json(tmp_path / "out" / "build.json")
    sdk_ok("run", PROGRAM, "-o", "out", "--inputs", two_sets(tmp_path), cwd=tmp_path)
    assert json_text.read_json(tmp_path / "out" / "build.json")["options"] != before["options"]
    sdk_ok("validate", "out", cwd=tmp_path)
    assert sdk("build", PROGRAM, "-o", "out", cwd=tmp_path).code == 0
    assert sdk("validate", "out", cwd=tmp_path).code == 0


def test_an_edited_record_of_a_build_does_not_become_evidence(tmp_path: Path) -> None:
    """A run that builds nothing lists what an earlier build left, unless somebody changed it."""
    assert sdk("build", PROGRAM, "-o", "out", cwd=tmp_path).code == 0
    record = tmp_path / "out" / "build.json"
    record.write_text(record.read_text().replace('"pass"', '"pass" '), encoding="utf-8")
    assert_clear(sdk("run", PROGRAM, "-o", "out", "--resident", cwd=tmp_path), 3, "build.json is not what")
    assert sdk("validate", "out", cwd=tmp_path).code == 3


def two_sets(folder: Path) -> Path:
    """Two inferences' inputs."""
    tensors = pte.read(PROGRAM).plan().input_tensors()
    path = folder / "two.npz"
    npz.write_npz(
        path, {f"input{index}": np.ones((2, *row.sizes), row.dtype) for index, row in enumerate(tensors)}
    )
    return path
