"""What a compiled program is checked against: outputs in PyTorch, with trials that round every value differently,
and the Cortex-M operators' references in Python.

A quantised value is the nearest of the two that enclose the exact one. Hardware, ExecuTorch's kernels and PyTorch
disagree on ties, on the precision of scales and on when to round; each still ends at one of the two. So in a trial
the program runs in PyTorch with each quantisation going up or down at random, up being the likelier the closer the
upper one is, or for a whole tensor the same way, as a biased rounding would. Values that need no rounding stay: what
merely moves data has no noise. Functions of int16 values are interpolated in tables, as on the NPU. Floating-point
results move by a few units in the last place.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ethosu_sdk import npu
from ethosu_sdk.compile import npu_rounding
from ethosu_sdk.compile.compile_facts import CheckedOutput, CheckFacts, Quantisation, sample_array
from ethosu_sdk.compile.graphs import execution, fx, tensor_arrays
from ethosu_sdk.compile.graphs.fx import is_quantize, operator_name
from ethosu_sdk.compile.tool_hooks import patched

Tensors = tuple[Any, ...]

_MOVES = frozenset(
    f"aten::{name}"
    for name in (
        *("view_copy", "permute_copy", "cat", "slice_copy", "select_copy", "squeeze_copy", "unsqueeze_copy"),
        *("expand_copy", "split_copy", "split_with_sizes_copy", "repeat", "clone", "alias_copy"),
    )
) | {"dim_order_ops::_clone_dim_order", "dim_order_ops::_to_dim_order_copy"}
_SLACK = 0.02  # of a step: this near to a value that can be stored, nothing is rounded
_FLOAT_STEP = 2.0**-20  # of a tensor's largest value: what the order of a float32 sum can change
# Functions that ExecuTorch 1.5.1 makes tables of; those of int8 values are exact.
_TABLES = frozenset(
    (
        *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "sin", "sinh", "tan", "tanh"),
        *("elu", "erf", "erfinv", "gelu", "hardsigmoid", "hardswish", "leaky_relu", "sigmoid", "silu"),
        *("ceil", "exp", "expm1", "floor", "log", "log10"),
        *("log1p", "pow", "reciprocal", "remainder", "round", "rsqrt", "sqrt"),
    )
)
_INT16_CODES, _TABLE_STEP = 1 << 16, 1 << 7
_FEWEST_TRIALS, _MOST_TRIALS = 3, 8
_ENOUGH = 64  # elements of the smallest output, over all trials: fewer give no distribution


def explore_rounding(
    program: Any, samples: Sequence[Tensors], cpu_calls: Iterable[str], folder: Path
) -> CheckFacts:
    """Run the ``ExportedProgram`` that is lowered on `samples`, one after the other, then with other roundings, and
    fill `folder`. The lowered one calls the operators `cpu_calls` on the CPU."""
    module = program.module(check_guards=False)
    with execution.state_kept(module) as changed:
        # Copies, since they may be the module's own state, which the next run changes.
        references = [
            tuple(item.clone() for item in execution.run_eager(module, inputs)) for inputs in samples
        ]
        stateful = changed()
    for sample, row in enumerate(references):
        _save(folder, "reference", sample, row)
    rows = tuple(_output(program, index, item) for index, item in enumerate(references[0]))
    rounded = [item.numel() for item, row in zip(references[0], rows, strict=True) if not row.exact]
    trials = max(_FEWEST_TRIALS, min(_MOST_TRIALS, -(-_ENOUGH // max(min(rounded), 1)))) if rounded else 0
    for number in range(trials):
        chosen = range(len(samples)) if stateful else (0, number + 1)
        with (
            execution.state_kept(module),
            execution.targets_replaced(module, rounding_trial(number).replacement),
        ):
            for sample in chosen:
                if sample < len(samples):
                    _save(folder, f"trial{number}_", sample, execution.run_eager(module, samples[sample]))
    ties_up = _save_ties_up(module, samples[0], cpu_calls, folder)
    return CheckFacts(rows, trials, stateful, ties_up, len(samples))


def save_samples(folder: Path, samples: Sequence[Tensors]) -> None:
    """Put the inputs of the samples into the check's `folder`, in the program's own types."""
    for sample, inputs in enumerate(samples):
        _save(folder, "input", sample, inputs)


def save_dialect(folder: Path, module: Any, samples: Sequence[Tensors]) -> None:
    """Put what `module` gives for each of the samples, one after the other, into the check's `folder`."""
    for sample, inputs in enumerate(samples):
        _save(folder, "dialect", sample, execution.run_eager(module, inputs))


