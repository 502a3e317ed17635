"""A zoo model all the way in `full`: trained, compiled, built and run there. The host gets the same."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.base import npz
from tests.container.conftest import SLOWNESS, STRANGER, Image
from tests.container.test_commands import PLACES, comparable, read
from tests.integration.cli import sdk

pytestmark = pytest.mark.container

MODEL = "digits_cnn"  # the smallest that is trained where it is compiled
# What names files, machines and programs, or says in words what other members say in figures.
NAMES = {*PLACES, "created", "wall_time_s", "check_time_s", "host", "line"}
DIGESTS = {"sha256", "payload_sha256", "compile_key"}
# Another processor's kernels add floats in another order: weights and scales differ in their last digits, and some
# values are then rounded to the other side. That shows in the largest errors, in decibels, and as one step (1.2 %) in
# outputs.
IS_OTHER = SLOWNESS != 1
TOLERANCE, OUTPUT_TOLERANCE, TOLERANCE_DB = (1e-2, 2e-2, 3.0) if IS_OTHER else (0.0, 0.0, 0.0)
LARGEST = {"largest", "rounding", "limit"}


@pytest.fixture(scope="module")
def there(full: Image, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run in the container."""
    work = tmp_path_factory.mktemp("there")
    os.chown(work, STRANGER, STRANGER)
    outcome = full.run("run", f"zoo:{MODEL}", "-o", "out", work=work)
    assert outcome.code == 0, outcome.err
    return work / "out"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a compilation on the host."""
    folder = tmp_path_factory.mktemp("here")
    outcome = sdk("compile", f"zoo:{MODEL}", "-o", folder / "out", cwd=folder)
    assert outcome.code == 0, outcome.err
    return folder / "out"


def differences(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """Where two records differ: floats by more than their tolerance. Digests of what holds floats, and errors of
    single values, count only where both come from the same kind of processor."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        left_out = NAMES | (DIGESTS | LARGEST if IS_OTHER else set())
        keys = sorted((ours.keys() | theirs.keys()) - left_out)
        return [row for key in keys for row in differences(ours.get(key), theirs.get(key), f"{path}/{key}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [row for index, pair in pairs for row in differences(*pair, f"{path}/{index}")]
    if isinstance(ours, float) and isinstance(theirs, float):
        tolerance = TOLERANCE_DB if path.endswith("_db") else TOLERANCE * max(abs(ours), abs(theirs))
        same = abs(ours - theirs) <= tolerance
    else:
        same = bool(ours == theirs)
    return [] if same else [f"{path}: {ours} and {theirs}"]


def test_every_record_is_valid(full: Image, there: Path) -> None:
    outcome = full.run("validate", there.name, work=there.parent)
    assert outcome.code == 0, outcome.err


def test_the_host_compiles_the_same(there: Path, here: Path) -> None:
    """Byte for byte on the same kind of processor; on another, the records differ by what rounding does."""
    ours, theirs = (read(folder / f"{MODEL}.compile.json") for folder in (there, here))
    assert differences(ours, theirs) == []
    examples = [npz.read_npz(folder / f"{MODEL}.io.npz") for folder in (there, here)]
    assert np.array_equal(examples[0]["input0"], examples[1]["input0"])
    largest = float(np.abs(examples[0]["output0"]).max())
    np.testing.assert_allclose(
        examples[0]["output0"], examples[1]["output0"], rtol=0, atol=OUTPUT_TOLERANCE * largest
    )
    if not IS_OTHER:
        programs = [(folder / f"{MODEL}.pte").read_bytes() for folder in (there, here)]
        assert programs[0] == programs[1]
    # Negative control: a figure that is 5 % off is noticed, or 20 % of another processor's.
    noise = theirs["chain"]["noisy_layers"][0]
    noise["sqnr_db"] *= 1.2 if IS_OTHER else 1.05
    assert len(differences(ours, theirs)) == 1


def test_the_host_runs_the_program_as_the_container_did(there: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    outcome = sdk("run", there / f"{MODEL}.pte", "-o", again, cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    assert (again / "outputs.npz").read_bytes() == (there / "outputs.npz").read_bytes()
    ours, theirs = comparable(there), comparable(again)
    assert json.dumps(ours["npu"]) == json.dumps(theirs["npu"])
    different = {key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)}
    assert different <= set(PLACES)
