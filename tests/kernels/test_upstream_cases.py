"""ExecuTorch's own cases of the Cortex-M operators: the firmware's kernels have the bits of the dialect's references.

The wheel carries them, in tables of `McuTestCase`. All cases of a module are one program, because lowering a program
costs more than lowering a case.
"""

import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

from tests import kept
from tests.kernels.interpreter.cortex_m import Network, lower
from tests.kernels.interpreter.models import LOWERING
from tests.kernels.interpreter.runner import Interpreter, built, same_bits

pytestmark = pytest.mark.torch

INTERPRETER = Path(__file__).with_name("interpreter")
PACKAGE = "executorch.backends.cortex_m.test.ops"

# How many cases each module has.
_COUNTS = """
    activation 29, activation_quant 37, add 22, avg_pool2d 10, batch_matmul 10, conv 26, conv_transpose 25, div
    8, linear 7, lstm 2, max_pool2d 9, maximum 5, mean 11, minimum 6, mul 13, pad 9, softmax 5, sub 11,
    transpose 6
"""
COUNTS = {name: int(count) for name, count in (row.split() for row in _COUNTS.split(","))}

# ExecuTorch's own tests expect these to fail, or skip them.
LEFT_OUT = {
    "conv.conv3d": "declined, and the firmware's aten::convolution has two dimensions",
    "conv.conv1d": "the pass makes a weight that the reference refuses",
    "lstm.lstm_fp32": "not implemented",
    "lstm.lstm_quantizable": "not implemented",
    "max_pool2d.maxpool_2x2_indices": "a pass refuses the indices",
}

# What the quantizer declines: these cases call ExecuTorch's portable operators, too.
_PORTABLE = """
    aten._softmax.default: softmax.dim_not_last
    aten.add.Tensor: add.alpha add.broadcast_1 add.broadcast_2 add.broadcast_3 add.broadcast_channels_continous
        mean.fallback.constant_operand
    aten.avg_pool2d.default: avg_pool2d.fallback.avgpool_2x2_divisor_override
    aten.bmm.default: batch_matmul.matmul.matmul_broadcast_rank3
    aten.clamp.default: activation.standalone_clamp activation.standalone_clamp_tensor
        activation.standalone_hardtanh activation.standalone_relu
    aten.convolution.default: conv.conv2d_nchw conv_transpose.conv_transpose2d_all_params
        conv_transpose.conv_transpose2d_complex conv_transpose.conv_transpose2d_depthwise
        conv_transpose.conv_transpose2d_dilation_2 conv_transpose.conv_transpose2d_groups_2
        conv_transpose.conv_transpose2d_output_padding_1 conv_transpose.conv_transpose2d_output_padding_asym
    aten.div.Tensor: div.broadcast_1 div.broadcast_2
    aten.expand_copy.default: batch_matmul.matmul.matmul_broadcast_rank3
    aten.max_pool2d_with_indices.default: max_pool2d.fallback.maxpool_3x3_s2_pad1_ceil
        max_pool2d.fallback.maxpool_dilation
    aten.mean.dim: mean.fallback.accumulate_dtype mean.fallback.all_but_batch mean.fallback.channel
        mean.fallback.constant_operand mean.fallback.one_spatial_dim mean.fallback.rank_3_trailing_dims
    aten.mul.Tensor: mul.broadcast_1 mul.broadcast_2 mul.broadcast_3 mul.broadcast_channels_continous
    aten.sub.Tensor: sub.alpha_float
    aten.view_copy.default: batch_matmul.matmul.matmul_broadcast_rank3 batch_matmul.matmul.matmul_rank4
        mean.spatial mean.spatial_batched mean.spatial_negative_dims mean.spatial_non_square
"""
PORTABLE = {
    name: words.split()
    for name, _, words in (row.partition(":") for row in re.split(r"\n    (?=\w)", _PORTABLE)[1:])
}


@pytest.mark.parametrize("module", [name for name in COUNTS if name != "lstm"])
def test_the_kernels_equal_the_references(module: str, tmp_path: Path) -> None:
    every, network = lowered_module(module)
    assert len(every) == COUNTS[module]
    cases = [name for name in every if name not in LEFT_OUT]
    assert portable(network, cases) == {
        operator: own
        for operator, names in PORTABLE.items()
        if (own := [name for name in names if name in cases])
    }
    assert differing(Interpreter(built(), tmp_path), network, cases) == []


