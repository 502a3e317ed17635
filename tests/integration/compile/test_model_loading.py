"""A user's Python file becomes a model with example inputs, or one clear sentence says why not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.compile.front_ends import loading
from ethosu_sdk.compile.front_ends.loading import LoadedModel
from ethosu_sdk.compile.front_ends.model_spec import parse_model_spec
from ethosu_sdk.compile.graphs.execution import run_eager

pytestmark = pytest.mark.torch

HEAD = """
import torch
class Net(torch.nn.Module):
    def forward(self, x):
        return x * 2
class Needs(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
x = torch.ones(2, 3)
"""

Load = Callable[..., LoadedModel]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def write_and_load(body: str, entry: str = "") -> LoadedModel:
        path = tmp_path / "net.py"
        path.write_text(HEAD + body)
        return loading.load_model(parse_model_spec(f"{path}:{entry}" if entry else str(path)))

    return write_and_load


@pytest.mark.parametrize(
    ("body", "entry"),
    [
        ("example_inputs = (x,)", "Net"),
        ("ModelInputs = (x,)", "Net"),
        ("example_inputs = x", "Net"),
        ("example_inputs = [x]", "Net"),
        ("def example_inputs(): return x", "Net"),
        ("net = Net(); example_inputs = (x,)", "net"),
        ("def make(): return Net(), (x,)", "make"),
        ("def make(): return Net()\nexample_inputs = (x,)", "make"),
        ("class Own(Net):\n    def example_inputs(self): return (x,)", "Own"),
        ("class Own(Net):\n    example_inputs = (x,)", "Own"),
        ("ModelUnderTest = Net(); ModelInputs = (x,)", ""),
        ("model = Net(); example_inputs = (x,)", ""),
        ("def get_model(): return Net(), x", ""),
    ],
)
def test_every_way_to_give_a_model(load: Load, body: str, entry: str) -> None:
    model = load(body, entry)
    assert model.example_inputs is not None
    assert not model.module.training
    assert [tuple(item.shape) for item in model.example_inputs] == [(2, 3)]
    assert run_eager(model.module, model.example_inputs)[0].tolist() == [[2.0] * 3] * 2


def test_the_only_model_of_a_file_needs_no_name(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text("from torch.nn import Linear, Module, ReLU\nclass Mine(ReLU): pass\n")
    assert type(loading.load_model(parse_model_spec(str(path))).module).__name__ == "Mine"


def test_a_file_finds_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_net.py").write_text("WIDTH = 3\n")
    path = tmp_path / "net.py"
    path.write_text("import torch\nfrom neighbour_of_net import WIDTH\nmodel = torch.nn.Linear(WIDTH, 1)\n")
    assert loading.load_model(parse_model_spec(str(path))).module.in_features == 3


def test_where_modules_were_constructed(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(
        "from torch import nn\ndef block():\n    return nn.Sequential(nn.ReLU())\n"
    )
    (tmp_path / "net.py").write_text(
        "from torch import nn\nfrom parts import block\n"
        "model = nn.Sequential(\n    nn.Linear(2, 2),\n    block(),\n)\n"
    )
    lines = loading.load_model(parse_model_spec(str(tmp_path / "net.py"))).lines
    assert lines == {
        "": ("net.py", 3, None),
        "0": ("net.py", 4, None),
        "1": ("parts.py", 3, "block"),
        "1.0": ("parts.py", 3, "block"),
    }


def test_a_model_without_example_inputs_is_loaded(load: Load) -> None:
    assert load("", "Net").example_inputs is None


@pytest.mark.parametrize(
    ("body", "entry", "words"),
    [
        ("", "net", "defines no 'net'"),
        ("", "", "defines 2 models (Net, Needs)"),
        ("", "x", "is a Tensor, not a model"),
        ("", "Needs", "Needs needs arguments: width"),
        ("def make(): return 5", "make", "is a int, not a model"),
        ("raise ValueError('of mine')", "Net", "failed when it was loaded: ValueError: of mine"),
        ("raise SystemExit(3)", "Net", "failed when it was loaded: SystemExit: 3"),
        ("import no_such_package", "Net", "No module named 'no_such_package'"),
        ("this is no python", "Net", "SyntaxError"),
        ("example_inputs = (1,)", "Net", "number 0 is a int, not a tensor"),
        ("example_inputs = ()", "Net", "must be a tensor or a tuple of tensors"),
        ("example_inputs = {'x': x}", "Net", "must be a tensor or a tuple of tensors, not dict"),
        ("def example_inputs(): return 1 / 0", "Net", "ZeroDivisionError"),
    ],
)
def test_what_is_refused(load: Load, body: str, entry: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        load(body, entry)
    assert words in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ("x @ x", "failed on the example inputs (float32 (2, 3)): matrices of 2x3 and 2x3 cannot"),
        ("'text'", "returns a value of type str"),
        ("()", "returns nothing"),
        ("(x, None)", "returns a value of type NoneType"),
    ],
)
def test_forward_that_does_not_fit(load: Load, result: str, words: str) -> None:
    model = load(f"class Bad(Net):\n    def forward(self, x): return {result}\nexample_inputs = x", "Bad")
    assert model.example_inputs is not None
    with pytest.raises(InputError) as caught:
        run_eager(model.module, model.example_inputs)
    assert words in caught.value.message


def test_outputs_are_flattened_in_order(load: Load) -> None:
    model = load("class Many(Net):\n    def forward(self, x): return {'a': x, 'b': (x + 1, [x + 2])}", "Many")
    import torch

    outputs = run_eager(model.module, (torch.zeros(1),))
    assert [item.item() for item in outputs] == [0.0, 1.0, 2.0]


def test_a_file_that_is_no_exported_program(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    path.write_bytes(b"PK\x03\x04 nothing of use")
    with pytest.raises(InputError, match=r"not a program saved by torch\.export"):
        loading.load_model(parse_model_spec(str(path)))
