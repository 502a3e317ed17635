"""Parts of a model that depend on no input are constants of the program. States and weights are not."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.compile.rewrite import frame
from ethosu_sdk.compile.rewrite.before_quantisation import Goal
from tests.integration.compile.faster.judging import compiled, rewritten
from tests.integration.compile.forms.models import Form

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

# By the name of what they are: a line of Python over x, [2, 4, 6, 6], and the model.
PARTS = {
    "positions": "x + (torch.arange(6).cumsum(0) % 4).float().fmod(3)",
    "turns": "x * (torch.arange(6) / 10.0 ** torch.arange(6)).sin()",
    "mask": "x + torch.full((6, 6), -3.0).triu(1) * (torch.arange(6) >= 2)",
    "windows": "x + (torch.zeros(6, 6).index_fill(0, torch.tensor([1, 2]), 1.0) == 1).float()",
    "table": "x + model.table[torch.arange(6)] + model.embedding(torch.tensor([0, 3, 1, 2, 2, 0]))",
    "parameter": "x * (1 + model.scale) * model.scale.view(6, 1).softmax(0)",
    "buffer": "x + model.steps[1:7]",
    "parts": "x + torch.arange(12.0).chunk(2)[1] + torch.arange(6.0).topk(6).values",
}
# What is no constant, or stays as it is.
KEPT = {
    "input": "x + torch.ones_like(x[0, 0]).cumsum(0) * x.mean()",
    "drawn": "x + 0 * torch.rand(6)",
    "weight": "torch.nn.functional.linear(x, model.scale.view(6, 1).t() * model.scale.view(6, 1))",
    "shape": "x @ model.table[:6].t()",
    "fill": "x + torch.full((6,), 2.0)",
}


def _model(line: str) -> Any:
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.rand(6))
            self.table = torch.nn.Parameter(torch.rand(9, 6))
            self.embedding = torch.nn.Embedding(4, 6)
            self.register_buffer("steps", torch.arange(8))
            self.register_buffer("count", torch.zeros(6))

        def forward(self, x: Any) -> Any:
            return eval(line, {"torch": torch, "model": self, "x": x})

    torch.manual_seed(0)
    return Net()


def _operators(program: Any) -> list[Any]:
    return [node for node in program.graph.nodes if node.op == "call_function"]


@pytest.mark.parametrize("line", PARTS.values(), ids=PARTS)
def test_parts_of_constants_are_folded(line: str) -> None:
    import torch

    program, gains = rewritten(_model(line), (torch.randn(2, 4, 6, 6),))
    assert set(gains) == {"constants folded"}
    assert all(node.all_input_nodes for node in _operators(program))
    computed = {node.name for node in _operators(program)} | {"x"}
    assert all(computed & {source.name for source in node.all_input_nodes} for node in _operators(program))


@pytest.mark.parametrize("line", KEPT.values(), ids=KEPT)
def test_what_is_no_constant_stays(line: str) -> None:
    import torch

    _, gains = rewritten(_model(line), (torch.randn(2, 4, 6, 6),))
    assert "constants folded" not in gains


def test_what_grows_is_expanded_in_the_program() -> None:
    import torch

    line = "x.repeat(400, 1, 1, 1) + model.scale.cos().view(6, 1).expand(800, 4, 6, 6)"
    program, gains = rewritten(_model(line), (torch.randn(2, 4, 6, 6),))
    assert gains == ["constants folded"]
    assert [node.name for node in _operators(program)] == ["repeat", "expand", "add"]


@pytest.mark.parametrize("target", ["ethos-u55-128", None])
def test_states_and_buffers_of_other_methods_stay(target: str | None) -> None:
    import torch

    from ethosu_sdk.base.targets import parse_target

    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(6))
            self.register_buffer("steps", torch.arange(6.0))

        def forward(self, x: Any) -> Any:
            self.count += 1
            return x * self.count.cos() + self.steps.cos()

    def gains(*, shares_state: bool, as_written: bool = False) -> list[str]:
        x = torch.randn(2, 6)
        program = torch.export.export(Counter(), (x,)).run_decompositions({})
        goal = Goal(
            None if target is None else parse_target(target),
            "int8" if target else "none",
            as_written=as_written,
            shares_state=shares_state,
        )
        program, taken = frame.rewrite_float(program, goal, [(x,)])
        left = [node.name for node in _operators(program) if "cos" in node.name]
        assert len(left) == 2 - len(taken)
        return [row.gain for row, _, _ in taken]

    assert gains(shares_state=False) == ["constants folded"]
    assert gains(shares_state=True) == []
    assert gains(shares_state=False, as_written=True) == []


# As in shifted windows with a table of biases and turned positions.
ATTENTION = Form(
    "attention",
    """b, side = x.shape[0], torch.arange(4)
        y = self.c(x).roll((-2, -2), (2, 3)).reshape(b, 4, 2, 4, 2, 4)
        y = y.permute(0, 2, 4, 3, 5, 1).reshape(4 * b, 16, 4)
        region = torch.zeros(8, 8)
        for count, (top, left) in enumerate((t, l) for t in (0, 4, 6) for l in (0, 4, 6)):
            region[top:, left:] = count
        windows = region.view(2, 4, 2, 4).permute(0, 2, 1, 3).reshape(4, 16)
        apart = windows.unsqueeze(1) - windows.unsqueeze(2)
        mask = apart.masked_fill(apart != 0, -100.0).masked_fill(apart == 0, 0.0).repeat(b, 1, 1)
        grid = torch.stack(torch.meshgrid(side, side, indexing='ij')).flatten(1)
        offset = grid[:, :, None] - grid[:, None, :] + 3
        bias = self.table[(7 * offset[0] + offset[1]).view(-1)].view(16, 16)
        angle = torch.arange(16).unsqueeze(1) / 100.0 ** (torch.arange(2) / 2)
        angle = torch.cat([angle, angle], 1)
        query = y * angle.cos() + torch.cat([-y[..., 2:], y[..., :2]], -1) * angle.sin()
        scores = torch.softmax(query @ query.transpose(1, 2) + bias + mask, -1)
        z = scores @ self.l(y + self.p(torch.arange(16)))
        plane = z.reshape(b, 2, 2, 4, 4, 4).permute(0, 5, 1, 3, 2, 4).reshape(b, 4, 8, 8)
        return F.normalize(z, dim=-1), plane.roll((2, 2), (2, 3))""",
    "torch.randn(1, 3, 8, 8)",
    "self.c = nn.Conv2d(3, 4, 3, padding=1); self.l = nn.Linear(4, 4); self.p = nn.Embedding(20, 4); "
    "self.table = nn.Parameter(torch.randn(49))",
)


@pytest.mark.parametrize(
    ("target", "quantize", "batch", "least_db", "on_cpu"),
    [
        ("ethos-u55-128", "int8", 1, 23.0, []),
        ("ethos-u65-256", "int16", 2, 40.0, ["aten::bmm.out"]),  # products of 16 bits
        ("ethos-u85-256", "int8", 2, 20.0, []),
        ("ethos-u85-256", "int16", 1, 40.0, []),
    ],
)
def test_windowed_attention_is_on_the_npu(
    target: str,
    quantize: str,
    batch: int,
    least_db: float,
    on_cpu: list[str],
    tmp_path: Path,
    host_runner: Path,
) -> None:
    form = replace(ATTENTION, target=target, quantize=quantize, inputs=f"torch.randn({batch}, 3, 8, 8)")
    found = compiled(form, tmp_path, host_runner)
    assert set(found.gains) == {"operators taken apart", "windows as slices", "constants folded"}
    assert found.on_cpu == on_cpu
    assert min(found.sqnr_db) > least_db
