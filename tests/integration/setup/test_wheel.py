"""The package as pip installs it into an empty environment: a ready `.pte` runs, with no package named beside it."""

import os
import sys
import venv
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import pytest

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
def test_a_ready_program_runs_from_an_empty_environment(tmp_path: Path) -> None:
    place = tmp_path / "environment"
    venv.create(place, with_pip=False)
    python = place / "bin" / "python"
    options = os.environ.get("ETHOSU_SDK_PIP_ARGS", "").split()
    run([sys.executable, "-m", "pip", f"--python={python}", "install", "-q", *options, ROOT], tmp_path)
    for name in ABSENT:
        code = f"import importlib.util; assert importlib.util.find_spec('{name}') is None"
        run([python, "-c", code], tmp_path)
    commit = run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=12"], tmp_path).strip()
    assert run([place / "bin" / "ethosu-sdk", "--version"], tmp_path).split() == [
        "ethosu-sdk",
        version("ethosu-sdk"),
        f"({commit})",
    ]
    output = run([place / "bin" / "ethosu-sdk", "run", GOLDEN_PTE / "add_u55.pte", "-o", "done"], tmp_path)
    assert "verdict     pass" in output
    code = "import sys, ethosu_sdk; print(ethosu_sdk.inspect(sys.argv[1]).methods)"
    assert run([python, "-c", code, GOLDEN_PTE / "add_u55.pte"], tmp_path).strip() == "('forward',)"
