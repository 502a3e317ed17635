"""State kept as integers: ExecuTorch's own runtime gives the bits of PyTorch, which keeps floating-point values; and
which state stays as it is."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.compile import lowering
from ethosu_sdk.compile.graphs.fx import operator_name
from ethosu_sdk.compile.rewrite import after_lowering, cortex_m
from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import Tensor

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

STEPS, WIDTH = 16, 6
INT8 = (0.25, 3, -128, 127)
UINT8 = (0.25, 131, 0, 255)
INT16 = (0.0009765625, 0, -32767, 32767)
COARSE = (0.5, 3, -128, 127)
# Ties between two integers of INT8, values beyond both ends of it, and such that need its zero point.
INITIAL = (0.125, 0.375, -0.625, 1e6, -1e6, -0.9)


def quantised(values: Any, row: Sequence[Any], kind: str = "int8") -> Any:
    import torch

    return torch.ops.quantized_decomposed.quantize_per_tensor(values, *row, getattr(torch, kind))


def through(values: Any, row: Sequence[Any], kind: str = "int8") -> Any:
    """What a quantised model makes of floating-point values."""
    import torch

    integers = quantised(values, row, kind)
    return torch.ops.quantized_decomposed.dequantize_per_tensor(integers, *row, getattr(torch, kind))


def accumulated(state: Any, x: Any) -> tuple[Any, Any]:
    new = through(0.75 * through(state, INT8) + x, INT8)
    return new, new * 2


def of_int16(state: Any, x: Any) -> tuple[Any, Any]:
    new = through(0.75 * through(state, INT16, "int16") + x, INT16, "int16")
    return new, new + x


def of_uint8(state: Any, x: Any) -> tuple[Any, Any]:
    new = through(0.75 * through(state, UINT8, "uint8") + x, UINT8, "uint8")
    return new, new + x


def shifted(state: Any, x: Any) -> tuple[Any, Any]:
    """A window that moves on the CPU, outside of what is quantised."""
    import torch

    window = torch.cat([state, through(x, INT8)[:, :1]], 1)
    return window[:, 1:], through(window, INT8).sum(1)


def placed(state: Any, x: Any) -> tuple[Any, Any]:
    """A cache that is written on the CPU, at a place that the input chooses."""
    import torch

    place = (x.sum() * 100).abs().to(torch.int64).remainder(WIDTH).reshape(1)
    new = torch.ops.aten.index_put(state, [None, place], through(x, INT8)[:, :1])
    return new, through(new, INT8) * x


def given_back(state: Any, x: Any) -> tuple[Any, Any]:
    """Its new value is an output too."""
    new = through(0.75 * through(state, INT8) + x, INT8)
    return new, new


def differing(state: Any, x: Any) -> tuple[Any, Any]:
    return through(0.75 * through(state, INT8) + x, COARSE), x


def read_in_two_ways(state: Any, x: Any) -> tuple[Any, Any]:
    return through(x, INT8), through(state, INT8) + through(state, COARSE)


def read_as_float(state: Any, x: Any) -> tuple[Any, Any]:
    return through(x, INT8), through(state, INT8) + state


def moved_to_an_output(state: Any, x: Any) -> tuple[Any, Any]:
    new = state.flip(1)
    return new, (through(new, INT8) + x, new)


def summed(state: Any, x: Any) -> tuple[Any, Any]:
    import torch

    place = x.sum().to(torch.int64).remainder(WIDTH).reshape(1)
    new = torch.ops.aten.index_put(state, [None, place], through(x, INT8)[:, :1], True)
    return new, through(new, INT8)


Form = Callable[[Any, Any], tuple[Any, Any]]


def network(form: Form, initial: Sequence[float] = INITIAL, persistent: bool = True) -> Any:
    import torch
    import torch.ao.quantization.fx._decomposed  # registers the operators

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("state", torch.tensor([initial]), persistent=persistent)

        def forward(self, x: torch.Tensor) -> Any:
            new, result = form(self.state, x)
            self.state.copy_(new)
            return result

    return Net()


def edge(module: Any) -> Any:
    import executorch.kernels.quantized  # registers the operators of a program
    import torch
    from executorch.exir import EdgeCompileConfig, to_edge

    del executorch
    config = EdgeCompileConfig(_check_ir_validity=False)
    exported = torch.export.export(module, (torch.zeros(1, WIDTH),))
    return to_edge(exported, compile_config=config)


def finished(*modules: Any) -> bytes:
    """The `.pte` of a module, or with more of them one with a method for each."""
    edges = {f"forward{number or ''}": edge(module) for number, module in enumerate(modules)}
    after_lowering.keep_integer_state([row.exported_program() for row in edges.values()])
    one = edges["forward"] if len(edges) == 1 else lowering.join_methods(edges)
    return bytes(lowering.to_executorch(one).buffer)


def samples() -> list[Any]:
    import torch

    generator = torch.Generator().manual_seed(5)
    rows = torch.randn(STEPS, 1, WIDTH, generator=generator)
    rows[3], rows[4], rows[5] = 1e5, -1e5, 0.125  # to both ends, and a tie
    return list(rows)


def in_pytorch(module: Any) -> list[np.ndarray]:
    return [module(row.clone()).clone().numpy() for row in samples()]


def executed(content: bytes) -> list[np.ndarray]:
    """What ExecuTorch's own runtime gives, step by step."""
    from executorch.runtime import Runtime

    method = Runtime.get().load_program(content).load_method("forward")
    return [method.execute((row,))[0].clone().numpy() for row in samples()]


