"""Sweeps as users start them, and what they leave, read without the SDK's own readers."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyarrow import parquet

from ethosu_sdk.base import proc
from tests.integration.cli import COMMAND, Outcome, sdk
from tests.records import read

LONGEST_S = 900.0
VOLATILE = "seconds"
_ACCEPTS = 1 << 16  # __SO_ACCEPTCON of a Unix socket

# Layers that Vela places, and a product of two tensors that are both broadcast, which Ethos-U55 and U65 cannot.
NET = """
import torch
from scale import SCALE


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.head = torch.nn.Linear(8 * 4 * 4, 5)

    def forward(self, x):
        y = torch.relu(self.conv(x)) * SCALE
        y = y + y.mean(3, keepdim=True) * y.mean(2, keepdim=True)
        return self.head(torch.nn.functional.avg_pool2d(y, 2).flatten(1))


model = Net()
example_inputs = (torch.linspace(-1, 1, 192).reshape(1, 3, 8, 8),)
"""
SCALE = "SCALE = 0.5\n"

SMALL = """
name = "small"
models = ["zoo:add"]
targets = ["ethos-u55-*"]
memory_modes = ["*"]
simulators = ["host"]
"""


def write(folder: Path, text: str, name: str = "sweep.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def sweep(file: Path, out: Path, *options: str) -> Outcome:
    return sdk("sweep", file, "-o", out, *options, cwd=file.parent, timeout_s=LONGEST_S)


def rows(out: Path) -> list[dict[str, Any]]:
    """The rows of a sweep, without what differs from time to time."""
    found: list[dict[str, Any]] = parquet.read_table(out / "cells.parquet").to_pylist()
    return [{name: value for name, value in row.items() if name != VOLATILE} for row in found]


def by_cell(out: Path) -> dict[str, dict[str, Any]]:
    return {row["cell"]: row for row in rows(out)}


def record(out: Path) -> dict[str, Any]:
    value = read(out / "sweep.json")
    assert isinstance(value, dict)
    return value


def start(file: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    """A sweep that goes on, in a session of its own as a terminal would give it."""
    return subprocess.Popen(
        [COMMAND, "sweep", str(file), "-o", str(out), *options],
        cwd=file.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def wait_for(true: Callable[[], object], what: str, timeout_s: float = LONGEST_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline, f"{what} did not come to be"
        time.sleep(0.05)


def finished(out: Path) -> list[Path]:
    return sorted((out / "cells").glob("[0-9a-f]*/cell.json"))


def alive(pids: list[int]) -> list[int]:
    """Those of `pids` that run still; what is dead and not yet reaped does not count."""
    return [pid for pid in pids if _state(pid) not in ("", "Z", "X")]


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return ""


def family(process: subprocess.Popen[str]) -> list[int]:
    return proc.descendants(process.pid)


def warm(process: subprocess.Popen[str]) -> list[int]:
    """The processes in which models are lowered, compiled and run; those that end others come first."""
    return [pid for pid in family(process) if b"ethosu_sdk.base.forks" in _words(pid)]


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def listening(pids: list[int]) -> set[str]:
    """Where processes accept connections: ``IP:PORT`` for TCP, names of Unix sockets, ``@NAME`` for abstract ones."""
    inodes = {inode for pid in pids for inode in _sockets(pid)}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
            part = line.split()
            if part[3] == "0A" and part[9] in inodes:
                address, _, port = part[1].partition(":")
                found.add(f"{'127.0.0.1' if address == '0100007F' else address}:{int(port, 16)}")
    for line in Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()[1:]:
        part = line.split()
        if part[6] in inodes and int(part[3], 16) & _ACCEPTS:
            found.add(part[7] if len(part) > 7 else "")
    return found


def _sockets(pid: int) -> list[str]:
    try:
        links = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return []
    return [link[8:-1] for link in links if link.startswith("socket:[")]
