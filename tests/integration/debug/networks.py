"""The network that these tests look into: convolutions, a concatenation, a skip, pooling and attention."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk.base import npz
from tests.conftest import KeptFolder
from tests.integration.cli import sdk_ok
from tests.records import valid

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
    shown: str
    arrays: dict[str, Any]

    @property
    def layers(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.record["layers"]
        return rows


def debug(subject: str | Path, folder: Path, *options: str) -> Seen:
    """`ethosu-sdk debug` with its results in `folder`."""
    words = ("debug", subject, "--dump", "dump.npz", "-o", folder, *options)
    outcome = sdk_ok(*words, cwd=folder, timeout_s=900)
    (folder / "shown.txt").write_text(outcome.out, encoding="utf-8")
    return seen(folder)


def seen(folder: Path) -> Seen:
    """What :func:`debug` left in a folder."""
    record = valid(folder / "debug.json")
    shown = (folder / "shown.txt").read_text(encoding="utf-8")
    return Seen(record, folder, shown, npz.read_npz(folder / "dump.npz"))


def kept_seen(kept_folder: KeptFolder, name: str, text: str, entry: str, *options: str) -> Seen:
    """The same, of a model's file with `text` and its `entry`, kept between runs."""

    def make(folder: Path) -> None:
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
        debug(f"{name}.py{entry}", folder, *options)

    return seen(kept_folder(f"debug-{name}", make, text, entry, *options, own=True))
