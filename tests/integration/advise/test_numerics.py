"""A layer whose eight bits are too few: with the lines that `advise` gives, its SQNR rises, and the network's."""

import json
from pathlib import Path

import pytest

from tests.integration.advise.programs import Advised, Record, read
from tests.integration.cli import sdk_ok

pytestmark = [pytest.mark.torch]

# One channel of `wide` has a value in the hundreds where the image is bright, the others are small; `b` reads those.
MODEL = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 16, 3, padding=1)
        self.wide = nn.Conv2d(16, 16, 3, padding=1)
        self.b = nn.Conv2d(16, 16, 3, padding=1)
        self.fc = nn.Conv2d(16, 10, 1)

    def forward(self, x):
        return self.fc(torch.relu(self.b(self.wide(torch.relu(self.a(x))))))


torch.manual_seed(5)
model = Net().eval()
with torch.no_grad():
    model.a.weight[0], model.a.bias[0] = 1, -20
    model.wide.weight[0], model.wide.weight[1:, 0], model.b.weight[:, 0] = 0, 0, 0
    model.wide.weight[0, 0, 1, 1] = 100
samples = torch.randn(6, 1, 3, 16, 16).clamp(-1, 1)
samples[..., 3:6, 3:6] = 1
example_inputs = (samples[0].to(memory_format=torch.channels_last),)
calibration = [(sample,) for sample in samples]
"""
RULE = "sixteen-bits"
LEAST_RISE_DB = 10.0  # of the network's output
LEAST, MOST = 0.5, 2.0  # of the cycles that 16 bits are expected to cost


def debugged(name: str, text: str, place: Path) -> tuple[Advised, list[Record]]:
    """The advice on a program, and its layers."""
    (place / f"{name}.py").write_text(text, encoding="utf-8")
    sdk_ok("debug", f"{name}.py", "-o", name, "-q", cwd=place)
    sdk_ok("run", f"{name}/{name}.pte", "--simulator", "host", "-o", name, "-q", cwd=place)
    sdk_ok("advise", name, "-q", cwd=place)
    layers: list[Record] = json.loads((place / name / "debug.json").read_text(encoding="utf-8"))["layers"]
    return read(place / name), layers


def _sqnr_db(layers: list[Record], module: str) -> float:
    """Against floating point, of the first layer of the module."""
    return next(
        float(row["float"]["sqnr_db"])
        for row in layers
        if row.get("source", {}).get("module") == module and "float" in row
    )


def test_sixteen_bits(place: Path) -> None:
    before, layers = debugged("spiky", MODEL, place)
    advice = before.one(RULE)
    assert advice["where"] == "b"
    stated, expected = before.expected(RULE, "SQNR")
    after, wider = debugged("wider", "\n".join([MODEL, *advice["code"], ""]), place)
    assert stated == pytest.approx(_sqnr_db(layers, "b"), abs=0.1)
    assert _sqnr_db(wider, "b") >= expected
    assert _sqnr_db(wider, "fc") > _sqnr_db(layers, "fc") + LEAST_RISE_DB
    assert after.find(RULE) == []
    cycles = before.expected(RULE, "NPU cycles")
    assert LEAST < (after.npu_cycles - before.npu_cycles) / (cycles[1] - cycles[0]) < MOST


def test_without_debug_it_says_what_is_missing(plain: Advised) -> None:
    (row,) = [row for row in plain.advice["silent"] if row["rule"] == RULE]
    assert row["state"] == "unknown"
    assert "ethosu-sdk debug MODEL -o" in row["reason"]
