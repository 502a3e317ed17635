"""The network that is advised on, and what becomes of it: each is compiled, run on the host and profiled once."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk.base import filesystem
from ethosu_sdk.records import validation
from tests.integration.cli import sdk_ok

Record = dict[str, Any]
AS_WRITTEN = "--as-written"  # what the rules see, `compile` mends by itself otherwise

# NCHW, a linear layer behind a feature map, weights in flash.
MODEL = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 32, 3, padding=1)
        self.b = nn.Conv2d(32, 32, 3, stride=2, padding=1)
        self.fc = nn.Linear(32 * 8 * 8, 10)

    def forward(self, x):
        x = torch.relu(self.b(torch.relu(self.a(x))))
        return self.fc(FLATTEN)


torch.manual_seed(3)
model = Net().eval()
samples = torch.randn(5, 1, 3, 16, 16)
example_inputs = (samples[0],)
calibration = [(sample,) for sample in samples]
"""


def model(*lines: str, flatten: bool = True) -> str:
    """The network's file with `lines` behind it; without `flatten` its last layer takes the feature map itself."""
    return "\n".join([MODEL.replace("FLATTEN", "x.flatten(1)" if flatten else "x"), *lines, ""])


@dataclass(frozen=True)
class Advised:
    """A run that was advised on: the record of `advise`, the profile's, and the folder."""

    folder: Path
    advice: Record
    profile: Record

    @property
    def npu_cycles(self) -> int:
        """Modelled, of an inference."""
        cycles = self.profile["totals"]["npu"]["cycles"]
        return next(int(row["value"]) for row in cycles if row["source"] == "modelled")

    def find(self, rule: str) -> list[Record]:
        """What the rule advises."""
        return [row for row in self.advice["advice"] if row["rule"] == rule]

    def one(self, rule: str) -> Record:
        """The one advice of the rule."""
        (found,) = self.find(rule)
        return found

    def expected(self, rule: str, metric: str) -> tuple[float, float]:
        """Before and after, as the rule says."""
        row = self.one(rule)
        (change,) = [row for row in (*row["gains"], *row["costs"]) if row["metric"] == metric]
        return change["before"], change["after"]


def compiled(folder: Path, command: str, out: str) -> Path:
    """Follow a command line of an advice in `folder`, as it stands, into the folder `out`: the program."""
    words = shlex.split(command)
    assert words[:2] == ["ethosu-sdk", "compile"]
    sdk_ok(*words[1:], "-o", out, "-q", cwd=folder)
    (program,) = (folder / out).glob("*.pte")
    return program


def advised(subject: str | Path, folder: Path, out: str, *options: str) -> Advised:
    """Compile and run `subject` on the host, and ask for advice; all of it lies in `folder`/`out`."""
    place = folder / out
    with filesystem.locked_folder(folder):
        if not (place / "advice.json").is_file():
            sdk_ok("run", subject, "--simulator", "host", *options, "-o", out, "-q", cwd=folder)
            sdk_ok("advise", out, "-q", cwd=folder)
    return read(place)


def read(place: Path) -> Advised:
    """What lies in a folder that was advised on."""
    advice = json.loads((place / "advice.json").read_text(encoding="utf-8"))
    assert validation.record_problems(advice) == []
    return Advised(place, advice, json.loads((place / "profile.json").read_text(encoding="utf-8")))


# Between its delegates on Ethos-U55 the CPU computes four activations.
MIXED = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 8, 3, padding=1)
        self.b = nn.Conv2d(8, 8, 3, stride=4, padding=1)
        self.c, self.mish = nn.Conv2d(8, 8, 1), nn.Mish()
        self.d, self.softplus = nn.Conv2d(8, 8, 1), nn.Softplus()
        self.e, self.logsigmoid = nn.Conv2d(8, 8, 1), nn.LogSigmoid()
        self.f, self.shrink = nn.Conv2d(8, 8, 1), nn.Softshrink()
        self.g, self.fc = nn.Conv2d(8, 8, 4), nn.Conv2d(8, 4, 1)

    def forward(self, x):
        x = torch.relu(self.b(self.a(x)))
        x = self.softplus(self.d(self.mish(self.c(3 * x))))
        x = self.shrink(self.f(self.logsigmoid(self.e(x))))
        return self.fc(self.g(x))


torch.manual_seed(3)
model = Net().eval()
with torch.no_grad():  # so that the output tells of every module in front of it
    for layer in (model.b, model.c, model.d, model.e, model.f, model.g):
        layer.weight.mul_(3)
samples = torch.randn(5, 1, 3, 16, 16)
example_inputs = (samples[0],)
calibration = [(sample,) for sample in samples]
"""
REPLACED = ("mish", "softplus", "logsigmoid", "shrink")
