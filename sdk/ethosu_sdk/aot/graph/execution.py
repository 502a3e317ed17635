"""Models and programs executed in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ethosu_sdk import plain_text
from ethosu_sdk.aot.graph.source_lines import last_return
from ethosu_sdk.errors import InputError

Tensors = tuple[Any, ...]


def run_eager(module: Any, inputs: Tensors) -> Tensors:
    """The outputs of `module` as a flat tuple of tensors. InputError when it fails or returns something
    else."""
    from torch.utils import _pytree

    return as_outputs(_pytree.tree_leaves(call(module, inputs)), module)


def call(module: Any, inputs: Tensors) -> Any:
    """What `module` returns for copies of `inputs`, which it may write to. InputError when it fails."""
    import torch

    try:
        with torch.no_grad():
            return module(*(item.clone() for item in inputs))
    except Exception as error:
        shapes = ", ".join(f"{str(item.dtype).removeprefix('torch.')} {tuple(item.shape)}" for item in inputs)
        raise InputError(
            f"the model's forward failed on the example inputs ({shapes}): {plain_text.error(error)}"
        ) from error


def as_outputs(leaves: Sequence[Any], module: Any = None) -> Tensors:
    """The leaves of what `module` returned, as tensors. InputError with the line for something else."""
    import torch

    wrong = [type(item).__name__ for item in leaves if not isinstance(item, torch.Tensor)]
    if wrong or not leaves:
        place = None if module is None else last_return(module)
        raise InputError(
            f"the model's forward returns {f'a value of type {wrong[0]}' if wrong else 'nothing'}"
            + (f" at {place}" if place else "")
            + ": the outputs of a program are tensors",
            "return only tensors, alone or in tuples, lists and dicts",
        )
    return tuple(leaves)
