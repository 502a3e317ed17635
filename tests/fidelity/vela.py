"""Vela in versions other than the SDK's own: each in a folder of its own, run as a process, results kept."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ethosu_sdk import vela_blocks
from ethosu_sdk.errors import ToolError
from ethosu_sdk.npu.config import NpuConfig

_FILE = "model"
_RUN = "import sys; from ethosu.vela.vela import main; sys.exit(main(sys.argv[1:]))"
# Packages that a version needs besides those of the SDK.
_NEEDS = {"4": ("lxml<6.0.1",)}


@dataclass(frozen=True)
class Compiled:
    """A network as a version of Vela compiles it: the stream, what it is for, and Vela's own estimate."""

    stream: bytes
    config: NpuConfig
    vela_total: int
    vela_npu: int


def cache() -> Path:
    """Where versions of Vela and what they made are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ethosu-sdk" / "fidelity"


def environment(version: str) -> Path:
    """The folder with `version` of Vela, installed from the package index if it is not there. ToolError otherwise."""
    place = cache() / f"vela-{version}"
    if not (place / "ethosu").is_dir():
        packages = [f"ethos-u-vela=={version}"]
        _checked(
            [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(place), *packages]
        )
        if extra := _NEEDS.get(version[0]):
            _checked([sys.executable, "-m", "pip", "install", "-q", "--target", str(place), *extra])
    return place


def compile_network(
    model: bytes, version: str, accelerator: str, system: str, mode: str, cache_bytes: int | None
) -> Compiled:
    """`model`, a TensorFlow Lite file, compiled by `version` of Vela ("": the SDK's own). ToolError if it refuses."""
    options = ["--accelerator-config", accelerator, "--system-config", system, "--memory-mode", mode]
    options += ["--config", "Arm/vela.ini", "--output-format", "raw"]
    if cache_bytes is not None:
        options += ["--arena-cache-size", str(cache_bytes)]
    key = hashlib.sha256(model + json.dumps([version, *options]).encode()).hexdigest()[:24]
    folder = cache() / "compiled" / key
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        source = folder / f"{_FILE}.tflite"
        source.write_bytes(model)
        arguments = [str(source), "--output-dir", str(folder), *options]
        _checked([sys.executable, "-c", _RUN, *arguments], _variables(version), folder)
        (folder / "done").touch()
    return _read(folder, system)


def _read(folder: Path, system: str) -> Compiled:
    # Versions differ in whether they number the parts of a network that is one, and in how they store bytes.
    (stored,) = folder.glob(f"{_FILE}_vela*.npz")
    with np.load(stored, allow_pickle=True) as content:
        commands = content["cmd_data"]
        data = commands.tobytes() if commands.dtype == np.uint8 else bytes(commands.item())
    actions = vela_blocks.driver_actions(memoryview(data + bytes(-len(data) % 4)))
    with (folder / f"{_FILE}_summary_{system}.csv").open() as file:
        (row,) = csv.DictReader(file)
    config = NpuConfig.from_word(actions.config_word)
    stream = bytes(actions.command_stream)
    return Compiled(stream, config, int(float(row["cycles_total"])), int(float(row["cycles_npu"])))


def _variables(version: str) -> dict[str, str]:
    return {"PYTHONPATH": str(environment(version))} if version else {}


def _checked(command: list[str], variables: dict[str, str] | None = None, folder: Path | None = None) -> None:
    done = subprocess.run(
        command,
        env={**os.environ, **(variables or {})},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-5:]
        raise ToolError("; ".join(last) or f"{command[0]} failed", "run it by hand: " + " ".join(command[:6]))
