"""What `debug` blames, and what not: ten networks whose programs are right, and ten faults in another.

Whether there is a fault is decided without `debug`: by the program's outputs beside those of the quantised model in
PyTorch, and by the TOSA reference model.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk import npz
from ethosu_sdk.simulators import host
from ethosu_sdk.simulators.host.npu_model import NpuModel
from tests.integration.debug.models.planted_faults import OUTPUTS
from tests.integration.debug.models.ten_networks import NETWORKS
from tests.integration.debug.networks import Seen, debug
from tests.oracles.tosa import TosaModel

pytestmark = [pytest.mark.torch, pytest.mark.toolchain]

MODELS = Path(__file__).with_name("models")
TARGETS = ("ethos-u55-128", "ethos-u85-256")
# The operator at which each fault is, and whether it is the TOSA graph that is wrong or what Vela makes of it.
FAULTS = {
    "weights": ("CONV2D", "vela"),
    "bias": ("CONV2D", "vela"),
    "scale": ("CONV2D", "lowering"),
    "zero_point": ("CONV2D", "lowering"),
    "clamp": ("CLAMP", "vela"),
    "relu": ("CLAMP", "lowering"),
    "joined": ("CONCAT", "lowering"),
    "table": ("TABLE", "lowering"),
    "turned": ("TRANSPOSE", "lowering"),
    "cut": ("SLICE", "lowering"),
}


def outputs(seen: Seen, name: str, runner: Path, execute: host.Delegate | None = None) -> list[Any]:
    """The program's outputs for its example inputs; `execute` computes its delegates."""
    content = npz.read_npz(seen.folder / f"{name}.io.npz")
    given = [content[f"input{index}"] for index in range(sum(key.startswith("input") for key in content))]
    return list(host.run_pte(runner, seen.folder / f"{name}.pte", given, execute or NpuModel()))


def expected(seen: Seen, name: str) -> list[NDArray[Any]]:
    """The outputs of the quantised model in PyTorch."""
    content = npz.read_npz(seen.folder / f"{name}.io.npz")
    return [content[f"output{index}"] for index in range(sum(key.startswith("output") for key in content))]


@pytest.fixture(scope="module", params=TARGETS)
def ten(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("ten")
    return debug(MODELS / "ten_networks.py", folder, "--target", request.param)


@pytest.fixture(scope="module", params=TARGETS)
def faulty(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("faulty")
    return debug(f"{MODELS / 'planted_faults.py'}:faulty", folder, "--target", request.param)


def same(seen: Seen, name: str, runner: Path) -> list[bool]:
    """Whether each output of the program is that of the quantised model, as near as rounding allows."""
    found = outputs(seen, name, runner)
    steps = [np.unique(np.diff(np.unique(np.asarray(row)))) for row in expected(seen, name)]
    return [
        bool(np.abs(ours - theirs).max() <= 1.5 * step.min(initial=np.inf))
        for ours, theirs, step in zip(found, expected(seen, name), steps, strict=True)
    ]


def against_the_quantised_model(seen: Seen) -> dict[str, Any]:
    found: dict[str, Any] = next(row for row in seen.record["comparisons"] if row["against"] == "quantised")
    return found


def test_nothing_breaks_in_networks_that_are_right(ten: Seen, host_runner: Path) -> None:
    assert all(same(ten, "ten_networks", host_runner))
    found = against_the_quantised_model(ten)
    assert "first_break" not in found
    assert "largest_drop" not in found
    blamed = {row["source"]["module"].partition(".")[0] for row in ten.layers if "quantised" in row and row["source"].get("module")}
    assert blamed >= set(NETWORKS)
    assert all(row["quantised"]["differing"] == 0 for row in ten.layers if "quantised" in row)


def breaks(seen: Seen) -> dict[str, str]:
    """The operator that is blamed in each branch; a branch in which several are is wrong."""
    found = against_the_quantised_model(seen)
    named = {}
    for step in found["breaks"]:
        layer = seen.layers[step["layer"]]
        branch = layer["source"]["module"].partition(".")[0]
        assert branch not in named
        named[branch] = step["misplaced"]["operator"] if "misplaced" in step else layer["tosa"]["operator"]
    return named
