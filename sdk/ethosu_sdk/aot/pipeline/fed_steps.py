"""Several steps of a model in PyTorch, each fed by the outputs of the one before as its file declares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ethosu_sdk import npz
from ethosu_sdk.aot.graph import execution, tensors
from ethosu_sdk.aot.model.declared_feeds import DeclaredFeeds
from ethosu_sdk.aot.model.initial_state import InitialState
from ethosu_sdk.errors import InputError, SdkError
from ethosu_sdk.feeds import stepping
from ethosu_sdk.feeds.stepping import Stepper, Steps

SUFFIX = ".steps.npz"


def write(
    path: Path, program: Any, inputs: tuple[Any, ...], feeds: DeclaredFeeds, state: InitialState
) -> None:
    """Run the exported `program` from its initial `state` and write ``input0``…, as the first step takes them, and
    ``output0``… of all steps, with a leading axis. InputError for feeds that do not fit the model."""
    import torch

    given = tuple((tensors.as_numpy(item),) for item in inputs)
    stepper = Stepper(Steps(feeds.steps, given, feeds.feeds))
    module = program.module()
    found: list[list[Any]] = []
    with torch.no_grad(), state.restored(module):
        while not stepper.is_over:
            values = tensors.like(stepper.inputs(), inputs)
            outputs = [tensors.as_numpy(item) for item in execution.run_eager(module, values)]
            if not found:
                _check(feeds, [row[0] for row in given], outputs)
            found.append(outputs)
            try:
                stepper.take(dict(enumerate(outputs)))
            except SdkError as error:
                raise InputError(f"step {len(found) - 1} of the feeds: {error.message}") from error
    columns = zip(*found, strict=True)
    arrays = {f"input{number}": row[0] for number, row in enumerate(given)}
    npz.write_npz(path, arrays | {f"output{number}": np.stack(rows) for number, rows in enumerate(columns)})


def _check(feeds: DeclaredFeeds, inputs: list[Any], outputs: list[Any]) -> None:
    described = [[(row.dtype.name, row.shape) for row in rows] for rows in (inputs, outputs)]
    for feed in feeds.feeds:
        try:
            stepping.check(feed, *described)
        except SdkError as error:
            raise InputError(f"the file's feeds do not fit its model: {error.message}", error.hint) from error
