"""Programs that do not fill the NPU: channels that cost nothing, and a smaller NPU that is as fast."""

from pathlib import Path

import pytest

from tests.integration.advise.programs import Advised, Record, advised, compiled

pytestmark = [pytest.mark.torch]

CONVOLUTIONS = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(16, CHANNELS, 3, padding=1), nn.ReLU(), nn.Conv2d(CHANNELS, 16, 3, padding=1)).eval()
example_inputs = (torch.randn(1, 16, 24, 24).to(memory_format=torch.channels_last),)
"""
LINEAR = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 64)).eval()
example_inputs = (torch.randn(1, 256),)
"""
FREE = 0.03  # of a convolution's cycles, that channels may cost which are said to cost nothing
LEAST, MOST = 0.8, 1.25  # of the cycles that a step of channels takes
SAME = 0.05  # of the cycles, that a smaller NPU may cost


def _convolutions(channels: int, place: Path) -> Advised:
    name = f"channels{channels}"
    (place / f"{name}.py").write_text(CONVOLUTIONS.replace("CHANNELS", str(channels)), encoding="utf-8")
    return advised(f"{name}.py", place, name)


def _cycles(run: Advised) -> int:
    """Modelled, of the first convolution."""
    rows: list[Record] = [row for row in run.profile["operations"] if row.get("kind") == "conv"]
    own = [row for row in rows if row["source"]["module"] == "0"]
    return sum(int(part["value"]) for row in own for part in row["cycles"] if part["source"] == "modelled")


@pytest.mark.thorough
def test_channel_steps(place: Path) -> None:
    partial, full, fewer = (_convolutions(channels, place) for channels in (25, 32, 24))
    advice = partial.one("channel-steps")
    assert advice["where"] == "0"
    assert partial.expected("channel-steps", "output channels") == (25, 32)
    assert abs(_cycles(full) - _cycles(partial)) < FREE * _cycles(partial)
    (step,) = [row["value"] for row in advice["evidence"] if "one step" in row["name"]]
    assert LEAST < (_cycles(partial) - _cycles(fewer)) / step < MOST
    assert full.find("channel-steps") == fewer.find("channel-steps") == []


def test_smaller_target(plain: Advised, place: Path) -> None:
    (place / "linear.py").write_text(LINEAR, encoding="utf-8")
    large = advised("linear.py", place, "linear")
    advice = large.one("smaller-target")
    small = advised(compiled(place, advice["command"], "small"), place, "small")
    assert (large.profile["target"]["macs"], small.profile["target"]["macs"]) == (128, 64)
    assert small.npu_cycles < (1 + SAME) * large.npu_cycles
    assert plain.find("smaller-target") == []
