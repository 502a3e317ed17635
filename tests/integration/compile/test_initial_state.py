"""A model that keeps a state from inference to inference: the program begins where the model began."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.integration.cli import sdk

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
    subprocess.run([sys.executable, "-c", REFERENCE], cwd=place, check=True, timeout=120)
    return place


@pytest.mark.parametrize(("quantize", "share", "limit"), [("none", 1.0, 1e-5), ("int8", 0.9, 0.05)])
def test_every_inference_goes_on_from_the_one_before(
    quantize: str, share: float, limit: float, folder: Path
) -> None:
    """With int8 the calibration clips the outermost values: most elements must be near."""
    outcome = sdk("compile", "net.py", "--quantize", quantize, "-o", quantize, "--json", cwd=folder)
    assert outcome.code == 0, outcome.err
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
        outcome = sdk(*command, cwd=folder)
        assert outcome.code == 0, outcome.err
        outputs[simulator] = np.load(folder / quantize / "outputs.npz")["output0"]
        distances = np.abs(outputs[simulator] - np.load(folder / "want.npz")["output0"])
        for number, inference in enumerate(distances):
            assert np.quantile(inference, share) < limit, f"inference {number}"
    np.testing.assert_allclose(outputs["qemu"], outputs["host"], rtol=1e-6)