def state_types(content: bytes) -> set[str]:
    """The types of the tensors that a program begins with and writes."""
    plan = pte.parse(content).plan("forward")
    tensors = [value for value in plan.values if isinstance(value, Tensor)]
    return {row.dtype for row in tensors if row.allocation is not None and row.data is not None}


KEPT = [
    (accumulated, "int8"),
    (of_int16, "int16"),
    (of_uint8, "uint8"),
    (shifted, "int8"),
    (placed, "int8"),
    (given_back, "int8"),
]


@pytest.mark.parametrize(("form", "kind"), KEPT, ids=[form.__name__ for form, _ in KEPT])
@pytest.mark.parametrize("persistent", [True, False])
def test_integers_give_the_bits_of_pytorch(form: Form, kind: str, persistent: bool) -> None:
    content = finished(network(form, persistent=persistent))
    assert state_types(content) == {kind}
    wanted, found = in_pytorch(network(form)), executed(content)
    assert len({row.tobytes() for row in wanted}) > STEPS // 2
    for step, pair in enumerate(zip(wanted, found, strict=True)):
        np.testing.assert_array_equal(*pair, err_msg=f"step {step}")


def test_the_conversions_are_gone_also_of_the_cortex_m_backend() -> None:
    program = edge(network(shifted)).exported_program()
    before = _conversions(program)
    after_lowering.keep_integer_state([program])
    assert (before, _conversions(program)) == (4, 2)  # left: the input's first and the window's last
    lowered = cortex_m.run_passes(edge(network(shifted)), "cortex-m55")
    program = lowered.exported_program()
    names = {operator_name(node) for node in program.graph.nodes if "quantize" in str(node.target)}
    assert names == {"cortex_m::quantize_per_tensor", "cortex_m::dequantize_per_tensor"}
    after_lowering.keep_integer_state([program])
    assert _conversions(program) == 2
    assert {str(value.dtype) for value in program.state_dict.values()} == {"torch.int8"}


def _conversions(program: Any) -> int:
    return sum("quantize_per_tensor" in str(node.target) for node in program.graph.nodes)


@pytest.mark.parametrize(
    "form",
    [differing, read_in_two_ways, read_as_float, moved_to_an_output, summed],
    ids=lambda form: form.__name__,
)
def test_what_would_not_be_the_same_stays(form: Form) -> None:
    assert state_types(finished(network(form))) == {"float32"}


def test_an_initial_value_that_no_integer_stands_for_stays() -> None:
    form = network(accumulated, (float("nan"), *INITIAL[1:]))
    assert state_types(finished(form)) == {"float32"}


def test_methods_that_differ_in_a_scale_keep_floating_point_values() -> None:
    def coarse(state: Any, x: Any) -> tuple[Any, Any]:
        return through(0.75 * through(state, COARSE) + x, COARSE), x

    for other, kind in ((accumulated, {"int8"}), (coarse, {"float32"})):
        assert state_types(finished(network(accumulated), network(other))) == kind


def test_a_wrong_initial_integer_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the zero point left out of the initial value."""
    right = after_lowering._initial_integers
    monkeypatch.setattr(after_lowering, "_initial_integers", lambda *given: right(*given) - INT8[1])
    content = finished(network(accumulated))
    wanted, found = in_pytorch(network(accumulated)), executed(content)
    assert not np.array_equal(wanted[0], found[0])
