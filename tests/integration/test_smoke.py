"""One path through everything, small: what breaks the product breaks here within the first minutes.

The model is what a user writes, in PyTorch. It is compiled with its chain of comparisons, built into firmware, run on
QEMU and on the host, swept over two targets, and its report is opened in a browser.
"""

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

from tests.integration.browsing import opened
from tests.integration.cli import sdk
from tests.integration.sweep.sweeps import rows, write
from tests.records import Record, printed, read

LONGEST_S = 900
pytestmark = [pytest.mark.smoke, pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]

MODEL = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        y = self.stem(x)
        y = y + torch.sigmoid(self.depthwise(y))
        return self.head(y.mean((2, 3)))


model = Net().eval()
samples = torch.randn(8, 1, 3, 16, 16, generator=torch.Generator().manual_seed(5))
example_inputs = (samples[0],)
calibration = [(sample,) for sample in samples]
"""
SWEEP = """
name = "two"
models = ["net.py"]
targets = ["ethos-u55-128", "ethos-u65-256"]
simulators = ["host"]
"""


def ran(folder: Path, model: str | Path, out: str, *options: str) -> Record:
    """The record of a run that passed, with its results in `out`."""
    words = ("run", model, "-o", folder / out, "--json", *options)
    record = printed(sdk(*words, cwd=folder, timeout_s=LONGEST_S))
    assert record["status"] == "pass"
    return record


def outputs(folder: Path) -> np.ndarray:
    with np.load(folder / "outputs.npz") as arrays:
        return np.asarray(arrays["output0"])


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u85-256"])
def test_a_model_runs_on_qemu_as_on_the_host(tmp_path: Path, target: str, browser: Browser) -> None:
    write(tmp_path, MODEL, "net.py")
    record = ran(tmp_path, "net.py", "board", "--target", target)
    assert record["simulator"]["name"] == "qemu"
    assert record["npu"]["cycles"]["value"] > 0
    board, host, page = (tmp_path / name for name in ("board", "host", "page.html"))
    check = read(board / "net.compile.json")["check"]
    assert (check["status"], [row["status"] for row in check["outputs"]]) == ("pass", ["pass"])
    ran(tmp_path, board / "net.pte", "host", "--simulator", "host")
    np.testing.assert_array_equal(outputs(board), outputs(host), strict=True)
    assert np.unique(outputs(board)).size > 1
    assert sdk("report", board, "-o", page, cwd=tmp_path).code == 0
    with opened(browser, page) as shown:
        shown.assert_fits(page, 1280, "light")
        assert f"{record['npu']['cycles']['value']:,}" in shown.page.inner_text("body")


def test_two_cells_are_swept(tmp_path: Path) -> None:
    write(tmp_path, MODEL, "net.py")
    words = (write(tmp_path, SWEEP), "-o", tmp_path / "two")
    done = sdk("sweep", *words, cwd=tmp_path, timeout_s=LONGEST_S)
    assert done.code == 0, done.err
    assert [row["status"] for row in rows(tmp_path / "two")] == ["pass", "pass"]
