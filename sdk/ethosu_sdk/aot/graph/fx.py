"""Graphs of torch.fx."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def nodes(module: Any) -> Iterator[Any]:
    """The nodes of a graph and of the graphs inside of it (branches, regions of autocast)."""
    import torch

    for part in module.modules():
        if isinstance(part, torch.fx.GraphModule):
            yield from part.graph.nodes


def is_mutable(node: Any) -> bool:
    """Whether a node calls an operator that writes to an argument."""
    schema = getattr(node.target, "_schema", None)
    return node.op == "call_function" and schema is not None and bool(schema.is_mutable)


def operator_name(node: Any) -> str:
    """The node's operator without its overload, as a program has it: ``aten::add``; empty for another node."""
    return str(getattr(getattr(node.target, "_schema", None), "name", ""))
