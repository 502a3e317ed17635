"""Networks as versions of Vela other than the SDK's own compile them: results kept."""

from __future__ import annotations

import csv
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ethosu_sdk.compile import vela_versions
from ethosu_sdk.npu import vela_blocks
from ethosu_sdk.npu.config import NpuConfig

_FILE = "model"


@dataclass(frozen=True)
class Compiled:
    """A network as a version of Vela compiles it: the stream, what it is for, and Vela's own estimate."""

    stream: bytes
    config: NpuConfig
    vela_total: int
    vela_npu: int


def cache() -> Path:
    """Where what versions of Vela made is kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ethosu-sdk" / "fidelity"


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
        path = vela_versions.python_path(version) if version else ""
        vela_versions.run_vela(path, [str(source), "--output-dir", str(folder), *options], folder)
        (folder / "done").touch()
    return _read(folder, system)


def _read(folder: Path, system: str) -> Compiled:
    # Versions differ in whether they number the parts of a network that is one, and in how they store bytes.
    (stored,) = folder.glob(f"{_FILE}_vela*.npz")
    with np.load(stored, allow_pickle=True) as content:
        commands = content["cmd_data"]
        data = commands.tobytes() if commands.dtype == np.uint8 else bytes(commands.item())
    config_word, _, stream = vela_blocks.driver_actions(memoryview(data + bytes(-len(data) % 4)))
    with (folder / f"{_FILE}_summary_{system}.csv").open() as file:
        (row,) = csv.DictReader(file)
    config = NpuConfig.from_word(config_word)
    return Compiled(bytes(stream), config, int(float(row["cycles_total"])), int(float(row["cycles_npu"])))
