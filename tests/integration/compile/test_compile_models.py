"""Models that are harder to trace than most: branches, inputs with odd strides, code that lies in a package.

The pipeline runs in this process, so that torch is imported once for all cases.
"""

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk.base import npz
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.compile import worker
from ethosu_sdk.compile.compile_facts import CompileOutput, CompileRequest
from ethosu_sdk.compile.program_options import ProgramOptions
from ethosu_sdk.simulate import host_runtime
from ethosu_sdk.simulate.host_runtime import NpuModel
from tests.conftest import ExpectedOutputs, ZooPte

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

Compile = Callable[..., CompileOutput]
BRANCHES = """\
import torch
x = torch.linspace(-1, 1.5, 128).view(1, 2, 8, 8)
class Weighted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second = torch.nn.Conv2d(2, 4, 3), torch.nn.Conv2d(2, 4, 3)
    def forward(self, x):
        def positive(v):
            return torch.relu(self.first(v))
        def negative(v):
            return torch.sigmoid(self.second(v))
        return torch.cond(x.sum() > 0, positive, negative, [x])
class Plain(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda v: v + v * 0.3, lambda v: torch.sigmoid(v), [x])
example_inputs = x
"""
BOTH = "calibration = [x, -x]\n"
STRIDES = """\
import numpy, torch
torch.manual_seed(1)
net = torch.nn.Conv2d(3, 4, 3)
picture = numpy.linspace(-1, 1, 192, dtype=numpy.float32).reshape(3, 8, 8)
stored = numpy.ascontiguousarray(picture.transpose(1, 2, 0))  # height, width, channels
def one_picture():
    return net, torch.from_numpy(picture[None])
def grey():
    return net, torch.from_numpy(picture[:1]).expand(3, 8, 8)[None]
def channels_last():
    return net, torch.from_numpy(stored[None]).permute(0, 3, 1, 2)
"""


@pytest.fixture
def compile_text(tmp_path: Path) -> Compile:
    """``compile_text(text, name, target)`` compiles NAME of a Python file."""

    def run(text: str, name: str, target: str = "ethos-u55-128", **options: Any) -> CompileOutput:
        path = tmp_path / "net.py"
        path.write_text(textwrap.dedent(text))
        folder = tmp_path / f"{name}-{target}"
        folder.mkdir()
        request = CompileRequest(
            f"{path}:{name}", parse_target(target), folder, options=ProgramOptions(**options)
        )
        return worker.run_stages(request, lambda stage: None)

    return run


def on_npu_model(runner: Path, output: CompileOutput, inputs: NDArray[Any]) -> NDArray[Any]:
    """The first output of the program, its delegates on the NPU model."""
    return host_runtime.run_pte(runner, output.pte, [inputs], NpuModel())[0]


@pytest.mark.parametrize(
    ("name", "target", "delegates", "tolerance"),
    [("Weighted", "ethos-u85-256", 1, 0.03), ("Plain", "ethos-u55-128", 3, 0.03)],
)
def test_each_branch_is_computed(
    compile_text: Compile,
    expected_outputs: ExpectedOutputs,
    host_runner: Path,
    name: str,
    target: str,
    delegates: int,
    tolerance: float,
) -> None:
    """On Ethos-U85 by the NPU; Ethos-U55 has no jumps: the CPU takes them, and the NPU computes the branches."""
    output = compile_text(BRANCHES + BOTH, name, target)
    assert len(output.delegates) == delegates
    example = npz.read_npz(output.io)["input0"]
    for inputs in (example, -example):
        (expected,) = expected_outputs(output, [inputs])
        np.testing.assert_array_equal(on_npu_model(host_runner, output, inputs), expected, strict=True)
        np.testing.assert_allclose(expected, in_float(name, inputs), rtol=0, atol=tolerance)


def in_float(name: str, inputs: NDArray[Any]) -> NDArray[Any]:
    """What PyTorch gives for a model of BRANCHES."""
    import torch

    namespace: dict[str, Any] = {}
    exec(compile(BRANCHES, "branches", "exec"), namespace)
    with torch.no_grad():
        result: NDArray[Any] = namespace[name]()(torch.from_numpy(inputs.copy())).numpy()
    return result


def test_a_branch_without_calibration_samples_is_refused(compile_text: Compile) -> None:
    """Its ranges would be made up: all of its outputs would be one number."""
    with pytest.raises(InputError, match="do not reach every branch") as caught:
        compile_text(BRANCHES, "Weighted", "ethos-u85-256")
    assert "--calibration" in caught.value.hint


def test_branches_with_weights_stay_on_the_cpu_where_arm_lowers_none(compile_text: Compile) -> None:
    """As on Ethos-U55: ExecuTorch lowers such branches for Ethos-U85 only."""
    output = compile_text(BRANCHES + BOTH, "Weighted", "ethos-u55-128")
    calls = {row.name: row.calls for row in output.cpu_operators}
    assert calls["aten::convolution.out"] == 2


@pytest.mark.parametrize(
    ("name", "dim_order"),
    [
        ("one_picture", (0, 1, 2, 3)),  # a stride of 0
        ("grey", (0, 1, 2, 3)),  # three channels in the same memory
        ("channels_last", (0, 2, 3, 1)),  # a stride of 0, and not the order of the dimensions
    ],
)
def test_example_inputs_of_any_stride(
    compile_text: Compile, expected_outputs: ExpectedOutputs, name: str, dim_order: tuple[int, ...]
) -> None:
    output = compile_text(STRIDES, name)
    assert [row.dim_order for row in output.inputs] == [dim_order]
    stored = npz.read_npz(output.io)
    (result,) = expected_outputs(output, [stored["input0"]])
    np.testing.assert_array_equal(result, stored["output0"], strict=True)
    assert np.unique(result).size > 2


@pytest.mark.parametrize("name", ["resnet8", "deep_autoencoder"])
def test_models_of_executorch_have_source_lines(zoo_pte: ZooPte, name: str) -> None:
    (delegate,) = zoo_pte(name).delegates
    files = {row.source.file for row in delegate.operations if row.source is not None}
    assert f"executorch/examples/models/mlperf_tiny/{name}.py" in files
    assert not [file for file in files if file and "backends" in file]
