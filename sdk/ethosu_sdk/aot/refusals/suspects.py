"""Finds the operator that a tool was working on when it failed, from the frames of its exception."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_OPERATOR = re.compile(r"\b(aten|tosa|prims|dim_order_ops|quantized_decomposed)\.\w+(\.\w+)?")
_NO_OPERATORS = ("placeholder", "output", "get_attr")


@dataclass(frozen=True)
class Suspect:
    """An operator of a graph: its name as PyTorch has it, such as ``aten.roll.default``, and the node's notes."""

    operator: str
    meta: Mapping[str, Any]


def suspect(error: BaseException) -> Suspect | None:
    """The innermost of the :func:`suspects` that says where it is from, else the innermost."""
    found = list(suspects(error))
    return next((row for row in found if _has_place(row.meta)), found[0] if found else None)


def suspects(error: BaseException) -> Iterator[Suspect]:
    """The nodes in the frames of `error` and of what it came from, the innermost of the first cause first."""
    for cause in _causes(error):
        for frame, line in _frames(cause):
            known = _in_frame(frame.f_locals) or _in_generated_code(frame, line)
            if known is not None:
                yield known


def _causes(error: BaseException | None) -> list[BaseException]:
    """`error` and what it came from, the first cause first."""
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain[::-1]


def _frames(error: BaseException) -> Iterator[tuple[Any, int]]:
    """The frames that `error` went through and the line in each, innermost first."""
    frames = []
    step = error.__traceback__
    while step is not None:
        frames.append((step.tb_frame, step.tb_lineno))
        step = step.tb_next
    return reversed(frames)


def _in_frame(names: Mapping[str, Any]) -> Suspect | None:
    """The node that a function works on: Arm's passes call it `node`, or have an operator and its `meta`."""
    import torch

    nodes = [names.get(name) for name in ("node", "n", "mul_node", "op_node", "bias_node", "target_node")]
    for node in nodes:
        if isinstance(node, torch.fx.Node) and node.op not in _NO_OPERATORS:
            return _of(node)
    meta = getattr(names.get("meta"), "data", names.get("meta"))
    operator = names.get("op", names.get("target"))
    if isinstance(meta, Mapping) and operator is not None and not isinstance(operator, str):
        return Suspect(_name(operator), meta)
    return None


def _in_generated_code(frame: Any, line: int) -> Suspect | None:
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
    return None if node is None or node.op in _NO_OPERATORS else _of(node)


def _of(node: Any) -> Suspect:
    """The suspect for a node. Nodes that torch adds, such as the write of a buffer's new value, have no place in the
    model: the place of their input is used."""
    target = node.args[1] if _name(node.target) == "with_effects" else node.target
    placed = (part for part in (node, *node.all_input_nodes) if _has_place(part.meta))
    return Suspect(_name(target), next(placed, node).meta)


def _has_place(meta: Mapping[str, Any]) -> bool:
    return bool(meta.get("stack_trace") or meta.get("nn_module_stack"))


def _name(target: Any) -> str:
    """An operator's name, such as ``aten.roll.default``, without the schema that ExecuTorch's overloads print."""
    text = str(target)
    known = _OPERATOR.search(text)
    return known[0] if known else str(getattr(target, "__name__", text))
