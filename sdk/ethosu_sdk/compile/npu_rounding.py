"""The model in PyTorch with the NPU's rounding: in float64, and up where a value lies half-way between two codes.

TOSA's RESCALE, and the NPU with it, round ties up; PyTorch rounds them to the even neighbour, after the noise of
float32 arithmetic that can move a value across the middle. Tables of functions are made by ExecuTorch in PyTorch's
own arithmetic, and so are quantised inputs: these stay. What the program calls on the CPU stays too, in float32;
resizing is computed as by ExecuTorch's kernel, since a resized value is often half-way between two codes, and
PyTorch adds in another order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from ethosu_sdk.compile.graphs import fx


def npu_replacement(on_cpu: frozenset[str], node: Any) -> Callable[..., Any] | None:
    """What `node` of the module calls, where the operators `on_cpu` run on the CPU; None for what stays as it is."""
    import torch

    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return None
    name = str(node.target)
    if name in _CONVERSIONS:
        return None if _stays(on_cpu, node) else _CONVERSIONS[name]
    if fx.operator_name(node) in on_cpu:
        return _CPU_KERNELS.get(name)
    if is_table(node) or name.startswith(fx.QUANTIZED_NAMESPACE):
        return None
    return _in_float64(node.target)


def _stays(on_cpu: frozenset[str], conversion: Any) -> bool:
    if fx.is_quantize(conversion):
        source = conversion.args[0]
        return source.op != "call_function" or is_table(source) or fx.operator_name(source) in on_cpu
    return any(
        user.op == "output" or is_table(user) or fx.operator_name(user) in on_cpu for user in conversion.users
    )


def npu_replacements(module: Any, cpu_calls: Iterable[str]) -> Callable[[Any], Callable[..., Any] | None]:
    """:func:`npu_replacement` for a `module` whose program calls operators `cpu_calls` on the CPU, by name and in any
    order. An operator counts as one of the CPU's when all of the module's calls are there."""
    from torch.fx import GraphModule

    graphs = (part.graph for part in module.modules() if isinstance(part, GraphModule))
    calls = Counter(fx.operator_name(node) for graph in graphs for node in graph.nodes)
    on_cpu = Counter(cpu_calls)
    return partial(npu_replacement, frozenset(name for name in on_cpu if calls[name] == on_cpu[name]))


def is_table(node: Any) -> bool:
    """Whether the NPU looks the results of `node` up: a function of one quantised tensor, element by element."""
    import torch

    if node.op != "call_function" or torch.Tag.pointwise not in getattr(node.target, "tags", ()):
        return False
    sources = node.all_input_nodes
    return len(sources) == 1 and fx.is_dequantize(sources[0]) and not _is_linear(node)


def _is_linear(node: Any) -> bool:
    """Sums, products and clamps of a tensor and a number, which are computed with a rescale."""
    name = fx.operator_name(node).removeprefix("aten::").rstrip("_")
    return name in ("add", "sub", "mul", "div", "neg", "abs", "clamp", "clone", "relu", "hardtanh", "relu6")


def _quantize(value: Any, scale: float, zero_point: int, low: int, high: int, dtype: Any, **more: Any) -> Any:
    import torch

    del more
    return (torch.floor(value.double() / scale + 0.5) + zero_point).clamp(low, high).to(dtype)


def _dequantize(value: Any, scale: float, zero_point: int, *limits: Any, **more: Any) -> Any:
    del limits, more
    return (value.double() - zero_point) * scale


def _dequantize_channels(
    value: Any, scales: Any, zero_points: Any, axis: int, *limits: Any, **more: Any
) -> Any:
    del limits, more
    shape = [1] * value.dim()
    shape[axis] = -1
    points = 0 if zero_points is None else zero_points.double().view(shape)
    return (value.double() - points) * scales.double().view(shape)


def _in_float64(target: Any) -> Callable[..., Any]:
    """`target` with float64 in place of every float32, in tensors and in dtypes that are asked for."""
    import torch
    from torch.utils import _pytree

    def widened(item: Any) -> Any:
        if isinstance(item, torch.Tensor) and item.dtype == torch.float32:
            return item.double()
        return torch.float64 if item is torch.float32 else item

    def call(*args: Any, **named: Any) -> Any:
        wide_args, wide_named = _pytree.tree_map(widened, (args, named))
        return target(*wide_args, **wide_named)

    return call


def _upsample_bilinear2d(
    planes: Any, size: Sequence[int] | None, align_corners: bool, factors: Sequence[float] | None
) -> Any:
    """``aten::upsample_bilinear2d.vec``: between columns first, then between rows."""
    (top, bottom, down), (left, right, across) = (
        _sources(
            planes.shape[2 + axis],
            None if size is None else size[axis],
            None if factors is None else factors[axis],
            align_corners,
        )
        for axis in range(2)
    )
    rows = (1 - across) * planes[..., left] + across * planes[..., right]
    down = down[:, None]
    return (1 - down) * rows[..., top, :] + down * rows[..., bottom, :]


def _sources(
    length: int, size: int | None, factor: float | None, align_corners: bool
) -> tuple[Any, Any, Any]:
    """For each position along an axis of the result: two of the input and the weight of the second."""
    import torch

    if size is None:
        assert factor is not None
        size, step = int(length * factor), 1 / factor
    else:
        step = length / size
    at = torch.arange(size, dtype=torch.float32)
    if align_corners:
        place = at * torch.tensor((length - 1) / (size - 1) if size > 1 else 0.0)
    else:
        place = (torch.tensor(step) * (at + 0.5) - 0.5).clamp(min=0)
    first = place.long().clamp(max=length - 1)
    return first, (first + 1).clamp(max=length - 1), (place - first).clamp(0, 1)


_CONVERSIONS: dict[str, Callable[..., Any]] = {
    fx.QUANTIZE: _quantize,
    fx.DEQUANTIZE: _dequantize,
    fx.DEQUANTIZE_CHANNELS: _dequantize_channels,
}
_CPU_KERNELS = {"aten.upsample_bilinear2d.vec": _upsample_bilinear2d}
