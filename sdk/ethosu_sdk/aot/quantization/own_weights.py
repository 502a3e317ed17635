"""Gives layers separate weights when a batch normalisation is folded into them.

torchao 0.18's ``_fuse_conv_bn_`` and ``_fuse_linear_bn_`` change a layer's weights in place, although another layer
may read them too, and drop all but the first normalisation: heads of detectors that share convolutions between
levels, and have normalisations for each level.
"""

from __future__ import annotations

from typing import Any

from ethosu_sdk.aot.equivalents.normalisation import is_folded_into

_WEIGHT_AND_BIAS = (1, 2)


def separate(module: Any) -> None:
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
                layer.update_arg(position, _copy(module, layer, source, f"own_{layer.name}_{position}"))
                changed = True
    if changed:
        module.recompile()


def _copy(module: Any, layer: Any, source: Any, name: str) -> Any:
    import torch

    owner, _, attribute = source.target.rpartition(".")
    value = getattr(module.get_submodule(owner), attribute)
    module.register_parameter(name, torch.nn.Parameter(value.detach().clone(), requires_grad=False))
    with module.graph.inserting_before(layer):
        copy = module.graph.get_attr(name)
    copy.meta = dict(source.meta)
    return copy
