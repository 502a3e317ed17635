"""Graphs of torch.fx."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# By name, because torch and torchao have classes of their own.
_OBSERVERS = frozenset({"ObserverBase", "FakeQuantizeBase"})


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


def is_observer(module: Any) -> bool:
    """Whether a module observes values, or pretends to quantise them, as a graph does before it is converted."""
    return bool(_OBSERVERS & {kind.__name__ for kind in type(module).__mro__})


def take_place(program: Any, old: Any, new: Any) -> None:
    """Let the node `new` of an ``ExportedProgram`` take the place of `old`, which goes."""
    old.replace_all_uses_with(new)
    rename_output(program, old, new)
    old.graph.erase_node(old)


def rename_output(program: Any, old: Any, new: Any) -> None:
    """Let the outputs of an ``ExportedProgram`` that are called like `old` be called like `new`."""
    for row in program.graph_signature.output_specs:
        if row.arg.name == old.name:
            row.arg.name = new.name
