"""Operators that move or choose values run on the NPU, with the values of the model in PyTorch."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.compile.faster.judging import compiled, rewritten
from tests.integration.compile.forms.models import Form

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

Function = Callable[[Any], Any]

PLANE = (2, 4, 8, 6)
_APART, _SLICED, _PICKED, _FACTORS = (
    "operators taken apart",
    "windows as slices",
    "indices as slices",
    "masks as factors",
)
# By the name of what they are for: a line of Python over x.
SPELLINGS = {
    "narrow": "x.narrow(1, 1, 2)",
    "axes": "x.swapaxes(1, 2) + x.mT.reshape_as(x.swapdims(1, 2))",
    "shapes": "x[:, :1].expand_as(x) + x[:, :1].broadcast_to(x.shape) + torch.atleast_3d(x)",
    "stacks": "torch.cat([torch.hstack((x, x)), torch.vstack((x, x)).reshape(2, 8, 8, 6)], 1)",
    "splits": "torch.cat([*torch.tensor_split(x, 3, 2), *torch.tensor_split(x, (1, 3), 2)[::-1]], 2)",
    "arithmetic": "torch.subtract(torch.multiply(x, x), torch.negative(x).square()) + torch.absolute(x)",
    "minimum": "torch.min(x, 2 * x) + torch.max(x, -x).clip(0.1, 0.5)",
    "limits": "x.clamp_min(0.1) + x.clamp_max(0.2) + x.clamp_min(-x) + x.clamp_max(x * 2)",
    "normalize": "F.normalize(x, dim=1)",
    "extremes": "torch.stack([x.max(), x.min(), (0 * x).max()])",
    "rms": "F.rms_norm(x, (6,))",
}
WINDOWS = {
    "roll": "x.roll((1, -2), (2, 3)) + x.roll(-9, 1) + x.roll(5) + x.roll(8, 2)",
    "apart": "x.unfold(2, 4, 4) + x[:, :, :7].unfold(-2, 3, 3)[..., :1]",
    "overlapping": "torch.cat([x.flatten(2).unfold(2, 12, 8), x.flatten(2).unfold(-1, 12, 6)], 2)",
    "dense": "x.unfold(3, 2, 1)",
    "few": "x.flatten(2).unfold(2, 45, 1)",
    "sparse": "x.unfold(2, 2, 5)",
    "one": "x.unfold(1, 4, 3)",
    "im2col": "F.unfold(x, (3, 2), dilation=(2, 1), padding=(1, 2), stride=(2, 3))",
    "patches": "F.unfold(x, 4, padding=(0, 1), stride=4)",
    "fold": "F.fold(x.reshape(2, 16, 12), (8, 6), 2, stride=2)",
    "flip": "x.flip(3) + x.flip(0, 2) + x.flip(1, 3) + x.flip(-1)",
}
_INDEX = "torch.tensor([3, 0, 1, 2, 2, 1])"
INDICES = {
    "select": "x.index_select(1, torch.tensor([3, 0, 2])) + x.index_select(1, torch.tensor([1, 2, 3]))",
    "one": f"x[:, {_INDEX}]",
    "last": "x[..., [5, 3, -5, 0]]",
    "first": "x[[1, 0, 0]]",
    "grid": "x[:, :, torch.tensor([[0, 2], [4, 7]])]",
    "pairs": "x[:, :, torch.tensor([[0], [-2]]), torch.tensor([1, 3, 5])]",
    "gather": f"x.gather(1, {_INDEX}.view(1, 6, 1, 1).expand(2, 6, 8, 6))",
    "many": "x.flatten(2)[:, :, torch.arange(48).pow(2).fmod(48)]",
    "many-first": "x.flatten(1).transpose(0, 1)[torch.arange(191, -1, -1).fmod(50)]",
}
_MASK = "torch.eye(8, 6).bool()"
MASKS = {
    "number": f"torch.where({_MASK}, x, 0.0) + torch.where({_MASK}, 0.5, x)",
    "both": f"torch.where({_MASK}, x, 2 * x)",
    "constant": f"torch.where({_MASK}, x, torch.arange(6.0))",
    "fill": f"x.masked_fill({_MASK}, -1.0).masked_fill(~{_MASK}, torch.tensor(0.0))",
    "triangles": "x.tril() + x.triu(1) + x.tril(-2)",
    "wider": "torch.where(torch.eye(4).bool().view(4, 1, 4, 1, 1), x, 1.0)",
    "all": f"torch.where({_MASK} | True, x, -1.0)",
}


def _function(line: str) -> Any:
    import torch

    names: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}

    class Net(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return eval(line, {**names, "x": x})

    return Net()


def _judged(line: str, target: str, name: str, inputs: Sequence[Any] | None = None) -> None:
    import torch

    torch.manual_seed(0)
    _, gains = rewritten(_function(line), inputs or (torch.randn(PLANE),), target)
    assert set(gains) <= {name, "constants folded"}
    assert name in gains


@pytest.mark.parametrize("line", SPELLINGS.values(), ids=SPELLINGS)
def test_spellings(line: str) -> None:
    _judged(line, "ethos-u55-128", _APART)


@pytest.mark.parametrize("line", WINDOWS.values(), ids=WINDOWS)
def test_windows(line: str) -> None:
    _judged(line, "ethos-u55-128", _SLICED)


@pytest.mark.parametrize("line", INDICES.values(), ids=INDICES)
def test_constant_indices(line: str) -> None:
    for target in ("ethos-u65-256", "ethos-u85-256"):
        _judged(line, target, _PICKED)


@pytest.mark.parametrize("line", MASKS.values(), ids=MASKS)
def test_constant_masks(line: str) -> None:
    _judged(line, "ethos-u55-128", _FACTORS)


def test_ties_limits_and_what_hides_scores() -> None:
    """Equal largest values, values on a limit, negative zeros; -inf and what is added to scores stay as they are."""
    import torch

    x = torch.tensor([[1.0, 3.0, 3.0], [0.1, 0.2, -0.0], [-3.0, 0.5, 3.0]]).repeat(2, 2, 1)
    for line in (
        "torch.stack([x.max(), x.min(), x.clamp_min(0.1).amax(), x.clamp_max(0.2).amin()])",
        "x.clip(0.1, 0.2) + x.clamp_min(x) + torch.max(x, x)",
    ):
        _judged(line, "ethos-u55-128", _APART, (x,))
    for low in ("float('-inf')", "-1e4", "torch.finfo(torch.float32).min", "float('nan')"):
        line = f"torch.where(torch.ones(3, 3).tril().bool(), x[:, :3], {low})[..., :1]"
        _, gains = rewritten(_function(line), (x,))
        assert _FACTORS not in gains


def test_integers_and_computed_masks_stay() -> None:
    import torch

    x = torch.arange(24).view(2, 3, 4)
    for line in ("x.clamp_min(3)", "x.flip(0)", "x[:, [1, 0]]", "x.tril()", "x.narrow(1, 0, 2)"):
        assert set(rewritten(_function(line), (x,))[1]) <= {"constants folded", _SLICED}
    assert rewritten(_function("torch.where(x > 0, x, 0.5 * x)"), (torch.randn(2, 3),))[1] == []


# All of them in one network; what they give is used further on.
SHAPES = Form(
    "shapes",
    """y = self.c(x)
        largest = y.abs().amax((1, 2, 3), True).clamp_min(1e-3).expand_as(y)
        mask = torch.eye(8, 6).bool()
        return (
            y.roll((1, -2), (2, 3)) + y.flip(3),
            F.unfold(y, 3, padding=1).view(-1, 4, 9, 48).sum(2),
            y.narrow(1, 1, 2).square() + torch.arange(6).cumsum(0).fmod(4) / 4,
            y[:, [3, 0, 2]] / largest[:, :3],
            y.flatten(2)[:, :, torch.arange(48).pow(2).fmod(48)],
            torch.where(mask, y, 0.5).tril(),
            torch.where(mask, y, -2 * y),
            y.unfold(3, 4, 2).amax((1, 4)),
        )""",
    "torch.randn(1, 3, 8, 6)",
    "self.c = nn.Conv2d(3, 4, 3, padding=1)",
)


@pytest.mark.parametrize(
    ("target", "quantize", "batch"),
    [
        ("ethos-u55-128", "int8", 1),
        ("ethos-u65-256", "int16", 2),
        ("ethos-u85-256", "int8", 2),
        ("ethos-u85-256", "int16", 1),
    ],
)
def test_all_of_them_are_on_the_npu(
    target: str, quantize: str, batch: int, tmp_path: Path, host_runner: Path
) -> None:
    form = replace(SHAPES, target=target, quantize=quantize, inputs=f"torch.randn({batch}, 3, 8, 6)")
    found = compiled(form, tmp_path, host_runner)
    assert set(found.gains) == {_APART, _SLICED, _PICKED, _FACTORS, "constants folded"}
    assert found.on_cpu == []
    assert min(found.sqnr_db) > {"int8": 30.0, "int16": 45.0}[quantize]