def _save_ties_up(module: Any, inputs: Tensors, cpu_calls: Iterable[str], folder: Path) -> bool:
    """Store the outputs with the NPU's rounding instead of PyTorch's; whether that was possible."""
    if not any(is_quantize(node) for node in module.graph.nodes):
        return False
    try:
        with (
            execution.state_kept(module),
            execution.targets_replaced(module, npu_rounding.npu_replacements(module, cpu_calls)),
        ):
            values = execution.run_eager(module, inputs)
    except Exception:  # an operator that has no float64: the check does not rest on this figure
        return False
    _save(folder, "ties_up", 0, values)
    return True


def _save(folder: Path, kind: str, sample: int, values: Sequence[Any]) -> None:
    for index, item in enumerate(values):
        np.save(folder / sample_array(kind, sample, index), tensor_arrays.as_numpy(item))


def _output(program: Any, index: int, value: Any) -> CheckedOutput:
    dtype = str(value.dtype).removeprefix("torch.")
    if value.is_floating_point():
        return CheckedOutput(dtype, fx.output_quantisation(program, index)[0], exact=False)
    name = program.graph_signature.user_outputs[index]
    node = next((node for node in program.graph.nodes if node.name == name), None)
    if node is not None and is_quantize(node):  # the model gives quantised values: one step is one
        return CheckedOutput(dtype, Quantisation(1.0, 0, dtype), exact=False)
    return CheckedOutput(dtype, None, exact=node is not None and _only_integers(node))


def _only_integers(node: Any) -> bool:
    import torch

    values = (row.meta.get("val") for row in fx.reachable(node, lambda row: row.all_input_nodes))
    return all(isinstance(value, torch.Tensor) and not value.is_floating_point() for value in values)


def rounding_trial(number: int) -> RoundingTrial:
    """Trial `number`, always the same; every third rounds whole tensors."""
    import torch

    return RoundingTrial(torch.Generator().manual_seed(number), whole_tensors=number % 3 == 2)


@dataclass(frozen=True)
class RoundingTrial:
    """One way to round: chosen for each value, or the same for a whole tensor."""

    generator: Any
    whole_tensors: bool

    def replacement(self, node: Any) -> Callable[..., Any] | None:
        """What `node` calls in this trial; None for what gives the same values wherever it is computed."""
        import torch

        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            return None
        if is_quantize(node):
            # The program's own inputs are quantised by the same arithmetic everywhere, constants when it is lowered.
            return self.quantize if node.args[0].op == "call_function" else None
        target = node.target
        source = _int16_argument(node)
        if source is not None:
            scale, zero_point = source.args[1:3]
            limits = _limits(node)
            return lambda value, *args, **named: interpolated(
                lambda x: target(x, *args, **named), value, scale, zero_point, limits
            )
        value = node.meta.get("val")
        if (
            str(target).startswith(fx.QUANTIZED_NAMESPACE)
            or all(is_quantize(user) for user in node.users)
            or not isinstance(value, torch.Tensor)
            or not value.is_floating_point()
            or target.is_view
        ):
            return None
        return lambda *args, **named: self.disturb(target(*args, **named))

    def quantize(
        self, value: Any, scale: float, zero_point: int, low: int, high: int, dtype: Any, **more: Any
    ) -> Any:
        import torch

        del more
        shape = (1,) * value.dim() if self.whole_tensors else value.shape
        chance = torch.rand(shape, generator=self.generator)
        if self.whole_tensors:
            chance = chance.round()
        steps = torch.floor(value / scale + (chance * (1 - 2 * _SLACK) + _SLACK)) + zero_point
        return steps.clamp(low, high).to(dtype)

    def disturb(self, value: Any) -> Any:
        """A floating-point result as another order of its sums could give it."""
        import torch

        if not isinstance(value, torch.Tensor) or not value.is_floating_point() or not value.numel():
            return value
        largest = torch.where(value.isfinite(), value.abs(), 0.0).max()
        noise = torch.rand(value.shape, generator=self.generator) * 2 - 1
        return value + noise.to(value.dtype) * largest * _FLOAT_STEP


