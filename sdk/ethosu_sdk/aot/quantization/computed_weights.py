"""Stores weights that a program computes from parameters alone, so that a quantiser finds weights.

Normalised weights and those of a convolution over three axes, as one over two, are such.
"""

from __future__ import annotations

from typing import Any

_LAYERS = ("aten.conv", "aten.linear.")
_WEIGHT = 1


def store(module: Any) -> None:
    """Give every such layer of a ``GraphModule`` the values of its weights, in place."""
    import torch

    changed = False
    for node in list(module.graph.nodes):
        if node.op != "call_function" or not str(node.target).startswith(_LAYERS):
            continue
        weight = node.args[_WEIGHT]
        if weight.op != "call_function" or not _is_constant(module, weight):
            continue
        name = f"stored_{node.name}"
        value = _value(module, weight).detach().clone(memory_format=torch.contiguous_format)
        module.register_parameter(name, torch.nn.Parameter(value, requires_grad=False))
        with module.graph.inserting_before(node):
            stored = module.graph.get_attr(name)
        stored.meta = {key: known for key, known in weight.meta.items() if key != "custom"}
        node.update_arg(_WEIGHT, stored)
        changed = True
    if changed:
        module.graph.eliminate_dead_code()
        module.recompile()


def _is_constant(module: Any, node: Any) -> bool:
    """Whether only parameters lead to `node`, which nothing writes to."""
    import torch

    if node.op == "get_attr":
        return isinstance(_attribute(module, node), torch.nn.Parameter) and not any(map(_writes, node.users))
    if node.op != "call_function" or _writes(node) or torch.Tag.nondeterministic_seeded in _tags(node):
        return False
    return bool(node.all_input_nodes) and all(_is_constant(module, row) for row in node.all_input_nodes)


def _tags(node: Any) -> Any:
    return getattr(node.target, "tags", ())


def _writes(node: Any) -> bool:
    return bool(getattr(getattr(node.target, "_schema", None), "is_mutable", False))


def _value(module: Any, node: Any) -> Any:
    import torch

    if node.op == "get_attr":
        return _attribute(module, node)
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda row: _value(module, row))
    return node.target(*args, **kwargs)


def _attribute(module: Any, node: Any) -> Any:
    owner, _, name = node.target.rpartition(".")
    return getattr(module.get_submodule(owner), name)
