"""A module of the running process as a `.pt2`: exported here, where its class and its Python state are, and compared
with the module, as the compiler's own process does with a model from a file."""

from __future__ import annotations

import copy
import inspect
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ethosu_sdk.base import plain_text
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.compile import model_checks, pipeline
from ethosu_sdk.compile.chain import Chain
from ethosu_sdk.compile.graphs import fx
from ethosu_sdk.compile.graphs.source_lines import SourceFinder, lines_recorded
from ethosu_sdk.compile.graphs.tensor_arrays import Array, dense_tensor

_CELL_FILE = re.compile(r'File "([^"]+)"')


def name_of(model: Any) -> str:
    """What the program's files are called: by the module's class."""
    return "model" if _is_exported(model) else type(model).__name__


def has_inputs(model: Any) -> bool:
    """Whether `model` brings example inputs."""
    return _is_exported(model) and model.example_inputs is not None


def input_names(model: Any) -> list[str]:
    """The names of the inputs of a module's ``forward``, or of an exported program."""
    if _is_exported(model):
        return [str(name) for name in model.graph_signature.user_inputs]
    return list(inspect.signature(model.forward).parameters)


def as_tensor(value: Any, array: Array) -> Any:
    """`value` as a tensor on the CPU, which lies in memory as it did; `array` has its elements."""
    import torch

    return value.detach().cpu() if isinstance(value, torch.Tensor) else torch.from_numpy(array.copy())


def exported(model: Any, inputs: Sequence[Any] | None) -> Any:
    """`model` as an exported program with `inputs` as its example inputs; the model itself stays as it is.

    InputError for what cannot be exported, VerdictError for a program that does not compute what the model does.
    """
    import torch

    if _is_exported(model):
        if inputs is not None and has_inputs(model):
            raise UsageError(
                "an exported program has inputs of its own",
                "leave them out; run(compile(program), inputs) runs it on others",
            )
        return model
    model_checks.check_module(model, type(model).__name__)
    try:
        module = copy.deepcopy(model).eval()
    except Exception as error:
        raise InputError(f"the module cannot be copied: {plain_text.error(error)}") from error
    tensors = tuple(dense_tensor(item).clone() for item in inputs or ())
    model_checks.check_types(tensors, "input")
    finder = SourceFinder(None)
    plan = pipeline.Plan(module, tensors, (), "none", quantize="none")
    with torch.no_grad(), model_checks.explained(finder), lines_recorded(finder):
        traced = pipeline.traced_model(plan, finder)
        Chain(traced.eager, finder).graph(traced.program)
    _name_cells(traced.program)
    return traced.program


def save(program: Any, path: Path) -> None:
    """Write an exported program as torch does. InputError where torch cannot."""
    import torch

    try:
        torch.export.save(program, path)
    except Exception as error:
        raise InputError(f"torch.export.save cannot save the model: {plain_text.error(error)}") from error


def _is_exported(model: Any) -> bool:
    import torch

    return isinstance(model, torch.export.ExportedProgram)


def _name_cells(program: Any) -> None:
    """Name the cells of a notebook in the lines of a program: ``In[3]`` instead of a temporary file, whose name is
    another one each time."""
    names = _cell_names()
    if not names:
        return
    for node in fx.all_nodes(program.graph_module):
        trace = node.meta.get("stack_trace")
        if trace:
            node.meta["stack_trace"] = _CELL_FILE.sub(
                lambda found: f'File "{names.get(found[1], found[1])}"', trace
            )


def _cell_names() -> dict[str, str]:
    """The files that IPython made up for the cells that were executed, with the numbers of the cells."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    numbers = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return {file: f"In[{number}]" for file, number in numbers.items()}
