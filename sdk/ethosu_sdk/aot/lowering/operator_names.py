"""The names of the operators that a graph calls."""

from __future__ import annotations

from typing import Any


def operator_name(node: Any) -> str:
    """The node's operator without its overload, as a program has it: ``aten::add``; empty for another node."""
    return str(getattr(getattr(node.target, "_schema", None), "name", ""))