def interpolated(
    apply: Callable[[Any], Any], value: Any, scale: float, zero_point: int, limits: tuple[float, float] | None
) -> Any:
    """A function of int16 values as the NPU computes it: from a table of 513 values, the last 7 bits interpolated."""
    import torch

    place = (value / scale).round() + (zero_point + _INT16_CODES / 2)
    left = torch.floor(place / _TABLE_STEP)
    ends = [((left + k) * _TABLE_STEP - (zero_point + _INT16_CODES / 2)) * scale for k in (0, 1)]
    first, second = (torch.nan_to_num(apply(end)) for end in ends)
    if limits is not None:
        first, second = first.clamp(*limits), second.clamp(*limits)
    return first + (second - first) * (place / _TABLE_STEP - left)


def _int16_argument(node: Any) -> Any | None:
    """The dequantisation of int16 values that a function which the NPU looks up in a table is applied to."""
    import torch

    if (
        operator_name(node).removeprefix("aten::").rstrip("_") not in _TABLES
        or len(node.all_input_nodes) != 1
    ):
        return None
    source = node.args[0]
    if str(getattr(source, "target", "")) != fx.DEQUANTIZE or source.args[5] is not torch.int16:
        return None
    return source


def _limits(node: Any) -> tuple[float, float] | None:
    user = next((user for user in node.users if is_quantize(user)), None)
    if user is None:
        return None
    scale, zero_point, low, high = user.args[1:5]
    return (low - zero_point) * scale, (high - zero_point) * scale


def references_decide(operators: Sequence[str]) -> bool:
    """Whether the references decide every bit of a program that calls these `operators` (without overload) on the
    CPU: ``cortex_m::`` ones, and others that only move values."""
    own = [name.startswith("cortex_m::") for name in operators]
    return any(own) and all(is_own or name in _MOVES for name, is_own in zip(operators, own, strict=True))


def reference_module(edge: Any) -> Callable[..., Any]:
    """What computes the outputs of `edge`, a lowered program, from inputs; its state goes on from call to call.

    ``cortex_m::`` operators are computed by the references in Python that ExecuTorch registers beside them, delegates
    by the SDK's NPU model.
    """
    import torch

    operators = importlib.import_module("executorch.backends.cortex_m.ops.operators")
    graph = edge.exported_program().module(check_guards=False)
    shapes = {
        node.name: [tuple(value.shape) for value in node.meta["val"]]
        for node in edge.exported_program().graph.nodes
        if "executorch_call_delegate" in str(node.target)
    }

    class References(torch.fx.Interpreter):  # type: ignore[misc]
        """Runs delegates on the NPU model, and everything else as PyTorch does."""

        def run_node(self, node: Any) -> Any:
            if node.name not in shapes:
                return super().run_node(node)
            (lowered, *inputs), _ = self.fetch_args_kwargs_from_env(node)
            result = npu.run(bytes(lowered.processed_bytes), [tensor_arrays.as_numpy(row) for row in inputs])
            pairs = zip(result.outputs, shapes[node.name], strict=True)
            return [torch.from_numpy(row.copy()).reshape(shape) for row, shape in pairs]

    def run(*inputs: Any) -> Any:
        with patched(operators, F=_Functional()):
            return References(graph).run(*inputs)

    return run


class _Functional:
    """``torch.nn.functional``, whose convolutions of integers are computed in float64, which is exact."""

    def __getattr__(self, name: str) -> Any:
        import torch
        from torch.nn import functional

        function = getattr(functional, name)
        if not name.startswith("conv"):
            return function

        def wide(x: Any, *args: Any, **kwargs: Any) -> Any:
            def doubled(value: Any) -> Any:
                return value.double() if isinstance(value, torch.Tensor) else value

            named = {key: doubled(value) for key, value in kwargs.items()}
            return function(x.double(), *map(doubled, args), **named).to(x.dtype)

        return wide