def test_division_of_int16_equals_the_reference(tmp_path: Path) -> None:
    cases, network = lowered_module("div", int16=True)
    assert differing(Interpreter(built(), tmp_path), network, cases) == []


def test_a_wrong_kernel_is_seen_in_every_case(tmp_path: Path) -> None:
    """The negative control: one bit of every kernel's result is turned."""
    cases, network = lowered_module("minimum")
    altered = Interpreter(built("kernels_altered_runner"), tmp_path)
    assert differing(altered, network, cases) == cases


def test_every_case_of_the_wheel_is_known() -> None:
    """By its module's count; the modules without tables call operators that cases/cortex_m.py has."""
    package = importlib.import_module(PACKAGE)
    modules = [row.name.removeprefix("test_") for row in pkgutil.iter_modules(package.__path__)]
    found = {name for name in modules if name.partition("_")[0] != "nhwc"}
    assert found == COUNTS.keys()
    assert LEFT_OUT.keys() <= {name for module in COUNTS for name in tables(module)}


def lowered_module(module: str, *, int16: bool = False) -> tuple[list[str], Network]:
    """The names of a module's cases and one program of those that are not left out; both are kept."""

    def make() -> tuple[list[str], Network]:
        from executorch.backends.cortex_m.quantizer.quantization_configs import INT16_PER_TENSOR_CONFIG
        from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer

        cases = tables(module)
        quantizer = CortexMQuantizer(per_tensor_config=INT16_PER_TENSOR_CONFIG) if int16 else None
        chosen = {name: case for name, case in cases.items() if name not in LEFT_OUT}
        return list(cases), lower_together(chosen, quantizer)

    sources = [Path(__file__), *(INTERPRETER / name for name in ("cortex_m.py", "models.py")), *LOWERING]
    place = kept.shared("upstream-cases", sources)
    return kept.made_once(place / f"{module}{'-int16' if int16 else ''}", make)


def tables(module: str) -> dict[str, Any]:
    """The cases of a module, named as `module.table.case` without the table's usual name."""
    import torch
    from executorch.backends.cortex_m.test.tester import McuTestCase

    torch.manual_seed(0)
    found: dict[str, Any] = {}
    for table, rows in vars(importlib.import_module(f"{PACKAGE}.test_{module}")).items():
        if isinstance(rows, dict) and all(isinstance(row, McuTestCase) for row in rows.values()):
            place = module if table == "test_cases" else f"{module}.{table.removesuffix('_test_cases')}"
            found |= {f"{place}.{name}": row for name, row in rows.items()}
    return found


def lower_together(cases: dict[str, Any], quantizer: Any = None) -> Network:
    """One program that computes all cases, each from its own inputs, which calibrate it, too."""
    import torch

    class Together(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.arguments = [case.get_example_inputs() for case in cases.values()]
            self.own = torch.nn.ModuleList([case.model for case in cases.values()])

        def tensors(self) -> tuple[Any, ...]:
            values = (value for arguments in self.arguments for value in arguments)
            return tuple(value for value in values if isinstance(value, torch.Tensor))

        def forward(self, *tensors: Any) -> tuple[Any, ...]:
            left = iter(tensors)
            return tuple(
                model(*(next(left) if isinstance(value, torch.Tensor) else value for value in arguments))
                for model, arguments in zip(self.own, self.arguments, strict=True)
            )

    model = Together().eval()
    return lower(model, [model.tensors()], model.tensors(), quantizer)


def portable(network: Network, cases: list[str]) -> dict[str, list[str]]:
    """The cases that call each operator of another dialect, sorted."""
    found: dict[str, list[str]] = {}
    for name, operators in zip(cases, network.operators, strict=True):
        for operator in operators:
            if not operator.startswith("cortex_m."):
                found.setdefault(operator, []).append(name)
    return {operator: sorted(names) for operator, names in found.items()}


def differing(interpreter: Interpreter, network: Network, cases: list[str]) -> list[str]:
    """The cases whose bits are not the references'."""
    run = interpreter.run(network.program, "forward", network.inputs)
    assert run.status == "ok", run.reason
    rows = zip(cases, run.outputs, network.expected, strict=True)
    return [name for name, found, expected in rows if not same_bits(found, expected)]
