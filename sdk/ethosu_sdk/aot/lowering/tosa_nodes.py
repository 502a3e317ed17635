"""Nodes of a graph that ExecuTorch has brought to operators of TOSA, before it is written as a flatbuffer."""

from __future__ import annotations

from typing import Any

from ethosu_sdk.aot.lowering.operator_names import operator_name

_TRANSPARENT = ("IDENTITY", "RESCALE", "RESHAPE")


def operator(node: Any) -> str | None:
    """The name of the node's TOSA operator, such as ``CONV2D``; None for an input or another operator."""
    space, _, name = operator_name(node).partition("::")
    return name if space == "tosa" else None


def origin(node: Any) -> Any:
    """The first node before `node`, or itself, that does more than to scale values or to give them another shape."""
    while operator(node) in _TRANSPARENT:
        node = node.args[0]
    return node
