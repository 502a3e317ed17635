"""A program takes and gives tensors of the model's own types and shapes: whole numbers of 64 bits, tensors without an
axis. What it cannot take is refused. The reference is PyTorch in a process of its own."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from ethosu_sdk.base import npz
from tests import warm
from tests.conftest import KeptFolder
from tests.integration.cli import sdk, sdk_ok

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]

MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.linear = nn.Embedding(16, 8), nn.Linear(8, 4)
        self.register_buffer("offset", torch.tensor([3, -4, 5]))

    def forward(self, number, x, factor, count):
        y = self.linear(self.table(number[:, :2]) + x) * factor
        whole = number * 3, (y > 100).long(), number, number + self.offset, number.sum(), count * 2
        return y, y.sum(), *whole

torch.manual_seed(0)
model = Net().eval()
numbers = torch.randint(0, 16, (9, 1, 3))
samples = [(n, torch.randn(1, 2, 8), torch.rand(()), n.max()) for n in numbers]
example_inputs, calibration = samples[0], samples
"""
EAGER = """
import numpy, net
rows = net.samples[:4]
columns = [[x.numpy() for x in column] for column in zip(*rows)]
numpy.savez("in.npz", **{f"input{i}": numpy.stack(column) for i, column in enumerate(columns)})
columns = [[x.detach().numpy() for x in column] for column in zip(*(net.model(*row) for row in rows))]
numpy.savez("want.npz", **{f"output{i}": numpy.stack(column) for i, column in enumerate(columns)})
"""
FLOATS = 2  # outputs; those behind them are whole numbers, and exact
LARGE = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("limit", torch.tensor([2**31 + {more}]))

    def forward(self, a):
        return a * 3, a + self.limit
