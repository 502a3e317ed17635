"""From which nodes of earlier graphs a node was made: ``torch.export`` keeps that in its `meta`."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any


def history(meta: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """(name, id of the graph) of the nodes that a node was made from, the latest first."""
    pending = list(meta.get("from_node") or ())
    while pending:
        source = pending.pop(0)
        yield source.name, source.graph_id
        pending = [*source.from_node, *pending]


def counterpart(graph: Any, node: Any) -> Any | None:
    """The node of an earlier `graph` from which `node` was made; None where there is none.

    Inputs have no history and keep their names; a part of a result has that of the whole.
    """
    named = {row.name: row for row in graph.nodes}
    if node.op == "placeholder":
        return named.get(node.name)
    if node.target is operator.getitem:
        whole = counterpart(graph, node.args[0])
        parts = () if whole is None else whole.users
        return next(
            (row for row in parts if (row.target, row.args[1:]) == (node.target, node.args[1:])), None
        )
    return next((named[name] for name, key in history(node.meta) if key == id(graph) and name in named), None)
