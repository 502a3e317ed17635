"""What a program that was quantised elsewhere is given before it is lowered, on the smallest graphs that need it."""

from collections.abc import Callable
from typing import Any

import pytest

from ethosu_sdk.compile.graphs import fx
from ethosu_sdk.compile.rewrite import prequantized

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

INPUT_SCALE, INPUT_ZERO, OUTPUT_SCALE = 0.02, 3, 0.05
WEIGHT_SCALES = [0.01, 0.03]
BIAS = [0.2512, -1.3331]


def exported(forward: Callable[..., Any], *inputs: Any, **buffers: Any) -> Any:
    """A program of `forward`, whose first argument is a module with `buffers`."""
    import torch
    import torch.ao.quantization.fx._decomposed  # registers the operators

    class Net(torch.nn.Module):
        def forward(self, *arguments: torch.Tensor) -> Any:
            return forward(self, *arguments)

    net = Net()
    for name, value in buffers.items():
        net.register_buffer(name, value)
    return torch.export.export(net, inputs)


def quantized(x: Any, scale: float, zero_point: int = 0) -> Any:
    import torch

    limits = (-128, 127, torch.int8)
    return torch.ops.quantized_decomposed.quantize_per_tensor(x, scale, zero_point, *limits)


def dequantized(x: Any, scale: float, zero_point: int = 0) -> Any:
    import torch

    limits = (-128, 127, torch.int8)
    return torch.ops.quantized_decomposed.dequantize_per_tensor(x, scale, zero_point, *limits)


def through(x: Any, scale: float, zero_point: int = 0) -> Any:
    """`x` with the rounding of a quantisation."""
    return dequantized(quantized(x, scale, zero_point), scale, zero_point)


def calls(graph: Any) -> list[str]:
    """The operators of a graph, in order."""
    return [str(node.target) for node in graph.nodes if node.op == "call_function"]


def marked(module: Any) -> dict[str, bool]:
    """The operations that carry the mark of Arm's quantiser, and what it says."""
    rows = ((str(node.target), node.meta.get("custom", {})) for node in module.graph.nodes)
    return {name: meta[fx.mark_key()]["quantized"] for name, meta in rows if fx.mark_key() in meta}


def convolution(*, per_channel: bool, bias: list[float] | None = None, scale: float = 1.0) -> Any:
    """A quantised convolution of one by one, whose weights' scales are multiplied by `scale`, with a float bias."""
    import torch

    scales = torch.tensor(WEIGHT_SCALES if per_channel else WEIGHT_SCALES[:1]) * scale
    weights = torch.tensor([[3, -100, 7], [25, 127, -1]], dtype=torch.int8)[..., None, None]

    def forward(net: Any, x: Any) -> Any:
        if per_channel:
            weight = torch.ops.quantized_decomposed.dequantize_per_channel(
                net.weights, net.scales, torch.zeros(2, dtype=torch.int64), 0, -127, 127, torch.int8
            )
        else:
            weight = dequantized(net.weights, WEIGHT_SCALES[0] * scale)
        y = torch.nn.functional.conv2d(through(x, INPUT_SCALE, INPUT_ZERO), weight, net.bias)
        return through(torch.relu(y), OUTPUT_SCALE, -128)

    generator = torch.Generator().manual_seed(2)
    x = torch.randn(1, 3, 5, 5, generator=generator)
    given = torch.tensor(BIAS if bias is None else bias)
    return exported(forward, x, weights=weights, scales=scales, bias=given), x


@pytest.mark.parametrize("per_channel", [True, False], ids=["per-channel", "per-tensor"])
def test_a_float_bias_becomes_steps_of_the_accumulator(per_channel: bool) -> None:
    program, x = convolution(per_channel=per_channel)
    done = prequantized.complete_program(program, (x,))
    (name,) = [key for key in done.state_dict if key.endswith("_integer_bias_0")]
    scales = WEIGHT_SCALES if per_channel else WEIGHT_SCALES[:1] * 2
    wanted = [round(value / (INPUT_SCALE * scale)) for value, scale in zip(BIAS, scales, strict=True)]
    assert done.state_dict[name].tolist() == wanted
    before, after = (item.module(check_guards=False)(x) for item in (program, done))
    # A bias moves by half a step of the accumulator at most, so what is rounded after it moves by one step.
    assert float((before - after).abs().max()) <= OUTPUT_SCALE * 1.001
    layer = next(node for node in done.graph.nodes if prequantized._name(node) == "aten::conv2d")
    assert str(layer.args[2].target) == (fx.DEQUANTIZE_CHANNELS if per_channel else fx.DEQUANTIZE)


