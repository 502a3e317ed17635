"""Operators that cannot be compiled: those that are known, and which one a tool was working on when it failed."""

from __future__ import annotations

import linecache
import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RefusedOperator:
    """Operators whose name fits the pattern, in PyTorch's spelling without the overload; the reason, and the way out,
    which was compiled and run (tests/integration/compile/forms)."""

    pattern: str
    reason: str
    way_out: str


_OPERATOR = re.compile(r"\b(aten|tosa|prims|dim_order_ops|quantized_decomposed)\.\w+(\.\w+)?")
_NO_OPERATORS = ("placeholder", "output", "get_attr")
_NO_KERNEL = "neither the NPU nor the CPU kernels support it"

REFUSED_OPERATORS = (
    RefusedOperator(
        r"sort|argsort|msort",
        "no kernel returns the indices of sorted values",
        "use torch.topk(x, x.shape[dim], dim), which returns the indices too, or use only the sorted values",
    ),
    RefusedOperator(
        r"median|kthvalue",
        "no kernel returns the index of that value",
        "use torch.topk(x, k, dim, largest=False), which returns the indices too, or use only the values",
    ),
    RefusedOperator(
        r"convolution\.out",
        "no kernel supports transposed or grouped convolutions over three axes",
        "use a Conv3d without groups, or a ConvTranspose2d over the last two axes with the depth moved into the "
        "batch",
    ),
    RefusedOperator(
        r"cummax|cummin",
        _NO_KERNEL,
        "unroll it: compute each step by torch.maximum of the previous step and the next slice, and join the steps "
        "by torch.stack",
    ),
    RefusedOperator(
        r"as_strided_scatter|diagonal_scatter",
        _NO_KERNEL,
        "write diagonals with torch.where and a mask: self.register_buffer('m', torch.eye(n, dtype=torch.bool))",
    ),
    RefusedOperator(
        r"eye", _NO_KERNEL, "create it in the module's __init__: self.register_buffer('m', torch.eye(n))"
    ),
    RefusedOperator(
        r"while_loop|scan",
        "ExecuTorch's Arm backend cannot quantise or lower this loop",
        "write it as a `for` with a fixed number of steps, which torch.export unrolls",
    ),
)


def refusal_of(operator: str) -> RefusedOperator | None:
    """The row of an operator, in any of its spellings: ``aten.sort.default``, ``aten::sort.values``, ``scan``."""
    name = operator.replace("::", ".").removeprefix("aten.")
    return next((row for row in REFUSED_OPERATORS if re.fullmatch(rf"({row.pattern})(\..*)?", name)), None)


@dataclass(frozen=True)
class FailingNode:
    """An operator of a graph: its name as PyTorch has it, such as ``aten.roll.default``, and the node's notes."""

    operator: str
    meta: Mapping[str, Any]


def failing_node(error: BaseException) -> FailingNode | None:
    """The innermost of the :func:`failing_nodes` that says where it is from, else the innermost."""
    found = list(failing_nodes(error))
    return next((row for row in found if _has_place(row.meta)), found[0] if found else None)


def failing_nodes(error: BaseException) -> Iterator[FailingNode]:
    """The nodes in the frames of `error` and of what it came from, the innermost of the first cause first."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    for cause in reversed(chain):
        for frame, line in reversed(list(traceback.walk_tb(cause.__traceback__))):
            known = _in_frame(frame.f_locals) or _in_generated_code(frame, line)
            if known is not None:
                yield known


def _in_frame(names: Mapping[str, Any]) -> FailingNode | None:
    """The node that a function works on: Arm's passes call it `node`, or have an operator and its `meta`."""
    import torch

    nodes = [names.get(name) for name in ("node", "n", "mul_node", "op_node", "bias_node", "target_node")]
    for node in nodes:
        if isinstance(node, torch.fx.Node) and node.op not in _NO_OPERATORS:
            return _placed(node)
    meta = getattr(names.get("meta"), "data", names.get("meta"))
    operator = names.get("op", names.get("target"))
    if isinstance(meta, Mapping) and operator is not None and not isinstance(operator, str):
        return FailingNode(_name(operator), meta)
    return None


def _in_generated_code(frame: Any, line: int) -> FailingNode | None:
    """The node of a graph that torch runs as generated Python code, with one line for each node."""
    import torch

    module = frame.f_locals.get("self")
    if not frame.f_code.co_filename.startswith("<eval_with_key>") or not isinstance(
        module, torch.fx.GraphModule
    ):
        return None
    text = linecache.getline(frame.f_code.co_filename, line, frame.f_globals)
    name = text.partition("=")[0].partition(":")[0].strip()
    node = next((node for node in module.graph.nodes if node.name == name), None)
    return None if node is None or node.op in _NO_OPERATORS else _placed(node)


def _placed(node: Any) -> FailingNode:
    """The suspect for a node; nodes that torch adds have no place in the model: that of their input is used."""
    target = node.args[1] if _name(node.target) == "with_effects" else node.target
    placed = (part for part in (node, *node.all_input_nodes) if _has_place(part.meta))
    return FailingNode(_name(target), next(placed, node).meta)


def _has_place(meta: Mapping[str, Any]) -> bool:
    return bool(meta.get("stack_trace") or meta.get("nn_module_stack"))


def _name(target: Any) -> str:
    text = str(target)
    known = _OPERATOR.search(text)
    return known[0] if known else str(getattr(target, "__name__", text))
