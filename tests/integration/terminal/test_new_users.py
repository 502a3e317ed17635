"""What new users get wrong: the message names the cause, the hint is right, and the exit code is that of its kind."""

from pathlib import Path

import numpy as np
import pytest

from tests.integration.cli import assert_clear, sdk
from tests.places import GOLDEN_PTE

_NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 8, 3)

    def forward(self, x):
        return self.c(x)
"""
_INPUTS = "example_inputs = (torch.randn(1, 3, 8, 8),)\n"
FILES = {
    "net.py": f"{_NET}model = Net()\n{_INPUTS}",
    "bare.py": f"{_NET}model = Net()\n",
    "grey.py": f"{_NET}model = Net()\nexample_inputs = (torch.randn(1, 1, 8, 8),)\n",
    "named.py": f"{_NET}model = Net()\nexample_inputs = {{'x': torch.randn(1, 3, 8, 8)}}\n",
    "two.py": f"{_NET}class Other(Net): pass\n{_INPUTS}",
    "cuda.py": f"{_NET}model = Net().cuda()\n{_INPUTS}",
    "weights.py": f"{_NET}model = Net()\nmodel.load_state_dict(torch.load('best.pth'))\n{_INPUTS}",
    "dotted.py": "from .layers import Net\nmodel = Net()\n",
    "pkg/__init__.py": "",
    "pkg/model.py": "from .layers import Net\nmodel = Net()\n",
}

# command, exit code, what the message says, the hint
MISTAKES = [
    ("run digits_cnn", 2, "'digits_cnn' is not a model", "did you mean zoo:digits_cnn?"),
    ("compile digit_cnn", 2, "'digit_cnn' is not a model", "did you mean zoo:digits_cnn?"),
    ("run net", 2, "'net' is not a model", "did you mean net.py?"),
    ("compile nett.py", 3, "no model file nett.py", "did you mean net.py?"),
    ("compile Net.py", 3, "no model file Net.py", "did you mean net.py?"),
    ("run net.pte", 3, "no file net.pte", "`ethosu-sdk compile net.py` makes a program of the model"),
    ("build ad.pte", 3, "no file ad.pte", "did you mean add.pte?"),
    (
        "build net.py",
        3,
        "net.py is a Python file, not a .pte file",
        "compile it first: `ethosu-sdk compile net.py`\n",
    ),
    (
        "compile C:\\models\\net.py",
        3,
        "no model file C:\\models\\net.py",
        "in WSL it is /mnt/c/models/net.py",
    ),
    ("compile models\\net.py", 3, "no model file models\\net.py", "paths have /: models/net.py"),
    (
        "compile net.py --target ethos-u55",
        2,
        "unknown target 'ethos-u55'",
        "add its MACs per cycle: ethos-u55-32,",
    ),
    (
        "compile net.py --target ethos-u55-512",
        2,
        "unknown target 'ethos-u55-512'",
        "hint: ethos-u55 has 32, 64, 128 or 256 MACs per cycle; with 512 there are ethos-u65-512, ethos-u85-512\n",
    ),
    ("compile net.py --target ethos-u85-255", 2, "unknown target", "did you mean 'ethos-u85-256'?"),
    (
        "compile dotted.py",
        3,
        "line 1: `from .layers import Net` needs a package",
        "write `from layers import Net`",
    ),
    ("compile pkg/model.py", 3, "line 1: `from .layers import Net`", "that says `from pkg.model import …`"),
    ("run add.pte --inputs x.npz", 3, "has an array 'x'", "np.savez('x.npz', input0=x)"),
    (
        "compile net.py --inputs one.npz",
        3,
        "one.npz holds arr_0, and not input0",
        "np.savez('one.npz', input0=array)",
    ),
    ("compile net.py --inputs grey.npz", 3, "shape (1, 1, 8, 8)", "axis 1 has 1 where the model has 3"),
    ("compile net.py --inputs last.npz", 3, "shape (1, 8, 8, 3)", "array.transpose(0, 3, 1, 2)"),
    ("compile net.py --inputs image.npz", 3, "shape (3, 8, 8)", "the first axis is missing: array[None]"),
    ("compile bare.py", 3, "bare.py has no example inputs", "such as example_inputs = (torch.randn("),
    ("compile named.py", 3, "must be a tensor or a tuple of tensors, not dict", "in the order of forward"),
    ("compile grey.py", 3, "takes 3 channels, and its input of shape (1, 1, 8, 8) has 1", "(N, 3, H, W)"),
    ("compile two.py", 3, "two.py defines 2 models (Net, Other)", "name one: two.py:Net"),
    (
        "compile cuda.py",
        3,
        "it asks for CUDA, and models are compiled on the CPU, at cuda.py",
        "leave .cuda()",
    ),
    (
        "compile weights.py",
        3,
        "it opens best.pth, and there is no such file",
        "relative to the working folder",
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("mistakes")
    (place / "pkg").mkdir()
    for name, text in FILES.items():
        (place / name).write_text(text)
    (place / "add.pte").write_bytes((GOLDEN_PTE / "add_u55.pte").read_bytes())
    zeros = {name: np.zeros(shape, np.float32) for name, shape in _SHAPES.items()}
    for name in ("grey", "last", "image"):
        np.savez(place / f"{name}.npz", input0=zeros[name])
    np.savez(place / "one.npz", zeros["grey"])
    np.savez(place / "x.npz", x=zeros["grey"])
    return place


_SHAPES = {"grey": (1, 1, 8, 8), "last": (1, 8, 8, 3), "image": (3, 8, 8)}


@pytest.mark.torch
@pytest.mark.parametrize(("command", "code", "message", "hint"), MISTAKES, ids=[row[0] for row in MISTAKES])
def test_a_mistake(command: str, code: int, message: str, hint: str, folder: Path) -> None:
    outcome = sdk(*command.split(" "), cwd=folder)
    assert_clear(outcome, code, message)
    assert hint in " ".join(outcome.err.split(" "))


_LEFT_OUT = """
def quantizer(default):
    default.set_node_target(torch.ops.aten.add.Tensor, None)
    return default
"""


@pytest.mark.torch
def test_the_partitioners_words_are_explained(folder: Path) -> None:
    body = "y = self.c(x); return y + 1, torch.sort(y)[0]"
    (folder / "sort.py").write_text(FILES["net.py"].replace("return self.c(x)", body) + _LEFT_OUT)
    outcome = sdk("compile", "sort.py", "--no-check", cwd=folder)
    assert outcome.code == 0, outcome.err
    assert "it is in float: Arm's quantiser does not know it, or was told to leave it out" in outcome.out
    assert "ExecuTorch's Arm backend does not have it on any NPU" in outcome.out
    assert "marked as quantized" not in outcome.out