def test_biases_that_stay() -> None:
    program, _ = convolution(per_channel=True, bias=[1e4, 0.0], scale=1e-4)  # 1e4 / (0.02 * 1e-6) steps
    module = program.module(check_guards=False)
    assert not prequantized._quantize_biases(module)
    import torch

    x, weight = torch.ones(1, 3), torch.ones(2, 3)
    program = exported(
        lambda net, x: through(torch.nn.functional.linear(x, net.weight, net.bias), 0.1),
        x,
        weight=weight,
        bias=torch.ones(2),
    )
    assert not prequantized._quantize_biases(program.module(check_guards=False))


@pytest.mark.parametrize(("scale_after", "left"), [(0.1, 2), (0.2, 4)], ids=["the same steps", "other steps"])
def test_dropout_goes_with_the_quantisation_around_it(scale_after: float, left: int) -> None:
    import torch

    def forward(_: Any, x: Any) -> Any:
        return through(torch.nn.functional.dropout(through(x, 0.1), 0.5, False), scale_after)

    x = torch.linspace(-9, 9, 40)
    program = exported(forward, x)
    module = program.module(check_guards=False)
    assert prequantized._remove_dropout(module)
    module.graph.eliminate_dead_code()
    module.recompile()
    found = calls(module.graph)
    assert not any("dropout" in name for name in found)
    assert len([name for name in found if "quantize_per_tensor" in name]) == left
    assert torch.equal(module(x), program.module(check_guards=False)(x))


def test_a_program_that_lacks_nothing_is_not_changed() -> None:
    import torch

    program = exported(lambda _, x: through(torch.relu(through(x, 0.1)), 0.1), torch.ones(3))
    assert not prequantized._remove_dropout(program.module(check_guards=False))
    import torch

    program = exported(lambda _, x: x + 1, torch.ones(3))
    assert prequantized.complete_program(program, (torch.ones(3),)) is program


@pytest.mark.parametrize(
    ("scale", "zero_point", "is_marked"), [(0.1, 0, True), (0.2, 0, False), (0.1, 1, False)]
)
def test_a_movement_that_would_need_a_change_of_scale_gets_no_mark(
    scale: float, zero_point: int, is_marked: bool
) -> None:
    import torch

    def forward(_: Any, x: Any) -> Any:
        return through(through(x, 0.1).permute(1, 0), scale, zero_point)

    module = exported(forward, torch.ones(2, 3)).module(check_guards=False)
    assert prequantized._mark_quantized(module) is is_marked
    assert marked(module) == ({"aten.permute.default": True} if is_marked else {})


def test_arithmetic_may_change_the_scale() -> None:
    import torch

    def forward(_: Any, x: Any) -> Any:
        return through(torch.add(through(x, 0.1), through(x, 0.3)), 0.4)

    module = exported(forward, torch.ones(2, 3)).module(check_guards=False)
    assert prequantized._mark_quantized(module)
    assert marked(module) == {"aten.add.Tensor": True}


def test_a_mark_on_a_movement_that_changes_the_scale_is_taken_back() -> None:
    import torch

    module = exported(lambda _, x: through(through(x, 0.1).permute(1, 0), 0.2), torch.ones(2, 3)).module(
        check_guards=False
    )
    (permutation,) = [node for node in module.graph.nodes if prequantized._name(node) == "aten::permute"]
    prequantized._mark(permutation, quantized=True)
    assert prequantized._unmark_differing(module)
    assert marked(module) == {"aten.permute.default": False}
