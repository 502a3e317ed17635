"""The program of a Python file is used again until something changes that the file read."""

import subprocess
import sys
from pathlib import Path

import pytest

from ethosu_sdk.base import filesystem
from ethosu_sdk.compile import model_reads
from tests.integration.cli import sdk_ok

NET = """
import os, sys
from pathlib import Path
import torch
import scale

torch.manual_seed(1)
there = Path("bias.txt").exists()
model = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3, bias=there), scale.Scale())
example_inputs = (torch.randn(1, 2, 8, 8),)
"""
SCALE = """
import torch

class Scale(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * {}
"""
_STARTS_A_PROGRAM = "\nimport subprocess\nsubprocess.run(['true'], check=True)\n"


@pytest.mark.qemu
def test_a_file_is_compiled_again_once_something_changed(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NET, encoding="utf-8")
    (tmp_path / "scale.py").write_text(SCALE.format(0.5), encoding="utf-8")
    assert "up to date" not in sdk_ok("run", "net.py", "-v", cwd=tmp_path).err
    again = sdk_ok("profile", "net.py", "-v", cwd=tmp_path).err
    assert "net.pte is up to date" in again
    assert "compiling" not in again
    pte = tmp_path / "build" / "net-ethos-u55-128" / "net.pte"
    before = pte.read_bytes()

    (tmp_path / "scale.py").write_text(SCALE.format(0.75) + _STARTS_A_PROGRAM, encoding="utf-8")
    changed = sdk_ok("run", "net.py", "--simulator", "host", "-v", cwd=tmp_path)
    assert "net.py is compiled again: scale.py has changed" in changed.err
    assert pte.read_bytes() != before
    reads = model_reads.read_reads(pte, filesystem.sha256_file(pte))
    assert reads is not None
    assert model_reads.difference(reads, tmp_path / "net.py") == "it started a program"


READER = """
import os, sqlite3, sys
from pathlib import Path
import numpy as np
import torch
from ethosu_sdk.base import filesystem
from ethosu_sdk.compile import model_reads

recorder = model_reads.Recorder(dict(os.environ))
sys.path.insert(0, os.getcwd())
open("text").read()
np.memmap("array", mode="r")
torch.from_file("tensor", size=4)
torch._C.PyTorchFileReader("archive")
sqlite3.connect("table").close()
list(Path("images").glob("*.png"))
Path("absent").exists() or os.access("refused", os.R_OK)
os.environ.get("READ_HERE")
try:
    import not_there_yet
except ImportError:
    pass
Path("made").write_text("by the model")
Path("made").read_text()
model_reads.write_reads(Path("net.pte"), "0" * 64, recorder.reads(Path("net.py")))
"""
READ = (
    "text",
    "array",
    "tensor",
    "archive",
    "table",
    "images/new.png",
    "absent",
    "refused",
    "not_there_yet.py",
)
NOT_READ = ("made", "other.py", "images.txt")


def test_each_change_of_what_was_read_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "images").mkdir()
    for name in ("text", "array", "tensor", "table"):
        (tmp_path / name).write_bytes(bytes(16) if name != "table" else b"")
    subprocess.run([sys.executable, "-c", "import torch; torch.save(torch.zeros(1), 'archive')"], check=True)
    subprocess.run([sys.executable, "-c", READER], check=True, timeout=120)
    reads = model_reads.read_reads(Path("net.pte"), "0" * 64)
    assert reads is not None
    assert model_reads.read_reads(Path("net.pte"), "1" * 64) is None  # of another program

    def difference() -> str:
        return model_reads.difference(reads, Path("net.py"))

    for name in (*READ, *NOT_READ):
        path = tmp_path / name
        before = path.read_bytes() if path.exists() else None
        path.write_bytes(b"something else")
        assert bool(difference()) == (name in READ), name
        path.unlink() if before is None else path.write_bytes(before)
        assert not difference(), name
    monkeypatch.setenv("NOT_READ", "1")
    assert not difference()
    monkeypatch.setenv("READ_HERE", "1")
    assert difference() == "the variable READ_HERE has changed"
    monkeypatch.delenv("READ_HERE")
    monkeypatch.chdir(tmp_path / "images")
    assert "another folder" in difference()