model = Net()
example_inputs = (torch.tensor([[{example}, -5]]),)
calibration = [example_inputs, (torch.tensor([[{sample}, -6]]),)]
"""


def arrays(path: Path, kind: str) -> list[npt.NDArray[np.generic]]:
    content = npz.read_npz(path)
    return [content[f"{kind}{index}"] for index in range(sum(name.startswith(kind) for name in content))]


@pytest.fixture(scope="module")
def folder(kept_folder: KeptFolder) -> Path:
    def make(place: Path) -> None:
        (place / "net.py").write_text(MODEL)
        warm.python("-c", EAGER, cwd=place)
        for target in ("ethos-u55-128", "ethos-u85-256"):
            sdk_ok("compile", "net.py", "--target", target, "-o", target, "--evaluate", "in.npz", cwd=place)

    return kept_folder("types", make, own=True)


def near(got: list[npt.NDArray[np.generic]], want: list[npt.NDArray[np.generic]]) -> None:
    assert [(x.shape, x.dtype) for x in got] == [(x.shape, x.dtype) for x in want]
    for index, (left, right) in enumerate(zip(got, want, strict=True)):
        if index < FLOATS:
            assert np.abs(left.astype(float) - right.astype(float)).max() < 0.4
        else:
            np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("simulator", ["qemu", "host"])
@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u85-256"])
def test_types_and_shapes_are_the_models(folder: Path, target: str, simulator: str) -> None:
    program = f"{target}/net.pte"
    want = arrays(folder / "want.npz", "output")
    sdk_ok("run", program, "--simulator", simulator, cwd=folder)
    near(arrays(folder / target / "outputs.npz", "output"), [array[0] for array in want])
    sdk_ok(
        *("run", program, "--simulator", simulator, "--inputs", "in.npz", "--expect", "want.npz"),
        *("--atol", "0.4"),
        cwd=folder,
    )
    near(arrays(folder / target / "outputs.npz", "output"), want)


def test_an_expectation_without_an_axis_is_compared(folder: Path) -> None:
    content = npz.read_npz(folder / "ethos-u55-128" / "net.io.npz")
    wrong = {name: array for name, array in content.items() if name.startswith("output")}
    wrong["output1"] = wrong["output1"] + np.float32(1)
    np.savez(folder / "wrong.npz", **wrong)
    outcome = sdk(
        *("run", "ethos-u55-128/net.pte", "--simulator", "host", "--expect", "wrong.npz"), cwd=folder
    )
    assert outcome.code == 7
    assert "output1 is as expected: 1 of 1 elements differ, largest difference 1, first at []" in outcome.err
    assert sdk("profile", "ethos-u55-128/net.pte", cwd=folder).code == 0


@pytest.mark.parametrize(
    ("more", "example", "sample", "words"),
    [
        (-1, 2**40, 3, "example input 0 holds 1099511627776, which does not fit 32 bits (1 of its 2 values"),
        (-1, 3, -(2**31) - 1, "calibration sample 1: input 0 holds -2147483649, which does not fit 32 bits"),
        (0, 3, 4, "constant 'limit' holds 2147483648, which does not fit 32 bits (1 of its 1 values do not)"),
    ],
)
def test_whole_numbers_that_do_not_fit(
    tmp_path: Path, more: int, example: int, sample: int, words: str
) -> None:
    (tmp_path / "net.py").write_text(LARGE.format(more=more, example=example, sample=sample))
    outcome = sdk("compile", "net.py", cwd=tmp_path)
    assert outcome.code == 3, outcome.err
    assert words in outcome.err
    assert "at net.py, line 9" in outcome.err
    assert "compile with --quantize none, which keeps int64" in outcome.err


def test_what_is_not_quantised_keeps_64_bits(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(LARGE.format(more=7, example=2**40, sample=3))
    sdk_ok("run", "net.py", "--quantize", "none", "--simulator", "host", "-o", "out", cwd=tmp_path)
    content = npz.read_npz(tmp_path / "out" / "outputs.npz")
    np.testing.assert_array_equal(content["output0"], np.array([[3 * 2**40, -15]]))
    np.testing.assert_array_equal(content["output1"], np.array([[2**40 + 2**31 + 7, 2**31 + 2]]))


@pytest.mark.parametrize(
    ("position", "place", "value", "words"),
    [
        (0, (1, 0, 2), 2**31, "'input0' holds 2147483648 at [0, 2] of inference 1 (1 of its 3 values)"),
        (1, (3, 0, 1, 4), np.nan, "'input1' holds NaN at [0, 1, 4] of inference 3 (1 of its 16 values)"),
        (1, (0, 0, 0, 0), -np.inf, "'input1' holds infinity at [0, 0, 0] of inference 0 (1 of its 16"),
        (2, (2,), np.nan, "'input2' holds NaN of inference 2 (1 of its 1 values)"),
    ],
)
def test_values_that_a_run_cannot_take(
    folder: Path, position: int, place: tuple[int, ...], value: float, words: str
) -> None:
    given = dict(npz.read_npz(folder / "in.npz"))
    given[f"input{position}"][place] = value
    np.savez(folder / "bad.npz", **given)
    outcome = sdk(*("run", "ethos-u55-128/net.pte", "--inputs", "bad.npz", "--simulator", "host"), cwd=folder)
    assert outcome.code == 3
    assert f"bad.npz: {words}" in outcome.err
    assert "--quantize none" in outcome.err


def test_a_float_program_takes_what_is_not_finite(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import torch\nmodel = torch.nn.ReLU()\nexample_inputs = (torch.ones(4),)\n"
    )
    np.savez(tmp_path / "in.npz", input0=np.array([np.nan, np.inf, -np.inf, 2], np.float32))
    sdk_ok(*("run", "net.py", "--quantize", "none", "--simulator", "host", "-o", "out"), cwd=tmp_path)
    sdk_ok(*("run", "out/net.pte", "--inputs", "in.npz", "--simulator", "host", "-o", "out"), cwd=tmp_path)
    np.testing.assert_array_equal(
        npz.read_npz(tmp_path / "out" / "outputs.npz")["output0"],
        np.array([np.nan, np.inf, 0, 2], np.float32),
    )
