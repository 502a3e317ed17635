"""Operators and forms that the tools fail at come through with the values of the model in PyTorch, or are refused by
name, with the user's line and a way out that works.

The pipeline runs in this process, so that torch is imported once; one program goes through the command.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk import npu
from ethosu_sdk.base import npz
from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.compile import worker
from ethosu_sdk.compile.compile_facts import CompileRequest
from ethosu_sdk.compile.program_options import ProgramOptions
from ethosu_sdk.simulate import host_runtime
from tests.integration.cli import sdk
from tests.integration.compile.forms.models import LINE, REFUSED, WAYS_OUT, WORKING, Form
from tests.integration.compile.refusal import refusal

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

_NEAR_DB = {"int8": 20.0, "none": 100.0}


def request(form: Form, folder: Path) -> CompileRequest:
    checks = folder / "checks"
    checks.mkdir()
    options = ProgramOptions(quantize=form.quantize)
    target = parse_target(form.target)
    return CompileRequest(
        f"{form.write(folder)}:model", target, folder / "out", options=options, check_folder=checks
    )


def eager(path: Path) -> list[NDArray[Any]]:
    """The outputs of the model in PyTorch, before anything else ran it."""
    import torch

    names: dict[str, Any] = {}
    exec(compile(path.read_text(), path, "exec"), names)
    with torch.no_grad():
        result = names["model"](*names["example_inputs"])
    return [part.numpy() for part in (result if isinstance(result, tuple) else (result,))]


def distance_db(reference: NDArray[Any], candidate: NDArray[Any]) -> float:
    error = np.linalg.norm(candidate.astype(np.float64) - reference)
    return float("inf") if error == 0 else float(20 * np.log10(np.linalg.norm(reference) / error))


@pytest.mark.parametrize("form", [*WORKING, *WAYS_OUT], ids=lambda form: form.name)
def test_values_are_those_of_the_model(form: Form, tmp_path: Path, host_runner: Path) -> None:
    asked = request(form, tmp_path)
    asked.out_dir.mkdir()
    output = worker.run_stages(asked, lambda stage: None)
    stored = npz.read_npz(output.io)
    inputs = [stored[f"input{index}"] for index in range(len(output.inputs))]

    def execute(call: host_runtime.DelegateCall) -> list[NDArray[Any]]:
        return npu.run(call.payload, call.inputs).outputs

    with host_runtime.open_pte(host_runner, output.pte, execute) as runtime:
        results = runtime.run(inputs)
    expected = eager(tmp_path / "net.py")
    assert len(results) == len(expected)
    for result, reference in zip(results, expected, strict=True):
        assert result.shape == reference.shape
        if form.exact:
            np.testing.assert_array_equal(result, reference, strict=True)
        else:
            assert distance_db(reference, result) > _NEAR_DB[form.quantize]


@pytest.mark.parametrize(("form", "words", "remedy"), REFUSED, ids=lambda value: getattr(value, "name", ""))
def test_what_is_refused_names_operator_and_line(form: Form, words: str, remedy: str, tmp_path: Path) -> None:
    caught = refusal(request(form, tmp_path))
    assert caught.exit_code == 3
    assert words.format(LINE) in caught.message
    assert remedy in caught.hint


def test_a_program_that_does_not_run_names_its_operator(tmp_path: Path) -> None:
    form = Form(
        "volume", "return self.c(x)", "torch.randn(1, 2, 4, 6, 6)", "self.c = nn.ConvTranspose3d(2, 4, 2)"
    )
    form.write(tmp_path)
    outcome = sdk("compile", "net.py:model", "--target", form.target, "-o", "out", cwd=tmp_path)
    assert outcome.code == 3
    assert "failed in aten::convolution.out" in outcome.err
    assert f"(called at net.py:{LINE} in Net.forward (c))" in outcome.err
    assert "hint: use a Conv3d without groups, or a ConvTranspose2d" in outcome.err
