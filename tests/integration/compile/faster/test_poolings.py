"""Poolings beyond the limits of the NPU are computed there, with the values of the model in PyTorch."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.compile.faster.judging import compiled, rewritten
from tests.integration.compile.forms.models import Form

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

POOLING = ["pooling as mean", "mean as depthwise convolution"]
# The last layers of DS-CNN: a pooling whose kernel and stride are all of the feature map.
WHOLE = Form(
    "whole",
    "return self.p(self.c(x))",
    "torch.randn(1, 3, 25, 5)",
    "self.c = nn.Conv2d(3, 8, 3, padding=1); self.p = nn.AvgPool2d((25, 5))",
)


@pytest.mark.parametrize("quantize", ["int8", "int16"])
def test_a_pooling_of_all_is_a_mean(quantize: str, tmp_path: Path, host_runner: Path) -> None:
    found = compiled(replace(WHOLE, quantize=quantize), tmp_path, host_runner)
    assert (found.gains, found.on_cpu) == (POOLING, [])
    assert min(found.sqnr_db) > 30


def test_as_written_it_stays_on_the_cpu(tmp_path: Path, host_runner: Path) -> None:
    found = compiled(WHOLE, tmp_path, host_runner, as_written=True)
    assert (found.gains, found.on_cpu) == ([], ["aten::avg_pool2d.out"])


def test_only_what_it_sees_counts() -> None:
    import torch

    for window, names in (((25, 5), POOLING), ((24, 4), POOLING), ((5, 5), [])):
        pool = torch.nn.AvgPool2d(window)
        assert rewritten(pool, (torch.randn(2, 3, 25, 5),))[1] == names
