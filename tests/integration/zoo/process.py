"""Asks zoo_child.py, which imports torch, in a process of its own."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk.base import npz
from tests import processes, warm
from tests.places import ROOT


def ask(task: str, *arguments: str | Path, **environment: str) -> Any:
    """What the task of zoo_child.py prints (JSON), or None when it prints nothing."""
    words = ("-m", "tests.integration.zoo.child", task, *map(str, arguments))
    if environment:  # a hash seed, say, which a fork cannot have
        done = processes.run([sys.executable, *words], cwd=ROOT, env=environment, check=True)
    else:
        done = warm.python(*words)
    return json.loads(done.stdout) if done.stdout else None


def float_outputs(name: str, inputs: NDArray[Any], folder: Path) -> list[NDArray[Any]]:
    """The outputs of the zoo model `name` in floating point, stacked, for stacked `inputs`."""
    npz.write_npz(folder / "in.npz", {"input0": inputs})
    ask("float_outputs", name, folder / "in.npz", folder / "out.npz")
    found = npz.read_npz(folder / "out.npz")
    return [np.asarray(found[f"output{index}"]) for index in range(len(found))]
