"""Means over an image are computed as depthwise convolutions, with the values of the model in PyTorch."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.compile.faster.judging import compiled, rewritten
from tests.integration.compile.forms.models import Form

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

AS_CONVOLUTION = "mean as depthwise convolution"
IMAGE = Form(
    "image",
    "y = self.c(x); return y.mean((2, 3)), y.mean((-1, -2), keepdim=True) * 2",
    "torch.randn(2, 3, 9, 7)",
    "self.c = nn.Conv2d(3, 20, 3, padding=1)",
)


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u85-256"])
@pytest.mark.parametrize("quantize", ["int8", "int16"])
def test_means_of_two_images(quantize: str, target: str, tmp_path: Path, host_runner: Path) -> None:
    found = compiled(replace(IMAGE, quantize=quantize, target=target), tmp_path, host_runner)
    assert (found.gains, found.on_cpu) == ([AS_CONVOLUTION], [])
    assert min(found.sqnr_db) > (30 if quantize == "int8" else 50)


@pytest.mark.parametrize(
    ("shape", "axes", "is_rewritten"),
    [
        ((1, 4, 64, 64), (2, 3), True),
        ((2, 4, 1, 9), (3, 2), True),
        ((1, 4, 65, 2), (2, 3), False),
        ((1, 4, 1, 1), (2, 3), False),
        ((1, 4, 5, 6), (1, 2), False),
        ((1, 4, 5, 6), (3,), False),
        ((4, 5, 6), (1, 2), False),
    ],
)
@pytest.mark.parametrize("keeps", [True, False])
def test_which_means(shape: tuple[int, ...], axes: tuple[int, ...], is_rewritten: bool, keeps: bool) -> None:
    import torch

    class Mean(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.mean(axes, keepdim=keeps)

    assert rewritten(Mean(), (torch.randn(shape),))[1] == [AS_CONVOLUTION] * is_rewritten
