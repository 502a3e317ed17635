"""From which nodes of earlier graphs a node was made: ``torch.export`` keeps that in its `meta`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any


def history(meta: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """(name, id of the graph) of the nodes that a node was made from, the latest first."""
    pending = list(meta.get("from_node") or ())
    while pending:
        source = pending.pop(0)
        yield source.name, source.graph_id
        pending = [*source.from_node, *pending]


def name_in(graph_id: int, names: Collection[str], node: Any) -> str | None:
    """What `node` was called in the graph `graph_id`, which has nodes of these `names`; None where it was not there.

    Inputs have no history and keep their names.
    """
    if node.op == "placeholder":
        return node.name if node.name in names else None
    return next((name for name, key in history(node.meta) if key == graph_id and name in names), None)
