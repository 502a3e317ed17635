"""--io int8: which programs it fits, whose fault it is when it does not, and what is left of a program."""

from collections.abc import Callable
from typing import Any

import pytest

from ethosu_sdk.base.errors import BuildError, UsageError
from ethosu_sdk.compile import lowering

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


def edge(forward: Callable[[Any], Any]) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """The edge program of `forward`, with its examples."""
    import torch
    import torch.ao.quantization.fx._decomposed  # registers the operators
    from executorch.exir import EdgeCompileConfig, to_edge

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return forward(x)

    inputs = (torch.linspace(-1, 1, 6),)
    config = EdgeCompileConfig(_check_ir_validity=False)
    return to_edge(torch.export.export(Net(), inputs), compile_config=config), inputs, (Net()(*inputs),)


def through(x: Any) -> Any:
    import torch

    operators, parameters = torch.ops.quantized_decomposed, (0.01, 2, -128, 127, torch.int8)
    return operators.dequantize_per_tensor(operators.quantize_per_tensor(x, *parameters), *parameters)


def test_the_conversions_of_a_program_that_it_fits_are_gone() -> None:
    import torch

    done = lowering.quantize_io(*edge(lambda x: through(torch.relu(through(x)))))
    graph = done.exported_program().graph
    assert next(iter(graph.nodes)).meta["val"].dtype == torch.int8
    assert "quantize_per_tensor" in str(graph.output_node().args[0][0].target)
    assert (done._config_methods["input0_scale"], done._config_methods["output0_zp"]) == (0.01, 2)


@pytest.mark.parametrize(
    ("forward", "words"),
    [
        (
            lambda x: through(x + 1),
            r"input 0 is connected with aten::add, not only with .*::quantize_per_tensor",
        ),
        (lambda x: through(through(x) + x), "input 0 is connected with .*, aten::add"),
        (
            lambda x: through(x) + 1,
            "output 0 is connected with aten::add, not only with .*::dequantize_per_tensor",
        ),
    ],
    ids=["float input", "input in both ways", "float output"],
)
def test_a_program_that_it_does_not_fit(forward: Callable[[Any], Any], words: str) -> None:
    with pytest.raises(UsageError, match=f"--io int8 does not fit this model: its {words}") as caught:
        lowering.quantize_io(*edge(forward))
    assert "--io float" in caught.value.hint


def test_a_fault_of_the_tool_is_not_called_a_wrong_option(monkeypatch: pytest.MonkeyPatch) -> None:
    from executorch.exir.passes import quantize_io_pass

    def failing(*_: object) -> None:
        raise ValueError("Input 0 is not what it was")

    monkeypatch.setattr(quantize_io_pass, "quantize_input", failing)
    with pytest.raises(BuildError, match="could not be removed: ValueError: Input 0 is not"):
        lowering.quantize_io(*edge(through))
