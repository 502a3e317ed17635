"""Changes of the order of an image's axes in memory, between NCHW and NHWC, that a program does on the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ethosu_sdk.aot.facts.compilation import LayoutFacts
from ethosu_sdk.aot.graph.fx import operator_name

_PERMUTES = ("cortex_m::transpose", "aten::permute_copy", "channels_last::permute_copy")
_COPIES = ("dim_order_ops::_to_dim_order_copy", "dim_order_ops::_clone_dim_order")
_ORDERS = ((0, 2, 3, 1), (0, 3, 1, 2))


def find(manager: Any, method: str) -> LayoutFacts:
    """The changes of a method, and the bytes of the tensors that they write."""
    changed = [
        node.meta["val"]
        for node in manager.exported_program(method).graph.nodes
        if is_change(operator_name(node), node)
    ]
    return LayoutFacts(len(changed), sum(row.numel() * row.element_size() for row in changed))


def is_change(name: str, node: Any) -> bool:
    """Whether `node`, which calls the operator `name`, brings an image into the other order."""
    if name in _PERMUTES:
        order = tuple(node.args[1])
        return tuple(axis % len(order) for axis in order) in _ORDERS and _moves(node.args[0].meta, order)
    if name in _COPIES:
        orders = [tuple(row.meta["val"].dim_order()) for row in (node.args[0], node)]
        return orders[0] != orders[1] and any(row in _ORDERS for row in orders)
    return False


def _moves(meta: Mapping[str, Any], order: tuple[int, ...]) -> bool:
    """Whether the axes that `order` moves have more than one element."""
    sizes = meta["val"].shape
    return [axis for axis in order if sizes[axis] > 1] != list(_long(sizes))


def _long(sizes: Any) -> Iterator[int]:
    return (axis for axis, size in enumerate(sizes) if size > 1)
