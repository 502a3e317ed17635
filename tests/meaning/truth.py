"""What eager PyTorch says of a model: asked of a process that knows nothing of the SDK."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ethosu_sdk.proc import forks
from tests.meaning.arrays import Array
from tests.places import ROOT

_LIMIT_S = 120.0


class NotRunnableError(Exception):
    """PyTorch itself does not run the model."""


def wanted(path: Path) -> tuple[list[Array], list[list[Array]]]:
    """The inputs, stacked, and the outputs of each sample, from a file that the process wrote."""
    with np.load(path) as file:
        count = len([name for name in file.files if name.startswith("input")])
        inputs = [file[f"input{index}"] for index in range(count)]
        steps: list[list[Array]] = []
        while f"step{len(steps)}_output0" in file.files:
            names = [name for name in file.files if name.startswith(f"step{len(steps)}_")]
            steps.append([file[f"step{len(steps)}_output{index}"] for index in range(len(names))])
    return inputs, steps


@contextlib.contextmanager
def asked(log: Path) -> Iterator[Callable[..., None]]:
    """A function that has samples and outputs of a model's file written: ``ask(file, to, **how)`` as
    :func:`tests.meaning.eager.outputs` takes it. It raises NotRunnableError."""
    os.environ["PYTHONPATH"] = os.pathsep.join(
        dict.fromkeys([*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), str(ROOT)])
    )
    with forks.server("tests.meaning.eager", log) as server:

        def ask(file: Path, to: Path, **how: object) -> None:
            answer = server.call({"file": str(file), "to": str(to), **how}, _LIMIT_S, None)
            if answer.end != forks.DONE or answer.result:
                raise NotRunnableError(f"{file.name}: {answer.result or f'{answer.end} {answer.detail}'}")

        yield ask
