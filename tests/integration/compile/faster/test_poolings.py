"""Poolings beyond the limits of the NPU are computed there, with the values of the model in PyTorch."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.compile.faster.judging import compiled, rewritten
from tests.integration.compile.forms.models import Form

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

_LAYER = "self.c = nn.Conv2d(3, 8, 3, padding=1)"
# The last layers of DS-CNN: a pooling whose kernel and stride are all of the feature map.
WHOLE = Form(
    "whole",
    "return self.p(self.c(x))",
    "torch.randn(1, 3, 25, 5)",
    f"{_LAYER}; self.p = nn.AvgPool2d((25, 5))",
)
AVERAGES = Form(
    "averages",
    "x = self.c(x); return F.avg_pool2d(x, 5), F.avg_pool2d(x, 9, 1, 4, False, False), F.avg_pool1d(x.flatten(2), 6)",
    "torch.randn(2, 3, 20, 18)",
    _LAYER,
)
MAXIMA = Form(
    "maxima",
    "x = self.c(x); return F.max_pool2d(x, 5), F.max_pool2d(x, 7, 4, 3), F.max_pool1d(x.flatten(2), 5)",
    "torch.randn(1, 3, 20, 18)",
    _LAYER,
)
ADAPTIVE = Form(
    "adaptive",
    "x = self.c(x); return F.adaptive_avg_pool2d(x, (3, 7)), F.adaptive_max_pool2d(x, (5, 3)), "
    "F.adaptive_max_pool2d(x, (3, 7))",
    "torch.randn(1, 3, 20, 18)",
    _LAYER,
)
# For Ethos-U85, Vela would read padding alone with such strides.
PADDED = Form(
    "padded",
    "x = self.c(x); return F.max_pool2d(x, 7, 4, 3), F.avg_pool2d(x, 4, 4, 2, True, False)",
    "torch.randn(2, 3, 21, 18)",
    _LAYER,
    "ethos-u85-256",
)
POOLING = ["pooling as mean", "mean as depthwise convolution"]
# Functions of torch.nn.functional, with what follows the input; the gain where an Ethos-U55 needs another form.
_AVERAGED, _GREATEST = "pooling as convolutions", "maxima in steps"
_ADAPTED = "adaptive pooling of all windows"
_WINDOWS = (
    ("avg_pool2d", (5,), _AVERAGED),
    ("avg_pool2d", (9, 1, 4, False, False), _AVERAGED),
    ("avg_pool2d", (3, 2, 1, True, True), _AVERAGED),
    ("avg_pool2d", (3, 2, 1, True, False), _AVERAGED),
    ("avg_pool2d", ((3, 4), (4, 5), (1, 2), True, False), _AVERAGED),
    ("avg_pool2d", ((3, 4), (4, 5), (1, 2), False, True, 5), _AVERAGED),
    ("avg_pool2d", (3, 2, 1, False, True, 5), ""),
    ("avg_pool1d", (6,), _AVERAGED),
    ("avg_pool1d", (7, 5, 3, True, False), _AVERAGED),
    ("max_pool2d", (5,), _GREATEST),
    ("max_pool2d", (7, 4, 3), _GREATEST),
    ("max_pool2d", (4, 4, 1, 1, True), _GREATEST),
    ("max_pool2d", ((9, 2), (5, 4), (4, 1), 1, True), _GREATEST),
    ("max_pool2d", ((2, 7), (5, 1)), _GREATEST),
    ("max_pool2d", (3, 2, 1, 2), _GREATEST),
    ("max_pool2d", (3, 2, 1, 1, True), ""),
    ("max_pool1d", (3, 2, 1, 1, True), _GREATEST),
    ("max_pool1d", (5,), _GREATEST),
    ("adaptive_avg_pool2d", ((4, 4),), _ADAPTED),
    ("adaptive_avg_pool2d", ((40, 50),), _ADAPTED),
    ("adaptive_avg_pool2d", ((7, None),), _ADAPTED),
    ("adaptive_avg_pool1d", (7,), _ADAPTED),
    ("adaptive_max_pool2d", ((5, 6),), _ADAPTED),
    ("adaptive_max_pool2d", ((40, 7),), _ADAPTED),
    ("adaptive_max_pool1d", (7,), _ADAPTED),
)


@pytest.mark.parametrize("quantize", ["int8", "int16"])
def test_a_pooling_of_all_is_a_mean(quantize: str, tmp_path: Path, host_runner: Path) -> None:
    found = compiled(replace(WHOLE, quantize=quantize), tmp_path, host_runner)
    assert (found.gains, found.on_cpu) == (POOLING, [])
    assert min(found.sqnr_db) > 30


def test_as_written_it_stays_on_the_cpu(tmp_path: Path, host_runner: Path) -> None:
    found = compiled(WHOLE, tmp_path, host_runner, as_written=True)
    assert (found.gains, found.on_cpu) == ([], ["aten::avg_pool2d.out"])


def test_as_written_padding_beside_large_strides_stays_on_the_cpu(tmp_path: Path, host_runner: Path) -> None:
    found = compiled(PADDED, tmp_path, host_runner, as_written=True)
    assert set(found.on_cpu) == {"aten::max_pool2d_with_indices.out", "aten::avg_pool2d.out"}
    assert min(found.sqnr_db) > 27


def test_only_what_it_sees_counts() -> None:
    import torch

    for window, names in (((25, 5), POOLING), ((24, 4), POOLING), ((5, 5), [_AVERAGED])):
        pool = torch.nn.AvgPool2d(window)
        assert rewritten(pool, (torch.randn(1, 3, 25, 5),))[1] == names


@pytest.mark.parametrize("batch", [1, 2])
def test_windows_give_the_values_of_pytorch(batch: int) -> None:
    """Negative values beside the edges, many of them equal: padding must not count as a zero."""
    import torch

    class Pool(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            pool = getattr(torch.nn.functional, name)
            return pool(x.flatten(2) if "1d" in name else x, *window)  # type: ignore[no-any-return]

    for name, window, gain in _WINDOWS:
        for x in (torch.randn(batch, 3, 20, 24), -torch.rand(batch, 3, 20, 24).mul(4).ceil()):
            taken = rewritten(Pool(), (x,))[1]
            assert taken == [gain] * bool(gain) or batch > 1, (name, window)
        rewritten(Pool(), (x,), "ethos-u85-256")


_COMPILED = (
    (AVERAGES, "ethos-u55-128", "int8"),
    (AVERAGES, "ethos-u65-256", "int16"),
    (MAXIMA, "ethos-u55-128", "int8"),
    (ADAPTIVE, "ethos-u65-256", "int8"),
    (ADAPTIVE, "ethos-u85-256", "int8"),
    (PADDED, "ethos-u85-256", "int16"),
)


@pytest.mark.parametrize(
    ("form", "target", "quantize"), _COMPILED, ids=lambda value: getattr(value, "name", value)
)
def test_the_npu_computes_them(
    form: Form, target: str, quantize: str, tmp_path: Path, host_runner: Path
) -> None:
    found = compiled(replace(form, target=target, quantize=quantize), tmp_path, host_runner)
    assert not found.on_cpu
    assert min(found.sqnr_db) > 27
