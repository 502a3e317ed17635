"""The network that these tests look into: convolutions, a concatenation, a skip, pooling and attention."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk import npz, schema
from tests.integration.cli import Outcome, sdk

MODEL = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU())
        self.one, self.three = nn.Conv2d(16, 8, 1), nn.Conv2d(16, 16, 3, padding=1)
        self.mix = nn.Conv2d(24, 16, 1)
        self.pool = nn.MaxPool2d(2)
        self.qkv, self.head = nn.Linear(16, 48), nn.Linear(16, 5)

    def forward(self, x):
        x = self.first(x)
        x = x + self.mix(torch.cat([torch.relu(self.one(x)), self.three(x)], 1))
        tokens = self.pool(x).flatten(2).transpose(1, 2)
        q, k, v = self.qkv(tokens).chunk(3, -1)
        tokens = tokens + torch.softmax(q @ k.transpose(1, 2) / 4, -1) @ v
        return self.head(tokens.mean(1))


torch.manual_seed(5)
model = Net().eval()
samples = torch.randn(9, 1, 3, 12, 10)
example_inputs = (samples[0],)
calibration = [(sample,) for sample in samples]
"""


@dataclass(frozen=True)
class Seen:
    """What `debug` wrote: its record, its folder, what it showed, and the arrays of its dump."""

    record: dict[str, Any]
    folder: Path
    outcome: Outcome
    arrays: dict[str, Any]

    @property
    def layers(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.record["layers"]
        return rows


def debug(subject: str | Path, folder: Path, *options: str) -> Seen:
    """`ethosu-sdk debug` with its results in `folder`."""
    dump = folder / "dump.npz"
    outcome = sdk("debug", subject, "--dump", dump, "-o", folder, *options, cwd=folder, timeout_s=900)
    assert outcome.code == 0, outcome.err
    record = json.loads((folder / "debug.json").read_text(encoding="utf-8"))
    assert schema.problems(record) == []
    return Seen(record, folder, outcome, npz.read_npz(dump))
