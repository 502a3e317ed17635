"""The zoo's streaming models: 100 frames in one boot, and in two with the state in a file between them."""

from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk.base import npz
from tests.integration.cli import sdk_ok
from tests.integration.zoo import process as zoo_process
from tests.records import read

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]

FRAMES, FIRST = 100, 40
LEAST_DB = {"streaming_kws": 25.0, "vad": 25.0}


def decibels(wanted: np.ndarray, found: np.ndarray) -> float:
    """The signal-to-quantisation-noise ratio."""
    return float(10 * np.log10((wanted**2).sum() / max(((found - wanted) ** 2).sum(), 1e-30)))


@pytest.mark.parametrize("name", LEAST_DB)
def test_a_hundred_frames_do_not_drift_and_go_on_after_a_restart(name: str, tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    frames = generator.normal(0, 0.6, (FRAMES, 1, 40)).astype(np.float32)
    for file, rows in {"all": frames, "first": frames[:FIRST], "rest": frames[FIRST:]}.items():
        npz.write_npz(tmp_path / f"{file}.npz", {"input0": rows})
    sdk_ok("compile", f"zoo:{name}", "--target", "ethos-u55-128", "-o", "out", "-q", cwd=tmp_path)
    state = read(tmp_path / "out" / f"{name}.compile.json")["state"]
    assert {row["dtype"] for row in state} == {"int8"}

    def run(file: str, *words: str) -> np.ndarray:
        sdk_ok("run", f"out/{name}.pte", "--inputs", f"{file}.npz", "-o", "out", *words, cwd=tmp_path)
        return np.asarray(npz.read_npz(tmp_path / "out" / "outputs.npz")["output0"]).reshape(-1)

    on_host = run("all", "--simulator", "host")
    on_board = run("all", "--simulator", "qemu")
    np.testing.assert_array_equal(on_board, on_host)
    assert len(read(tmp_path / "out" / "run.json")["sequence"]["steps"]) == FRAMES
    parts = [
        run("first", "--simulator", "qemu", "--save-state", "state.npz"),
        run("rest", "--simulator", "qemu", "--state", "state.npz"),
    ]
    np.testing.assert_array_equal(np.concatenate(parts), on_board)
    assert not np.array_equal(run("rest", "--simulator", "qemu"), parts[1]), "the state decides nothing"
    (wanted,) = zoo_process.float_outputs(name, frames, tmp_path)
    wanted, quarter = wanted.reshape(-1), len(on_board) // 4
    assert decibels(wanted, on_board) > LEAST_DB[name]
    # What drifts is worse at the end than at the beginning.
    assert (
        decibels(wanted[-quarter:], on_board[-quarter:]) > decibels(wanted[:quarter], on_board[:quarter]) - 6
    )
