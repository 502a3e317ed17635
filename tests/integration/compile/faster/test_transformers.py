"""Layers of transformers cost the NPU less than as they are written, and give the values of the model in PyTorch."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.compile.faster.judging import compiled, rewritten
from tests.integration.compile.forms.models import Form

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

PARTS, SHORTER = "attention's projection in parts", "shorter layer normalisation"
ATTENTION = Form(
    "attention",
    "q, k, v = self.l(self.n(x)).reshape(2, 9, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0); "
    "return self.m(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, 9, 16) + x)",
    "torch.randn(2, 9, 16)",
    "self.n = nn.LayerNorm(16); self.l = nn.Linear(16, 48); self.m = nn.LayerNorm(16); "
    "[nn.init.uniform_(p, 0.5, 2) for p in (*self.n.parameters(), *self.m.parameters())]",
)


@pytest.mark.parametrize(
    ("quantize", "target"), [("int8", "ethos-u55-128"), ("int8", "ethos-u85-256"), ("int16", "ethos-u85-256")]
)
def test_attention(quantize: str, target: str, tmp_path: Path, host_runner: Path) -> None:
    form = replace(ATTENTION, quantize=quantize, target=target)
    found = compiled(form, tmp_path, host_runner)
    assert (sorted(set(found.gains)), found.on_cpu) == ([PARTS, SHORTER], [])
    kept = compiled(form, tmp_path, host_runner, as_written=True)
    assert kept.gains == []
    assert found.sqnr_db[0] > kept.sqnr_db[0] - 0.3


def _taken(body: str, layers: str = "self.l = nn.Linear(16, 48)") -> list[str]:
    """The rewrites of a model with such a body, whose values stay."""
    import torch

    names: dict[str, Any] = {}
    source = "import torch\nfrom torch import nn\nclass Net(nn.Module):\n"
    source += f"    def __init__(self):\n        super().__init__()\n        {layers}\n"
    source += f"    def forward(self, x):\n        {body}\n"
    exec(source, names)
    torch.manual_seed(0)
    return rewritten(names["Net"]().eval(), (torch.randn(2, 9, 16),))[1]


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (
            "y = self.l(x).view(2, 9, 3, 4, 4).permute(2, 0, 3, 1, 4); return y[0] @ y[1].transpose(-1, -2) @ y[2]",
            1,
        ),
        ("y = self.l(x).view(2, 9, 3, 16).transpose(0, 2); return y[0], y[-1]", 1),
        (
            "y = self.l(x).unflatten(-1, (3, 16)).unsqueeze(0).transpose(0, -2).squeeze(-2); return y[0] * y[2]",
            1,
        ),
        ("return self.l(x).view(2, 9, 3, 16).permute(2, 0, 1, 3)", 0),
        ("y = self.l(x).view(2, 9, 3, 16).permute(2, 0, 1, 3); return y[0], y", 0),
        ("y = self.l(x).view(2, 9, 3, 16).permute(3, 0, 1, 2); return y[0], y[1]", 0),
        ("y = self.l(x).view(2, 9, 4, 12).permute(2, 0, 1, 3); return y[1:].sum(0)", 0),
        ("y = self.l(x); return y.view(2, 9, 3, 16).permute(2, 0, 1, 3)[0], y", 0),
    ],
)
def test_which_projections_are_split(body: str, count: int) -> None:
    assert _taken(body) == [PARTS] * count


@pytest.mark.parametrize("affine", ["True", "True, bias=False", "False"])
@pytest.mark.parametrize("layer", ["nn.Linear(16, 8)", "nn.Linear(16, 8, bias=False)", "nn.ReLU()"])
@pytest.mark.parametrize(
    "body", ["return self.l(self.n(x))", "y = self.n(x); return self.l(y), self.l(y) * 2, y"]
)
def test_which_normalisations_are_folded(body: str, layer: str, affine: str) -> None:
    layers = f"self.l = {layer}; self.n = nn.LayerNorm(16, 1e-3, {affine}); "
    layers += "[nn.init.uniform_(p, 0.5, 2) for p in self.n.parameters()]"
    assert _taken(body, layers) == [SHORTER]


def test_a_normalisation_over_two_axes_stays() -> None:
    assert _taken("return self.l(x)", "self.l = nn.LayerNorm((9, 16))") == []
