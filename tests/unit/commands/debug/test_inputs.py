"""Inputs of `debug`: those of several inferences are refused by the name of the file that they are in."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk import npz, pte
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.errors import InputError
from ethosu_sdk.steps.debug import debug_command
from ethosu_sdk.steps.debug.options import DebugOptions
from tests.places import GOLDEN_PTE


@pytest.mark.parametrize("given", [None, "two.npz"])
def test_stacked_inputs_are_named(given: str | None, tmp_path: Path) -> None:
    path = shutil.copy(GOLDEN_PTE / "add_u55.pte", tmp_path / "add.pte")
    program = pte.read(path)
    arrays = {
        f"input{index}": np.zeros((2, *tensor.sizes), tensor.dtype)
        for index, tensor in enumerate(program.plan("forward").input_tensors())
    }
    name = given or "add.io.npz"
    npz.write_npz(tmp_path / name, arrays)
    options = DebugOptions(inputs=None if given is None else tmp_path / given)
    subject = debug_command._Subject(path, tmp_path, None)
    with pytest.raises(InputError) as caught:
        debug_command._inputs(subject, program, options, Reporter(quiet=True))
    assert "the inputs of one inference, not 2" in caught.value.message
    assert name in caught.value.message
    assert "None" not in caught.value.message
