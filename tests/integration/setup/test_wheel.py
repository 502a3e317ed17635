"""The wheel as pip installs it into an empty environment: a ready `.pte` runs, with no package named beside it."""

import os
import sys
import venv
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk.base import npz
from tests.integration.setup import process
from tests.places import GOLDEN_PTE, ROOT

ABSENT = ("torch", "executorch", "pytest", "tests")


def run(argv: Sequence[str | Path], folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    code, said = process.run(argv, cwd=folder, env=environment)
    assert code == 0, said
    return said


@pytest.mark.toolchain
@pytest.mark.qemu
@pytest.mark.thorough
def test_a_ready_program_runs_from_an_empty_environment(tmp_path: Path) -> None:
    place = tmp_path / "environment"
    venv.create(place, with_pip=False)
    python = place / "bin" / "python"
    options = os.environ.get("ETHOSU_SDK_PIP_ARGS", "").split()
    pip = (sys.executable, "-m", "pip")
    run([*pip, "wheel", "-q", *options, "--no-deps", "--wheel-dir", "dist", ROOT], tmp_path)
    (wheel,) = (tmp_path / "dist").iterdir()
    run([*pip, f"--python={python}", "install", "-q", *options, wheel], tmp_path)
    for name in ABSENT:
        code = f"import importlib.util; assert importlib.util.find_spec('{name}') is None"
        run([python, "-c", code], tmp_path)
    commit = run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=12"], tmp_path).strip()
    assert run([place / "bin" / "ethosu-sdk", "--version"], tmp_path).split() == [
        "ethosu-sdk",
        version("ethosu-sdk"),
        f"({commit})",
    ]
    given = np.array([-(2**30), 7, 0, 12345, -1], np.int32)
    npz.write_npz(tmp_path / "in.npz", {"input0": given})
    npz.write_npz(tmp_path / "sum.npz", {"output0": given + given})
    npz.write_npz(tmp_path / "other.npz", {"output0": given + given + 1})
    command = [place / "bin" / "ethosu-sdk", "run", GOLDEN_PTE / "add_u55.pte", "--inputs", "in.npz"]
    assert "PASS " in run([*command, "--expect", "sum.npz", "-o", "done"], tmp_path)
    assert npz.read_npz(tmp_path / "done" / "outputs.npz")["output0"].tolist() == (given + given).tolist()
    code, _ = process.run([*command, "--expect", "other.npz", "-o", "wrong"], cwd=tmp_path, env=os.environ)
    assert code == 7
    code = "import sys, ethosu_sdk; print(ethosu_sdk.inspect(sys.argv[1]).methods)"
    assert run([python, "-c", code, GOLDEN_PTE / "add_u55.pte"], tmp_path).strip() == "('forward',)"
