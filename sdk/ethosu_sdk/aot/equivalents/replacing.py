"""Replaces nodes of an exported program by a function of the same arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ethosu_sdk.aot.equivalents import convolutions, integers, normalisation, ordering, padding, pooling
from ethosu_sdk.aot.graph.fx import take_place
from ethosu_sdk.targets import Target

Function = Callable[..., Any]
# Given a node, each returns a function of the same arguments to use instead, or None to keep the node.
_CHOICES: dict[str, Callable[[Any], Function | None]] = {
    **convolutions.CHOICES,
    **integers.CHOICES,
    **normalisation.CHOICES,
    **ordering.CHOICES,
    **padding.CHOICES,
    **pooling.CHOICES,
}
_ON_U85 = ("aten.conv3d.", "aten.floor_divide.", "aten.div.")


def replace(program: Any, target: Target | None, *, quantized: bool) -> Any:
    """The ``ExportedProgram`` with such operators in terms of others, changed in place; what an Ethos-U85 has stays,
    if the program is for that and will be quantised."""
    ethos_u85 = quantized and target is not None and target.npu == "ethos-u85"
    changed = False
    for node in list(program.graph.nodes):
        name = str(node.target)
        stays = (ethos_u85 and name.startswith(_ON_U85)) or (target and convolutions.is_grouped_volume(node))
        choice = None if stays else _CHOICES.get(name)
        function = choice and choice(node)
        if function:
            inline(program, node, function)
            changed = True
    if changed:
        program.graph.eliminate_dead_code()
        program.graph_module.recompile()
    return program


def inline(
    program: Any, node: Any, function: Function, sources: Sequence[Any] | None = None, *, before: Any = None
) -> Any:
    """Put the operators that `function` calls in the place of `node`, as made by the same line of the model, and
    return what they give.

    The function gets the node's arguments, or `sources`, other nodes. With `before`, nothing is replaced.
    """
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils import _pytree

    place = node if before is None else before
    leaves, spec = _pytree.tree_flatten((node.args, node.kwargs) if sources is None else (tuple(sources), {}))
    sources = [leaf for leaf in leaves if isinstance(leaf, torch.fx.Node)]

    def call(*tensors: Any) -> Any:
        given = iter(tensors)
        filled = [next(given) if isinstance(leaf, torch.fx.Node) else leaf for leaf in leaves]
        args, kwargs = _pytree.tree_unflatten(filled, spec)
        return function(*args, **kwargs)

    values = [source.meta["val"] for source in sources]
    with values[0].fake_mode:
        traced = make_fx(call, pre_dispatch=True)(*values).graph
    known = dict(zip(traced.find_nodes(op="placeholder"), sources, strict=True))
    with place.graph.inserting_before(place):
        for step in traced.nodes:
            if step.op == "call_function":
                known[step] = place.graph.node_copy(step, known.__getitem__)
                known[step].meta = {**place.meta, "val": step.meta["val"]}
    result = _pytree.tree_map_only(torch.fx.Node, known.__getitem__, traced.output_node().args[0])
    if before is None:
        _use(program, node, result)
    return result


def _use(program: Any, node: Any, result: Any) -> None:
    """Let `result`, a node or several, take the place of `node` and of what takes its parts."""
    pairs = (
        [(node, result)]
        if not isinstance(result, (tuple, list))
        else [(user, result[user.args[1]]) for user in list(node.users)]
    )
    for old, new in pairs:
        take_place(program, old, new)
    if pairs and pairs[0][0] is not node:
        node.graph.erase_node(node)
