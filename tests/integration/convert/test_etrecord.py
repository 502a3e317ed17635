"""`compile --etrecord`: with it, ExecuTorch's Inspector finds the module and line of every event of `convert`."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.records import validation
from tests import warm
from tests.integration.cli import sdk_ok
from tests.integration.convert.reading import convert
from tests.places import ROOT
from tests.records import read

# Pooling by a stride above 3 is no operator of an Ethos-U55: there are two delegates.
MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem_conv = torch.nn.Conv2d(1, 4, 3)
        self.stem_pool = torch.nn.AvgPool2d(7, stride=7)
        self.head_conv = torch.nn.Conv2d(4, 4, 1)
        self.head_linear = torch.nn.Linear(16, 3)

    def forward(self, x):
        x = self.stem_conv(x)
        x = self.stem_pool(x)
        x = self.head_conv(x)
        return self.head_linear(x.flatten(1))

torch.manual_seed(0)
model = Net()
example_inputs = (torch.rand(1, 1, 16, 16),)
"""
DELEGATED = ("stem_conv", "head_conv", "head_linear")

pytestmark = [pytest.mark.torch, pytest.mark.toolchain]

Record = dict[str, Any]


def _compiled(folder: Path, *options: str) -> bytes:
    """The program of MODEL, compiled into ``run`` below `folder`, which is as its manifest says."""
    (folder / "net.py").write_text(MODEL, encoding="utf-8")
    sdk_ok("compile", "net.py", "--as-written", "--no-check", "-q", "-o", "run", *options, cwd=folder)
    sdk_ok("validate", "run", cwd=folder)
    return (folder / "run" / "net.pte").read_bytes()


def _profiled(folder: Path) -> Record:
    """The profile of the program in ``run``."""
    for words in (("run", "run/net.pte", "--simulator", "host", "-o", "run"), ("profile", "run")):
        sdk_ok(*words, "-q", cwd=folder)
    return read(folder / "run" / "profile.json")


def _inspected(folder: Path) -> Record:
    """What the Inspector tells of the run with its ETRecord."""
    convert(folder / "run", "etdump", folder)
    words = ("converted", "run/net.etrecord", "stem_pool", *DELEGATED)
    child = ROOT / "tests" / "integration" / "convert" / "etrecord_child.py"
    done = warm.python(child, *words, cwd=folder)
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert isinstance(found, dict)
    return found


def test_the_inspector_finds_module_and_line_of_every_operation(tmp_path: Path) -> None:
    program = _compiled(tmp_path, "--etrecord")
    assert read(tmp_path / "run" / "net.compile.json")["files"]["etrecord"] == "net.etrecord"
    profile = _profiled(tmp_path)
    found = _inspected(tmp_path)
    _check_totals(profile, found)
    _check_origins(profile, found["events"])
    assert all(row["op_types"] == [] for row in found["bare"])
    # A compilation without the option makes the same program, and takes the other's record away.
    assert _compiled(tmp_path) == program
    assert not (tmp_path / "run" / "net.etrecord").exists()
    record = read(tmp_path / "run" / "net.compile.json")
    assert "etrecord" not in record["files"]
    assert validation.record_problems(record) == []


def _check_totals(profile: Record, found: Record) -> None:
    """Each cycle of the profile is in one event; those of a module are what the profile says of its rows."""
    (total,) = [row["value"] for row in profile["totals"]["npu"]["cycles"] if row["source"] == "modelled"]
    assert sum(sum(row["cycles"]) for row in found["events"]) == total
    cycles: Counter[str] = Counter()
    for row in profile["operations"]:
        if row["runs_on"] == "NPU":
            cycles[row["source"]["module"]] += row["calls"] * row["cycles"][0]["value"]
    assert set(cycles) == set(DELEGATED)
    assert found["modules"] == {"stem_pool": 0, **cycles}


def _check_origins(profile: Record, events: list[Record]) -> None:
    """Each operation has its module and its line in the model, each start of a delegate has none."""
    rows = {row["index"]: row for row in profile["operations"] if row["runs_on"] == "NPU"}
    assert len({row["instruction"] for row in rows.values()}) == 2
    lines = MODEL.splitlines()
    operations = [row for row in events if not row["name"].startswith("start of delegate")]
    assert len(operations) == len(rows) == len(events) - 2
    for event in operations:
        row = rows[int(event["name"].split()[0])]
        module = row["source"]["module"]
        assert event["instruction"] == row["instruction"]
        assert event["backend"] == "EthosUBackend"
        kind = "linear" if "linear" in module else "convolution"
        if row["tosa"]["operator"] == "CONV2D":
            assert any(kind in name for name in event["op_types"])
        assert module in {name.rpartition(".")[2] for name in event["modules"]}
        (line,) = [number for number, text in enumerate(lines, 1) if f"self.{module}(" in text]
        # Of the nodes with the operator's handle the first is the operator; conversions behind it have other lines.
        assert f'net.py", line {line}, in forward' in event["traces"][0]
