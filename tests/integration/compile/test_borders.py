"""Images enter delegates with their channels last: what the processor does for it, and that no value changes."""

import importlib.metadata
import json
from pathlib import Path

import pytest

from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import DelegateCall, KernelCall, Tensor
from tests.integration.cli import sdk_ok
from tests.records import read

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]

QUANTIZE = "quantized_decomposed::quantize_per_tensor"
COPY = "dim_order_ops::_clone_dim_order"
LAST = (0, 2, 3, 1)

MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d({channels}, 8, 3, stride=2, padding=1), nn.Conv2d(8, 4, 1)
        self.line = nn.Conv1d(3, 4, 3)

    def forward(self, x):
        return {result}

torch.manual_seed(0)
model = Net().eval()
samples = torch.randn(5, {shape})
example_inputs = (samples[0],)
calibration = [(sample,) for sample in samples[1:]]
"""
IMAGE = "self.last(torch.relu(self.first(x))).mean((2, 3))"


def model(result: str = IMAGE, shape: str = "1, 3, 19, 33", channels: int = 3) -> str:
    return MODEL.format(result=result, shape=shape, channels=channels)


def run(folder: Path, text: str, *options: str, runtime: str = "own") -> None:
    """Compile, which compares ExecuTorch's runtime with the model, and run, which compares the firmware with it."""
    (folder / "net.py").write_text(text)
    outcome = sdk_ok("run", "net.py", "-o", "out", *options, "--runtime", runtime, "--json", cwd=folder)
    record = json.loads(outcome.out)
    assert record["status"] == "pass"
    assert read(folder / "out" / "net.compile.json")["check"]["status"] == "pass"


def kernels(folder: Path) -> list[str]:
    plan = pte.read(folder / "out" / "net.pte").plan("forward")
    calls = [row for row in plan.instructions if isinstance(row, KernelCall)]
    return [plan.operators[row.op_index].name for row in calls]


def delegate_value(folder: Path, argument: int = 0) -> Tensor:
    plan = pte.read(folder / "out" / "net.pte").plan("forward")
    (call,) = [row for row in plan.instructions if isinstance(row, DelegateCall)]
    value = plan.values[call.args[argument]]
    assert isinstance(value, Tensor)
    return value


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
def test_an_image_enters_with_its_channels_last(target: str, tmp_path: Path) -> None:
    run(tmp_path, model(), "--target", target)
    assert delegate_value(tmp_path).dim_order == LAST
    assert kernels(tmp_path)[:2] == [QUANTIZE, COPY]
    operations = (tmp_path / "out" / "delegate0.per-layer.csv").read_text()
    assert "Transpose" not in operations.partition("Conv2D")[0]


def test_what_the_cpu_does_not_convert_stays(tmp_path: Path) -> None:
    """An input of int8 lies where the NPU reads from the beginning; a copy would take as long as the NPU."""
    run(tmp_path, model(result="self.last(torch.relu(self.first(x)))"), "--io", "int8")
    assert delegate_value(tmp_path).dim_order == (0, 1, 2, 3)
    assert kernels(tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(model(shape="2, 3, 9, 18"), id="two-batches"),
        pytest.param(model(shape="1, 64, 9, 8", channels=64), id="many-channels"),
        pytest.param(
            model(result="(self.last(self.first(x)), nn.functional.max_pool2d(x, 2))"), id="two-readers"
        ),
    ],
)
def test_other_images_do_too(text: str, tmp_path: Path) -> None:
    run(tmp_path, text)
    assert delegate_value(tmp_path).dim_order == LAST


@pytest.mark.parametrize(
    ("target", "shape"), [("ethos-u55-128", "1, 3, 19, 33"), ("ethos-u85-256", "2, 3, 19, 18")]
)
def test_an_image_leaves_with_its_channels_last(target: str, shape: str, tmp_path: Path) -> None:
    run(tmp_path, model(result="self.last(torch.relu(self.first(x)))", shape=shape), "--target", target)
    assert [delegate_value(tmp_path, argument).dim_order for argument in (0, 1)] == [LAST, LAST]
    assert kernels(tmp_path).count(COPY) == 2
    assert "Transpose" not in (tmp_path / "out" / "delegate0.per-layer.csv").read_text()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(model(shape="1, 1, 19, 33", channels=1), id="one-channel"),
        pytest.param(model(result="self.line(x)", shape="1, 3, 19"), id="three-axes"),
        pytest.param(model(shape="1, 3, 7, 9"), id="few-pixels"),
        pytest.param(
            model(result="(self.first(x).mean((2, 3)), torch.cumsum(x, 3))"), id="also-read-by-the-cpu"
        ),
    ],
)
def test_what_gains_nothing_stays(text: str, tmp_path: Path) -> None:
    run(tmp_path, text)
    assert COPY not in kernels(tmp_path)


def test_an_image_for_the_cpu_is_not_copied(tmp_path: Path) -> None:
    """ExecuTorch leaves the convolution with a stride of 5 on the CPU of an Ethos-U55."""
    text = model().replace("stride=2", "stride=5")
    run(tmp_path, text)
    assert COPY not in kernels(tmp_path)


def test_arms_build_of_executorch_gives_the_same_bytes(tmp_path: Path) -> None:
    try:
        importlib.metadata.distribution("mlia-ethos-u")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("mlia-ethos-u is not installed: scripts/setup does that")
    run(tmp_path, model(), runtime="both")
    assert delegate_value(tmp_path).dim_order == LAST
