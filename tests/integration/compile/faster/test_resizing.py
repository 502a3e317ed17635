"""Resizing that the NPU has not is computed there, with the values of the model in PyTorch."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.compile.faster.judging import compiled, rewritten
from tests.integration.compile.forms.models import Form

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

RESIZED = Form(
    "resized",
    "x = self.c(x); y = F.interpolate(x, scale_factor=2, mode='bilinear'); "
    "return self.d(y), F.interpolate(x, size=(9, 30), mode='bilinear', align_corners=True), "
    "F.interpolate(x, scale_factor=1.7, mode='bilinear')",
    "torch.randn(1, 3, 12, 10)",
    "self.c = nn.Conv2d(3, 8, 3, padding=1); self.d = nn.Conv2d(8, 8, 3, padding=1)",
)
# The shape, and what `interpolate` is given.
_FORMS: tuple[tuple[tuple[int, ...], dict[str, Any]], ...] = (
    ((1, 3, 5, 7), {"scale_factor": 2, "mode": "bilinear"}),
    ((1, 3, 5, 7), {"size": (11, 13), "mode": "bilinear", "align_corners": True}),
    ((1, 4, 6, 6), {"scale_factor": 1.7, "mode": "bilinear"}),
    ((1, 4, 6, 6), {"scale_factor": (1.7, 0.6), "mode": "bilinear", "recompute_scale_factor": True}),
    ((1, 3, 40, 50), {"size": (10, 25), "mode": "bilinear"}),
    ((1, 20, 33, 65), {"scale_factor": 2, "mode": "bilinear", "align_corners": True}),
    ((1, 3, 1, 1), {"size": (8, 8), "mode": "bilinear"}),
    ((1, 3, 5, 7), {"size": (11, 13), "mode": "bilinear", "antialias": True}),
    ((2, 3, 5, 7), {"scale_factor": 2, "mode": "bilinear"}),
    ((2, 3, 5, 7), {"scale_factor": 2, "mode": "nearest"}),
    ((1, 3, 9), {"size": 20, "mode": "linear"}),
    ((1, 3, 9), {"scale_factor": 1.3, "mode": "nearest"}),
    ((1, 3, 9, 5), {"scale_factor": 3, "mode": "nearest"}),
    ((1, 3, 9, 5), {"size": (4, 7), "mode": "nearest-exact"}),
)


def test_all_sizes_give_the_values_of_pytorch() -> None:
    import torch

    class Resize(torch.nn.Module):
        def __init__(self, options: dict[str, Any]) -> None:
            super().__init__()
            self.options = options

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.interpolate(x, **self.options)

    for shape, options in _FORMS:
        for module in (Resize(options), torch.nn.Sequential(Resize(options), torch.nn.ReLU())):
            assert rewritten(module, (torch.randn(shape),))[1] == ["resizing in small steps"]


def test_what_the_npu_has_stays() -> None:
    import torch

    x = torch.randn(1, 3, 6, 6)
    nearest, bilinear = (torch.nn.Upsample(scale_factor=2, mode=mode) for mode in ("nearest", "bilinear"))
    assert not rewritten(nearest, (x,))[1]
    assert not rewritten(bilinear, (x,), "ethos-u85-256")[1]
    # Between the two axes, int8 loses more of weights of both signs.
    assert not rewritten(torch.nn.Upsample(scale_factor=2, mode="bicubic"), (x,))[1]


_COMPILED = (("ethos-u55-128", "int8", 1), ("ethos-u65-256", "int16", 2), ("ethos-u85-256", "int8", 2))


@pytest.mark.parametrize(("target", "quantize", "batch"), _COMPILED)
def test_the_npu_resizes(target: str, quantize: str, batch: int, tmp_path: Path, host_runner: Path) -> None:
    form = replace(RESIZED, inputs=f"torch.randn({batch}, 3, 12, 10)", target=target, quantize=quantize)
    found = compiled(form, tmp_path, host_runner)
    assert not found.on_cpu
    assert min(found.sqnr_db) > 30
