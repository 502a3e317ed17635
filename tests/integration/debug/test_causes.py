"""Why a layer loses much, and which operator to change: one weight spoils the scale of another layer."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.base import npz
from tests.conftest import KeptFolder
from tests.integration.cli import sdk_ok
from tests.integration.debug.networks import Seen, kept_seen
from tests.records import read

pytestmark = [pytest.mark.torch, pytest.mark.toolchain]

# The weight widens the range of `mid`, and of what is joined with the values of `enc`: all of them get its scale.
MODEL = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.down = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU()), nn.Conv2d(8, 16, 3, padding=1)
        self.mid, self.up = nn.Conv2d(16, 16, 3, padding=1), nn.ConvTranspose2d(16, 16, 2, 2)
        self.head = nn.Conv2d(24, 2, 1)

    def forward(self, x):
        a = self.enc(x)
        b = torch.relu(self.down(nn.functional.max_pool2d(a, 2)))
        return self.head(torch.cat([self.up(torch.relu(self.mid(b)) + b), a], 1))


torch.manual_seed(0)
model = Net().eval()
with torch.no_grad():
    model.mid.weight[3, 5, 1, 1] = 220.0
samples = torch.randn(8, 1, 1, 16, 16)
example_inputs = (samples[0],)
calibration = [(sample,) for sample in samples]
"""
LEAST_RISE_DB = 5.0
STEPS = 127  # of the largest weight of a channel


@pytest.fixture(scope="module")
def spoilt(kept_folder: KeptFolder) -> Seen:
    """The network as it is."""
    return kept_seen(kept_folder, "net", MODEL, "", "--as-written", "--advice", "35")


def of_module(seen: Seen, module: str) -> dict[str, Any]:
    """The first compared layer of a module."""
    rows = [row for row in seen.layers if row.get("source", {}).get("module") == module and "float" in row]
    return rows[0]


def output_db(folder: Path) -> float:
    """The program's SQNR beside the untouched model, as `run` and PyTorch have it, without `debug`."""
    import torch

    space: dict[str, Any] = {}
    exec(MODEL, space)
    sdk_ok("run", "net.pte", "--simulator", "host", "-o", ".", "-q", cwd=folder)
    ours = npz.read_npz(folder / "outputs.npz")["output0"].astype(np.float64)
    with torch.no_grad():
        exact = space["model"](*space["example_inputs"]).numpy().astype(np.float64)
    return 10 * math.log10(np.sum(exact**2) / np.sum((ours - exact) ** 2))


def test_figures_are_judged_as_they_are_printed(spoilt: Seen) -> None:
    (found,) = [row["first_break"] for row in spoilt.record["comparisons"] if row["against"] == "float"]
    layer = spoilt.layers[found["layer"]]
    assert found["output_db"] == round(layer["float"]["sqnr_db"], 1) < 20
    assert f"{found['input_db']:.1f} dB → {found['output_db']:.1f} dB" in spoilt.shown
    shown = {round(row["float"]["sqnr_db"], 1) for row in spoilt.layers[: found["layer"]] if "float" in row}
    assert found["input_db"] in shown
    assert min(shown) >= 20


def test_a_scale_that_is_shared_is_the_cause(spoilt: Seen) -> None:
    row = of_module(spoilt, "enc.0")
    assert row["shared"]["module"] == "up"
    assert row["shared"]["through"] == "cat"
    assert "shared" not in of_module(spoilt, "mid")
    used = f"{row['range']['used_share']:.0%}"
    text = re.sub(r"\s+", " ", spoilt.shown)
    assert f"range {used} used: shares its scale with up through cat" in text


def test_the_loss_of_weights(spoilt: Seen) -> None:
    """With a step for each channel, of the largest of its weights."""
    space: dict[str, Any] = {}
    exec(MODEL, space)
    weights = space["model"].down.weight.detach().numpy().astype(np.float64)
    steps = np.abs(weights).max(axis=(1, 2, 3), keepdims=True) / STEPS
    error = np.rint(weights / steps) * steps - weights
    expected = 10 * math.log10(np.sum(weights**2) / np.sum(error**2))
    found = of_module(spoilt, "down")["weights"]
    assert found["elements"] == weights.size
    assert found["sqnr_db"] == pytest.approx(expected, abs=0.2)


def test_the_operator_to_change_is_the_one_that_helps(spoilt: Seen, tmp_path: Path) -> None:
    change = spoilt.record["change"]
    assert (change["module"], change["remedy"]) == ("enc.0", "16 bits")
    before = output_db(spoilt.folder)
    import_line = "from executorch.backends.arm.quantizer import get_symmetric_a16w8_quantization_config"
    (shown,) = re.findall(r"def quantizer\(q\):.*?\(\)\)", re.sub(r"\s+", " ", spoilt.shown))
    (tmp_path / "net.py").write_text(f"{import_line}\n{MODEL}\n{shown}\n", encoding="utf-8")
    sdk_ok("compile", "net.py", "-o", ".", "-q", cwd=tmp_path)
    assert read(tmp_path / "net.compile.json")["options"]["quantizer"]
    assert output_db(tmp_path) > before + LEAST_RISE_DB
