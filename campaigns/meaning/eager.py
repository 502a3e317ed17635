"""What PyTorch itself computes, in forks of a process (:mod:`ethosu_sdk.base.forks`).

It imports torch, and no part of the SDK but the plumbing that forks a process for each model.
"""

import importlib.util
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree

from campaigns.meaning.cells import Array
from ethosu_sdk.base import forks


def load(path: Path) -> Any:
    """The Python module that the file `path` is, executed anew."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def outputs(
    path: Path, *, samples: Path | None = None, forgetful: bool = False
) -> tuple[list[list[Array]], list[list[Array]]]:
    """The samples of a model's file and the outputs for them, in a row with its state kept.

    `samples` is another file to take them from. With `forgetful`, the model is made anew for each sample.
    """
    file = load(path)
    drawn = (load(samples) if samples else file).samples
    model, found = file.model, []
    with torch.no_grad():
        for sample in drawn:
            if forgetful:
                model = load(path).model
            leaves = _pytree.tree_leaves(model(*_copies(sample)))
            found.append([np.array(torch.as_tensor(leaf)) for leaf in leaves if leaf is not None])
    return [[np.array(tensor) for tensor in sample] for sample in drawn], found


def _copies(sample: Any) -> list[torch.Tensor]:
    """Fresh tensors: a model may write to its inputs."""
    return [tensor.clone() for tensor in (sample if isinstance(sample, tuple) else (sample,))]


def prepare() -> None:
    """Set what all files run with; this module has imported what they need."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)


def perform(task: forks.Task) -> str:
    """Write the samples and outputs of a file; what is wrong with it, or nothing."""
    try:
        given, found = outputs(Path(task["file"]))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    arrays = {f"input{i}": np.stack(column) for i, column in enumerate(zip(*given, strict=True))}
    for number, step in enumerate(found):
        arrays |= {f"step{number}_output{i}": array for i, array in enumerate(step)}
    np.savez(task["to"], **arrays)
    return ""
