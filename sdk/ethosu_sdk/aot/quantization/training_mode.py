"""Operators that a program holds because it was exported while it trained: they draw random numbers, or change the
model as it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ethosu_sdk.aot.graph import fx
from ethosu_sdk.aot.graph.source_lines import SourceFinder
from ethosu_sdk.errors import InputError

# The names that torch's schemas give to these arguments.
_SWITCHES = ("train", "training")
_PROBABILITIES = ("p", "dropout", "dropout_p")
_RUNNING_MEAN = "running_mean"
_GENERATOR = "generator"
_HINT = (
    "call model.eval() before torch.export.export, and pass training=self.training to functions of "
    "torch.nn.functional; after quantisation-aware training, call move_exported_model_to_eval(model) before "
    "convert_pt2e(model)"
)


def refuse(program: Any, finder: SourceFinder) -> None:
    """InputError when an operator of an ``ExportedProgram``, or of a branch in it, is in training mode."""
    for node in fx.nodes(program.graph_module):
        schema = getattr(node.target, "_schema", None)
        if schema is not None and _trains(_arguments(node, schema)):
            raise InputError(
                f"the model is in training mode: {schema.name}{_place(finder, node.meta)} draws random numbers "
                "or changes with each run",
                _HINT,
            )


def _arguments(node: Any, schema: Any) -> dict[str, Any]:
    """The arguments of a call by name, those that were left out with their defaults."""
    names = [argument.name for argument in schema.arguments]
    defaults = {argument.name: argument.default_value for argument in schema.arguments}
    return {**defaults, **dict(zip(names, node.args, strict=False)), **node.kwargs}


def _trains(arguments: Mapping[str, Any]) -> bool:
    probability = next((arguments[name] for name in _PROBABILITIES if name in arguments), None)
    switch = next((arguments[name] for name in _SWITCHES if name in arguments), None)
    if "dropout_p" in arguments:  # attention has no switch
        return bool(probability)
    if not switch or probability == 0:
        return False
    if probability is not None or _GENERATOR in arguments:  # rrelu draws slopes, and drops nothing
        return True
    # Without running statistics, a normalisation takes those of the batch in either mode.
    return arguments.get(_RUNNING_MEAN) is not None


def _place(finder: SourceFinder, meta: Mapping[str, Any]) -> str:
    place = finder.place(meta)
    return f" at {place}" if place else ""
