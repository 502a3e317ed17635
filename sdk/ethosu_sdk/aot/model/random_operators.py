"""Refuses operators that draw random numbers: a compiled program must give the same outputs for the same inputs."""

from __future__ import annotations

from typing import Any

from ethosu_sdk.aot.graph.source_lines import SourceFinder
from ethosu_sdk.errors import InputError

# What operators are told that draw while a model is trained alone: quantization/training_mode.py refuses those.
_SWITCHES = frozenset(("train", "training", "dropout_p"))
_HINT = (
    "neither the NPU nor its runtime generates random numbers: generate the noise outside and pass it to the model "
    "as another input, or use a constant"
)


def check(node: Any, finder: SourceFinder) -> None:
    """InputError when a `node` of an exported program draws random numbers whenever it runs."""
    import torch

    schema = getattr(node.target, "_schema", None)
    if schema is None or torch.Tag.nondeterministic_seeded not in node.target.tags:
        return
    if not _SWITCHES.intersection(argument.name for argument in schema.arguments):
        place = finder.place(node.meta)
        raise InputError(
            f"the model draws random numbers: {schema.name}" + (f" at {place}" if place else ""), _HINT
        )
