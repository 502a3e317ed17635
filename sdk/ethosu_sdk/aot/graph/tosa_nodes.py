"""Nodes of a graph that ExecuTorch has brought to operators of TOSA, before it is written as a flatbuffer."""

from __future__ import annotations

from typing import Any

from ethosu_sdk.aot.graph.fx import operator_name

_TRANSPARENT = ("IDENTITY", "RESCALE", "RESHAPE")
_MOVED = ("IDENTITY", "RESHAPE", "TRANSPOSE")


def operator(node: Any) -> str | None:
    """The name of the node's TOSA operator, such as ``CONV2D``; None for an input or another operator."""
    space, _, name = operator_name(node).partition("::")
    return name if space == "tosa" else None


def origin(node: Any) -> Any:
    """The first node before `node`, or itself, that does more than to scale values or to give them another shape."""
    while operator(node) in _TRANSPARENT:
        node = node.args[0]
    return node


def first_transpose(node: Any) -> Any | None:
    """The first TRANSPOSE of those through which values alone come from `node` to its one reader; None when there is
    none."""
    found = None
    while operator(node) in _MOVED and len(node.users) == 1:
        found = node if operator(node) == "TRANSPOSE" else found
        node = node.args[0]
    return found


def bring_forward(activation: Any, first: Any) -> None:
    """Let `activation`, which looks at single values, read what `first` reads, a node before it.

    From `first` up to the node that it read from, each result is used by the next one alone.
    """
    last = activation.args[0]
    activation.replace_all_uses_with(last)
    activation.replace_input_with(last, first.args[0])
    first.replace_input_with(first.args[0], activation)
    first.prepend(activation)
