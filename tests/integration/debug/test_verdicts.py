"""What `debug` blames, and what not: ten networks whose programs are right, and ten faults in another.

Whether there is a fault is decided without `debug`: by the program's outputs beside those of the quantised model in
PyTorch, and by the TOSA reference model.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk.base import npz
from ethosu_sdk.compile.graphs import tosa_graph
from ethosu_sdk.simulate import host_runtime
from ethosu_sdk.simulate.host_runtime import NpuModel
from tests.conftest import KeptFolder
from tests.integration.debug.models.planted_faults import OUTPUTS
from tests.integration.debug.models.ten_networks import NETWORKS
from tests.integration.debug.networks import Seen, kept_seen
from tests.oracles.tosa import TosaModel

pytestmark = [pytest.mark.torch, pytest.mark.toolchain]

MODELS = Path(__file__).with_name("models")
TARGETS = ("ethos-u55-128", "ethos-u85-256")
MOST_STEPS = 1.5
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


Array = NDArray[Any]


def numbered(content: dict[str, Array], kind: str) -> list[Array]:
    """The arrays ``input0`` … or ``output0`` … in their order."""
    return [content[f"{kind}{index}"] for index in range(sum(name.startswith(kind) for name in content))]


def off(seen: Seen, name: str, runner: Path, execute: host_runtime.Delegate) -> list[bool]:
    """Of each output of a program, with its delegates computed by `execute`, whether it is more than a step from the
    quantised model's."""
    content = npz.read_npz(seen.folder / f"{name}.io.npz")
    found = host_runtime.run_pte(runner, seen.folder / f"{name}.pte", numbered(content, "input"), execute)
    rows = []
    for ours, theirs in zip(found, numbered(content, "output"), strict=True):
        steps = np.diff(
            np.unique(theirs)
        )  # of values that are stored in 8 bits: the least is a step, or several
        rows.append(bool(np.abs(ours - theirs).max() > MOST_STEPS * steps[steps > steps.max() / 1000].min()))
    return rows


def of_the_reference_model(seen: Seen, tosa: TosaModel) -> host_runtime.Delegate:
    """Delegates as their TOSA graphs say."""
    return lambda call: tosa.run((seen.folder / f"delegate{call.index}.tosa").read_bytes(), call.inputs)


def quantised(seen: Seen) -> dict[str, Any]:
    """The comparison with the quantised model."""
    found: dict[str, Any] = next(row for row in seen.record["comparisons"] if row["against"] == "quantised")
    return found


@pytest.fixture(scope="module", params=TARGETS)
def ten(request: pytest.FixtureRequest, kept_folder: KeptFolder) -> Seen:
    """The networks that are right."""
    text = (MODELS / "ten_networks.py").read_text(encoding="utf-8")
    return kept_seen(kept_folder, "ten_networks", text, "", "--target", request.param)


@pytest.fixture(scope="module", params=TARGETS)
def faulty(request: pytest.FixtureRequest, kept_folder: KeptFolder) -> Seen:
    """The network with ten faults."""
    text = (MODELS / "planted_faults.py").read_text(encoding="utf-8")
    return kept_seen(kept_folder, "planted_faults", text, ":faulty", "--target", request.param)


def test_nothing_breaks_in_networks_that_are_right(ten: Seen, host_runner: Path) -> None:
    assert not any(off(ten, "ten_networks", host_runner, NpuModel()))
    found = quantised(ten)
    assert "first_break" not in found
    assert "largest_drop" not in found
    compared = [row for row in ten.layers if "quantised" in row]
    assert all(row["quantised"]["differing"] == 0 for row in compared)
    # They are compared, not passed over: all that the model quantises, in each network.
    reasons = [row.get("reason", "") for row in ten.layers]
    assert not [reason for reason in reasons if "not comparable" in reason]
    assert {row.get("source", {}).get("module", "").partition(".")[0] for row in compared} >= set(NETWORKS)
    assert "no layer falls below 20 dB" in ten.shown


def test_each_fault_is_named_at_its_operator(faulty: Seen, host_runner: Path, tosa: TosaModel) -> None:
    by_npu = off(faulty, "planted_faults", host_runner, NpuModel())
    by_graph = off(faulty, "planted_faults", host_runner, of_the_reference_model(faulty, tosa))
    wrong = {name: stage for name, (_, stage) in FAULTS.items()}
    assert dict(zip(OUTPUTS, by_npu, strict=True)) == dict.fromkeys(wrong, True)
    assert dict(zip(OUTPUTS, by_graph, strict=True)) == {name: wrong[name] == "lowering" for name in OUTPUTS}
    found = quantised(faulty)
    named = []
    for step in (found["first_break"], *found["further_breaks"]):
        layer = faulty.layers[step["layer"]]
        branch = layer["source"]["module"].partition(".")[0]
        tensor = step["misplaced"]["tensor"] if "misplaced" in step else step["tensor"]
        named.append((branch, operator_of(faulty.folder / f"delegate{layer['delegate']}.tosa", tensor)))
    assert sorted(named) == sorted((branch, operator) for branch, (operator, _) in FAULTS.items())
    assert "the NPU does not compute what the quantised model does" in faulty.shown


def operator_of(graph: Path, tensor: str) -> str:
    """The operator that computes a tensor of a TOSA graph, ahead of what only scales or turns the result."""
    makers = {name: row for row in tosa_graph.read_operators(graph.read_bytes()) for name in row.outputs}
    row = makers[tensor]
    while row.name in ("RESCALE", "TRANSPOSE") and row.inputs[0] in makers:
        row = makers[row.inputs[0]]
    return row.name
