"""Convolutions beyond the limits of the NPU are computed there, with the values of the model in PyTorch."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.compile.faster.judging import compiled, rewritten
from tests.integration.compile.forms.models import Form

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

LARGE, TRANSPOSED = "large convolution as a small one", "transposed convolution as convolutions"
# Patches of images, and back; the encoder and decoder of a Conv-TasNet; layers with groups.
IMAGES = Form(
    "images",
    "y = self.b(self.a(x)); return self.d(self.u(self.t(y.relu())))",
    "torch.randn(2, 3, 48, 32)",
    "self.a = nn.Conv2d(3, 16, 7, 4, 3); self.b = nn.Conv2d(16, 24, 4, 4); self.t = nn.ConvTranspose2d(24, 8, 4, 4); "
    "self.u = nn.ConvTranspose2d(8, 8, 3, 2, 1, 1, groups=2); self.d = nn.Conv2d(8, 16, 3, 1, 1, groups=8)",
)
LINES = Form(
    "lines",
    "y = self.n(self.a(x)); z = y * torch.sigmoid(self.m(y)); return self.t(z), self.g(z)",
    "torch.randn(1, 1, 328)",
    "self.a = nn.Conv1d(1, 16, 16, 8); self.n = nn.BatchNorm1d(16); self.m = nn.Conv1d(16, 16, 1); "
    "self.g = nn.Conv1d(16, 8, 5, 4, 2, groups=2); self.t = nn.ConvTranspose1d(16, 1, 16, 8)",
)
MIXED = Form(
    "mixed",
    "return self.n(self.c(self.b(self.a(x)).relu()))",
    "torch.randn(2, 4, 24, 20)",
    "self.a = nn.Conv2d(4, 8, 5, 4, 2, groups=4); self.b = nn.ConvTranspose2d(8, 4, 3, 1, 1, dilation=2); "
    "self.c = nn.ConvTranspose2d(4, 6, 2, 3); self.n = nn.BatchNorm2d(6)",
)
U55, U65, U85 = "ethos-u55-128", "ethos-u65-256", "ethos-u85-256"


@pytest.mark.parametrize(
    ("form", "target", "quantize"),
    [
        (IMAGES, U55, "int8"),
        (IMAGES, U85, "int8"),
        (LINES, U65, "int16"),
        (LINES, U85, "int8"),
        (MIXED, U65, "int8"),
        (MIXED, U55, "int16"),
        (MIXED, U85, "int16"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_all_is_on_the_npu(form: Form, target: str, quantize: str, tmp_path: Path, host_runner: Path) -> None:
    found = compiled(replace(form, target=target, quantize=quantize), tmp_path, host_runner)
    assert set(found.gains) == {LARGE, TRANSPOSED}
    assert found.on_cpu == []
    assert min(found.sqnr_db) > (35 if quantize == "int8" else 45)


def test_the_values_are_as_near_as_those_as_written(tmp_path: Path, host_runner: Path) -> None:
    """The encoder of a SegFormer, whose convolution the CPU computes as it is written."""
    form = Form("stem", "return self.c(x)", "torch.randn(1, 3, 32, 32)", "self.c = nn.Conv2d(3, 32, 7, 4, 3)")
    distances = []
    for as_written in (False, True):
        folder = tmp_path / str(as_written)
        folder.mkdir()
        found = compiled(form, folder, host_runner, as_written=as_written)
        assert found.on_cpu == (["aten::convolution.out"] if as_written else [])
        distances.append(found.sqnr_db[0])
    assert distances[0] > distances[1] - 0.3


@pytest.mark.parametrize(
    ("name", "shape", "arguments"),
    [
        ("Conv2d", (1, 3, 32, 32), (3, 8, 16, 16)),
        ("Conv2d", (2, 3, 33, 30), (3, 8, 4, 4)),
        ("Conv2d", (1, 3, 32, 31), (3, 8, 7, 4, 2)),
        ("Conv2d", (2, 3, 32, 32), (3, 8, 7, 4, 3)),
        ("Conv2d", (1, 3, 20, 33), (3, 8, (3, 9), (2, 5), (0, 4))),
        ("Conv2d", (1, 4, 40, 40), (4, 8, 3, 4, 2, 3)),
        ("Conv2d", (1, 4, 20, 20), (4, 8, 1, 5, 0, 1, 2)),
        ("Conv2d", (2, 4, 21, 20), (4, 8, 5, 4, 2, 1, 4)),
        ("Conv2d", (2, 4, 9, 9), (4, 12, 3, 1, 1, 1, 4)),
        ("Conv2d", (1, 2, 70, 72), (2, 3, (66, 70), (1, 2), (3, 0))),
        ("Conv1d", (2, 1, 100), (1, 8, 16, 8)),
        ("Conv1d", (1, 4, 99), (4, 8, 5, 7, 3, 2, 2)),
        ("Conv1d", (1, 1, 4200), (1, 2, 4099)),
        ("ConvTranspose1d", (2, 8, 9), (8, 1, 16, 8)),
        ("ConvTranspose1d", (1, 4, 9), (4, 6, 5, 3, 1, 2, 2)),
        ("ConvTranspose2d", (2, 3, 5, 6), (3, 8, 4, 4)),
        ("ConvTranspose2d", (1, 3, 5, 6), (3, 8, 2, 2)),
        ("ConvTranspose2d", (1, 3, 5, 6), (3, 8, 3, 2, 1, 1)),
        ("ConvTranspose2d", (2, 4, 5, 6), (4, 8, 4, 2, 1, 0, 2)),
        ("ConvTranspose2d", (1, 4, 5, 6), (4, 4, 5, 3, 2, 1, 4, False, 2)),
        ("ConvTranspose2d", (1, 3, 5, 6), (3, 8, 1, 3, 0, 2)),
        ("ConvTranspose2d", (1, 3, 5, 6), (3, 8, 3, 1, 4, 0, 1, True, 3)),
    ],
    ids=str,
)
def test_each_form_has_the_same_values(name: str, shape: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
    import torch

    layer = getattr(torch.nn, name)(*arguments)
    _, gains = rewritten(layer, (torch.randn(shape),))
    assert gains == [TRANSPOSED if "Transpose" in name else LARGE]


def test_what_the_npu_has_stays() -> None:
    import torch

    image, line = torch.randn(1, 4, 12, 12), torch.randn(1, 4, 80)
    for layer, values in (
        (torch.nn.Conv2d(4, 8, 3, 3), image),
        (torch.nn.Conv2d(4, 8, 3, 1, 4, 4), image),
        (torch.nn.Conv2d(4, 8, 3, 1, 1, 1, 2), image),
        (torch.nn.Conv2d(4, 4, 3, 1, 1, 1, 4), image),
        (torch.nn.Conv1d(4, 8, 70), line),
        (torch.nn.ConvTranspose2d(4, 8, 3), image),
    ):
        assert rewritten(layer, (values,))[1] == []
    assert rewritten(torch.nn.ConvTranspose2d(4, 8, 2, 2), (image,), U85)[1] == []
