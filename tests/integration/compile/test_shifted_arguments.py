"""Tensors that only take their shape from another one are constants: the delegate is not given that one."""

import json
from pathlib import Path

import pytest

from tests.integration.cli import sdk, sdk_ok
from tests.records import read

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]

MODEL = """
import torch
from torch import nn
{fault}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(32, 8)

    def forward(self, x):
        scale = torch.ones_like(x).mean(1, keepdim=True)
        offset = torch.zeros_like(x).mean(1, keepdim=True)
        patches = self.first(x.unfold(1, 8, 8))
        return self.last(patches.transpose(1, 2).flatten(2)).transpose(1, 2) * scale + offset

torch.manual_seed(0)
model = Net().eval()
samples = torch.randn(6, 1, 32, 3)
example_inputs = (samples[0],)
calibration = [(sample,) for sample in samples[1:]]
"""
AS_IT_WAS = """
from ethosu_sdk.compile.rewrite import before_quantisation
before_quantisation.fill_from_shapes = lambda program: program
"""


def test_a_model_that_normalises_by_ones_runs(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MODEL.format(fault=""))
    outcome = sdk_ok("run", "net.py", "-o", "out", "--json", cwd=tmp_path)
    assert json.loads(outcome.out)["status"] == "pass"
    assert read(tmp_path / "out" / "net.compile.json")["check"]["status"] == "pass"


def test_an_input_that_gets_lost_is_refused_with_a_place(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MODEL.format(fault=AS_IT_WAS))
    outcome = sdk("compile", "net.py", "--as-written", "-o", "out", cwd=tmp_path)
    assert outcome.code == 3, outcome.err
    assert "passes 4 tensors to delegate 0, but its commands use 3" in outcome.err
    assert "net.py, line " in outcome.err
    assert not (tmp_path / "out" / "net.pte").exists()
