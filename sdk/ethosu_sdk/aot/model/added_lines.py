"""Lines of Python behind those of a model's file: how `advise --try` tries a change of the model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ethosu_sdk import plain_text
from ethosu_sdk.aot.model.loading import LoadedModel, as_inputs
from ethosu_sdk.aot.quantization import own_quantizer
from ethosu_sdk.aot.quantization.own_quantizer import OwnQuantizer
from ethosu_sdk.errors import InputError


def applied(model: LoadedModel, lines: Sequence[str]) -> LoadedModel:
    """`model` after `lines`, which find ``model``, ``example_inputs``, ``torch`` and ``nn`` as its file would.

    InputError when they fail, as with a module of another kind than they expect.
    """
    if not lines:
        return model
    import torch

    names: dict[str, Any] = {
        "torch": torch,
        "nn": torch.nn,
        "model": model.module,
        "example_inputs": model.example_inputs,
    }
    try:
        exec(compile("\n".join(lines), "<added lines>", "exec"), names)
    except Exception as error:
        raise InputError(f"the change cannot be made to this model: {plain_text.error(error)}") from error
    quantizer, inputs = model.quantizer, names["example_inputs"]
    if own_quantizer.NAME in names:
        if quantizer is not None:
            raise InputError(f"the change defines '{own_quantizer.NAME}', which the model's file has already")
        quantizer = OwnQuantizer(names[own_quantizer.NAME], Path("the added lines"))
    return dataclasses.replace(
        model,
        module=names["model"],
        example_inputs=None if inputs is None else as_inputs(inputs, "example_inputs"),
        quantizer=quantizer,
    )
