"""Normalisations that later passes would lose, and weights: shared with a normalised layer, or computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ethosu_sdk.compile.rewrite.convolutions_and_pooling import groups_of_transposed

# ---- aot.equivalents.normalisation
# Rewrites normalisations that a later pass would lose.
#
# Batch normalisation behind a layer with weights, into which torchao 0.18's ``_fuse_conv_bn_`` and
# ``_fuse_linear_bn_`` fold it:
#
# - Others read the layer's result too, as in residual networks that normalise first: they would read normalised
# values.
# - It follows another batch normalisation, as in dense blocks: once that is folded, the weights count as done,
# and the
#   second is dropped.
# - The layer is called several times, and what follows is not the same, as in heads that share their convolutions
# and
#   normalise each level by itself: the later ones are dropped.
# - The layer is a transposed convolution with groups: torchao takes its weights for those of one group, and fails.
#
# A view between the two keeps them apart, and is removed when the program is lowered.
#
# Instance normalisation, which ExecuTorch 1.5.1 leaves on the CPU: a group normalisation with one group per
# channel.

Function = Callable[..., Any]

_FOLDED_INTO = ("aten.conv1d.", "aten.conv2d.", "aten.conv_transpose", "aten.linear.")
_BATCH_NORM = "aten.batch_norm.default"
_USE_INPUT_STATS = 5  # the argument that asks for the mean and variance of the input


def _apart(x: Any, *args: Any, **kwargs: Any) -> Any:
    import torch

    return torch.ops.aten.batch_norm.default(x.view(x.shape), *args, **kwargs)


def is_folded_into(node: Any) -> bool:
    """Whether torchao folds a batch normalisation of what `node` gives into its weights."""
    return str(node.target).startswith(_FOLDED_INTO)


def _apart_from(node: Any) -> Function | None:
    source = node.args[0]
    wrong = _is_normalised(source) or (
        is_folded_into(source)
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
    from torch.nn import functional

    del running_mean, running_var, use_input_stats, momentum, cudnn_enabled
    return functional.group_norm(x, x.shape[1], weight, bias, eps)


def _of_input(node: Any) -> Function | None:
    return _by_group if node.args[_USE_INPUT_STATS] else None


NORMALISATION_CHOICES: dict[str, Callable[[Any], Function | None]] = {
    _BATCH_NORM: _apart_from,
    "aten.instance_norm.default": _of_input,
}


# ---- aot.quantization.own_weights
# Gives layers separate weights when a batch normalisation is folded into them.
#
# torchao 0.18's ``_fuse_conv_bn_`` and ``_fuse_linear_bn_`` change a layer's weights in place, although another
# layer
# may read them too, and drop all but the first normalisation: heads of detectors that share convolutions between
# levels, and have normalisations for each level.

_WEIGHT_AND_BIAS = (1, 2)


def separate_shared_weights(module: Any) -> None:
    """Give every such layer of a ``GraphModule`` copies of the weights that it shares, in place."""
    import torch

    changed = False
    for node in list(module.graph.nodes):
        if node.target is not torch.ops.aten.batch_norm.default or not is_folded_into(node.args[0]):
            continue
        layer = node.args[0]
        for position in _WEIGHT_AND_BIAS[: len(layer.args) - 1]:
            source = layer.args[position]
            if isinstance(source, torch.fx.Node) and source.op == "get_attr" and len(source.users) > 1:
                layer.update_arg(
                    position, _copied_weight(module, layer, source, f"own_{layer.name}_{position}")
                )
                changed = True
    if changed:
        module.recompile()


def _copied_weight(module: Any, layer: Any, source: Any, name: str) -> Any:
    import torch

    owner, _, attribute = source.target.rpartition(".")
    value = getattr(module.get_submodule(owner), attribute)
    module.register_parameter(name, torch.nn.Parameter(value.detach().clone(), requires_grad=False))
    with module.graph.inserting_before(layer):
        copy = module.graph.get_attr(name)
    copy.meta = dict(source.meta)
    return copy


# ---- aot.quantization.computed_weights
# Stores weights that a program computes from parameters alone, so that a quantiser finds weights.
#
# Normalised weights and those of a convolution over three axes, as one over two, are such.

_LAYERS = ("aten.conv", "aten.linear.")
_WEIGHT = 1


def store_computed_weights(module: Any) -> None:
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
