"""The lines of a compilation are the user's: in the record, in `profile`'s rows and in the delegation table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli import sdk_ok
from tests.records import read

pytestmark = pytest.mark.torch

PACKAGE = """
from torch import nn

class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        return self.conv(x)  # the package's
"""
MODEL = """
import pathlib
import sys

import torch
from torch import nn

sys.path.append(str(pathlib.Path(__file__).parent / "site-packages"))
import packnets

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 1)

    def helped(self, x):
        return x + x  # of the helper

    def forward(self, x):
        return self.helped(self.conv(x))  # of the block

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 4, 3))
        self.blocks = nn.ModuleList([Block(), Block()])
        self.cell = packnets.Cell()

    def forward(self, x):
        x = self.first(x)  # of the stem
        for block in self.blocks:
            x = block(x)
        x = self.cell(x)  # calls the package
        return torch.topk(x.flatten(1), 2)  # on the CPU

net = Net()
packed = nn.Sequential(nn.Conv2d(3, 4, 3), packnets.Cell())  # constructed
example_inputs = (torch.rand(1, 3, 8, 8),)
"""

Record = dict[str, Any]


def _line(text: str, mark: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if line.endswith(f"# {mark}"))


def _compiled(folder: Path, entry: str) -> Record:
    (folder / "net.py").write_text(MODEL, encoding="utf-8")
    (folder / "site-packages").mkdir()
    (folder / "site-packages" / "packnets.py").write_text(PACKAGE, encoding="utf-8")
    sdk_ok("compile", f"net.py:{entry}", "--no-check", "-q", "-o", "out", cwd=folder)
    record = read(folder / "out" / "net.compile.json")
    assert isinstance(record, dict)
    return record


def _places(record: Record) -> set[tuple[str, str, int, str | None, str | None]]:
    """Module, file, line, function and package of each operation of the NPU that has a source."""
    sources = [row["source"] for part in record["delegates"] for row in part["operations"] if "source" in row]
    return {
        (row["module"], row["file"], row["line"], row.get("function"), row.get("package")) for row in sources
    }


def test_a_models_lines_have_function_and_module(tmp_path: Path) -> None:
    record = _compiled(tmp_path, "net")
    places = _places(record)
    block, helper = _line(MODEL, "of the block"), _line(MODEL, "of the helper")
    assert places >= {
        ("first.0", "net.py", _line(MODEL, "of the stem"), "Net.forward", None),
        ("blocks.1.conv", "net.py", block, "Block.forward", None),
        ("blocks.1", "net.py", helper, "Block.helped", None),
        ("cell.conv", "net.py", _line(MODEL, "calls the package"), "Net.forward", None),
    }
    assert {file for _, file, *_ in places} == {"net.py"}
    (row,) = [row for row in record["cpu_operators"] if row["name"] == "aten::topk.values"]
    assert row["sites"][0]["source"]["function"] == "Net.forward"
    assert row["sites"][0]["source"]["line"] == _line(MODEL, "on the CPU")
    assert "getitem" not in {row["operator"] for row in record["delegation"]}
    assert sum(row["not_delegated"] for row in record["delegation"]) == sum(
        row["calls"] for row in record["cpu_operators"]
    )


def test_code_of_a_package_has_its_line_and_torchs_has_none(tmp_path: Path) -> None:
    places = _places(_compiled(tmp_path, "packed"))
    cell = ("1.conv", "packnets.py", _line(PACKAGE, "the package's"), "Cell.forward", "packnets")
    assert places == {("0", "net.py", _line(MODEL, "constructed"), None, None), cell}


def test_the_zoos_lines_are_those_of_the_zoo(tmp_path: Path) -> None:
    sdk_ok("compile", "zoo:digits_cnn", "--no-check", "-q", "-o", "out", cwd=tmp_path)
    record = read(tmp_path / "out" / "digits_cnn.compile.json")
    places = _places(record)
    assert {(file, package) for _, file, _, _, package in places} == {
        ("ethosu_sdk/compile/zoo/digits.py", "ethosu_sdk")
    }
