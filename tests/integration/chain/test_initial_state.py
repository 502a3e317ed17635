"""A model that keeps a state from inference to inference: the program begins where the model began."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import warm
from tests.integration.cli import sdk, sdk_ok
from tests.records import printed

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]

MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 3, 3, padding=1)
        self.register_buffer("state", torch.linspace(-0.5, 0.5, 24).reshape(1, 3, 8))

    def forward(self, x):
        c = self.conv(x)
        y = torch.relu(c) + self.state
        self.state.copy_(0.5 * c)
        return y

torch.manual_seed(0)
model = Net().eval()
samples = torch.randn(6, 1, 2, 8)
example_inputs = (samples[0],)
calibration = [(sample,) for sample in samples[1:]]
"""
# PyTorch in a process of its own, from the initial state: three inferences in turn.
REFERENCE = """
import numpy, net
numpy.savez("in.npz", input0=net.samples[:3].numpy())
numpy.savez("want.npz", output0=[net.model(x).detach().numpy() for x in net.samples[:3]])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("state")
    (place / "net.py").write_text(MODEL)
    warm.python("-c", REFERENCE, cwd=place)
    return place


@pytest.mark.parametrize(("quantize", "share", "limit"), [("none", 1.0, 1e-5), ("int8", 0.9, 0.05)])
def test_every_inference_goes_on_from_the_one_before(
    quantize: str, share: float, limit: float, folder: Path
) -> None:
    """With int8 the calibration clips the outermost values: most elements must be near."""
    outcome = sdk_ok("compile", "net.py", "--quantize", quantize, "-o", quantize, "--json", cwd=folder)
    assert json.loads(outcome.out)["check"]["status"] == "pass"
    outputs = {}
    for simulator in ("qemu", "host"):
        command = (
            "run",
            f"{quantize}/net.pte",
            "--inputs",
            "in.npz",
            "--simulator",
            simulator,
            "-o",
            quantize,
        )
        sdk_ok(*command, cwd=folder)
        outputs[simulator] = np.load(folder / quantize / "outputs.npz")["output0"]
        distances = np.abs(outputs[simulator] - np.load(folder / "want.npz")["output0"])
        for number, inference in enumerate(distances):
            assert np.quantile(inference, share) < limit, f"inference {number}"
    np.testing.assert_allclose(outputs["qemu"], outputs["host"], rtol=1e-6)


@pytest.fixture(scope="module")
def program(folder: Path) -> Path:
    sdk_ok("compile", "net.py", "-o", "repeated", cwd=folder)
    return folder / "repeated" / "net.pte"


@pytest.mark.parametrize("simulator", ["qemu", "host"])
def test_repeats_begin_with_the_state_that_the_program_brings(
    simulator: str, folder: Path, program: Path
) -> None:
    once = run(folder, program, simulator)
    again = run(folder, program, simulator, "--repeat", "3")
    assert again["repeats"]["state"] == "reset"
    assert again["repeats"]["outputs"] == {"agree": True, "changed": 0}
    assert again["outputs"] == once["outputs"]
    kept = run(folder, program, simulator, "--repeat", "3", "--keep-state")
    assert kept["repeats"]["state"] == "kept"
    assert kept["repeats"]["outputs"]["changed"] == 2
    assert kept["outputs"] == once["outputs"]


def test_a_sequence_is_not_repeated_set_by_set(folder: Path, program: Path) -> None:
    outcome = sdk("run", program, "--inputs", "in.npz", "--repeat", "2", "-o", "sequence", cwd=folder)
    assert outcome.code == 2
    assert "3 sets of inputs are a sequence" in outcome.err
    assert "--keep-state" in outcome.err


def test_arms_runner_gives_the_same_for_a_program_with_a_state(folder: Path, program: Path) -> None:
    """It prints ``aten::copy_.`` for an operator whose overload has no name."""
    record = run(folder, program, "qemu", "--runtime", "both")
    assert record["status"] == "pass"


def run(folder: Path, program: Path, simulator: str, *options: str) -> dict[str, Any]:
    """The record of a run that passes."""
    outcome = sdk("run", program, "--simulator", simulator, "-o", "out", "--json", *options, cwd=folder)
    return printed(outcome)
