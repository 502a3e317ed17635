"""Normalisations that later passes would lose, and weights: shared with a normalised layer, or computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ethosu_sdk.compile.rewrite.convolutions_and_pooling import groups_of_transposed

Function = Callable[..., Any]

_FOLDED_INTO = ("aten.conv1d.", "aten.conv2d.", "aten.conv_transpose", "aten.linear.")
_BATCH_NORM = "aten.batch_norm.default"
_USE_INPUT_STATS = 5  # the argument that asks for the mean and variance of the input
_WEIGHT_AND_BIAS = (1, 2)
_LAYERS = ("aten.conv", "aten.linear.")


def _apart(x: Any, *args: Any, **kwargs: Any) -> Any:
    import torch

    return torch.ops.aten.batch_norm.default(x.view(x.shape), *args, **kwargs)


def _is_folded_into(node: Any) -> bool:
    """Whether torchao folds a batch normalisation of what `node` gives into its weights."""
    return str(node.target).startswith(_FOLDED_INTO)


def _apart_from(node: Any) -> Function | None:
    """A view before a batch normalisation, which goes when the program is lowered, where torchao 0.18's
    ``_fuse_conv_bn_`` and ``_fuse_linear_bn_`` would lose the normalisation as they fold it into a layer:

    - Others read the layer's result too, as in residual networks that normalise first: they would read normalised
      values.
    - It follows another batch normalisation, as in dense blocks: once that is folded, the weights count as done.
    - The layer is called several times, and what follows is not the same, as in heads that share their convolutions.
    - The layer is a transposed convolution with groups: torchao takes its weights for those of one group, and fails.
    """
    source = node.args[0]
    wrong = _is_normalised(source) or (
        _is_folded_into(source)
        and (len(source.users) > 1 or groups_of_transposed(source) > 1 or not _same_at_every_call(source))
    )
    return _apart if wrong else None


def _is_normalised(node: Any) -> bool:
    return str(node.target) == _BATCH_NORM


def _same_at_every_call(layer: Any) -> bool:
    """Whether each layer with the weights of `layer` has one reader, and all are normalised alike."""
    readers = [list(call.users) for call in layer.args[1].users]
    following = {tuple(row[0].args[1:]) if _is_normalised(row[0]) else None for row in readers if row}
    return len(following) == 1 and all(len(row) == 1 for row in readers)


def _by_group(
    x: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    """Instance normalisation as a group normalisation with one group per channel."""
    from torch.nn import functional

    del running_mean, running_var, use_input_stats, momentum, cudnn_enabled
    return functional.group_norm(x, x.shape[1], weight, bias, eps)


NORMALISATION_CHOICES: dict[str, Callable[[Any], Function | None]] = {
    _BATCH_NORM: _apart_from,
    "aten.instance_norm.default": lambda node: _by_group if node.args[_USE_INPUT_STATS] else None,
}


def separate_shared_weights(module: Any) -> None:
    """Give every layer of a ``GraphModule`` that a batch normalisation is folded into copies of the weights that it
    shares, in place: torchao changes them where they are, although other layers may read them too."""
    import torch

    changed = False
    for node in list(module.graph.nodes):
        if node.target is not torch.ops.aten.batch_norm.default or not _is_folded_into(node.args[0]):
            continue
        layer = node.args[0]
        for position in _WEIGHT_AND_BIAS[: len(layer.args) - 1]:
            source = layer.args[position]
            if isinstance(source, torch.fx.Node) and source.op == "get_attr" and len(source.users) > 1:
                value = _attribute(module, source).detach().clone()
                own = _parameter(module, layer, f"own_{layer.name}_{position}", value)
                own.meta = dict(source.meta)
                layer.update_arg(position, own)
                changed = True
    if changed:
        module.recompile()


def _parameter(module: Any, before: Any, name: str, value: Any) -> Any:
    """A node ahead of `before` that reads a new parameter."""
    import torch

    module.register_parameter(name, torch.nn.Parameter(value, requires_grad=False))
    with module.graph.inserting_before(before):
        return module.graph.get_attr(name)


def store_computed_weights(module: Any) -> None:
    """Give layers of a ``GraphModule`` whose weights and biases are computed from parameters alone the values of
    these, in place. Normalised weights are such, and those of convolutions in another form."""
    import torch

    changed = False
    for node in list(module.graph.nodes):
        if node.op != "call_function" or not str(node.target).startswith(_LAYERS):
            continue
        for position in _WEIGHT_AND_BIAS[: len(node.args) - 1]:
            source = node.args[position]
            if (
                not isinstance(source, torch.fx.Node)
                or source.op == "get_attr"
                or not _is_constant(module, source)
            ):
                continue
            value = _value(module, source).detach().clone(memory_format=torch.contiguous_format)
            stored = _parameter(module, node, f"stored_{node.name}_{position}", value)
            stored.meta = {key: known for key, known in source.meta.items() if key != "custom"}
            node.update_arg(position, stored)
            changed = True
    if changed:
        module.graph.eliminate_dead_code()
        module.recompile()


def _is_constant(module: Any, node: Any) -> bool:
    """Whether only parameters lead to `node`, which nothing writes to."""
    import torch

    if node.op == "get_attr":
        return isinstance(_attribute(module, node), torch.nn.Parameter) and not any(map(_writes, node.users))
    tags = getattr(node.target, "tags", ())
    if node.op != "call_function" or _writes(node) or torch.Tag.nondeterministic_seeded in tags:
        return False
    return bool(node.all_input_nodes) and all(_is_constant(module, row) for row in node.all_input_nodes)


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
