"""Tensors that Vela would read or write with the shape of another tensor.

Vela 5.1.0 saves copies where it can: the operation behind a SLICE reads the part where it lies, and the one before a
CONCAT, PAD or RESHAPE writes where, and in which shape, the result shall lie. Some operations are given another shape
on their way to the NPU, or are several there. Of these, without a word:

- reductions, and on Ethos-U55 and Ethos-U65 the first operand of a MATMUL, read the whole tensor as if it were the
  part. Attention that splits one tensor into query, key and value is made of such products.
- maxima and minima, of truth values too, write a part of a larger tensor as if it were all of it.
- the subtractions that begin and end a REDUCE_MIN on Ethos-U55 and Ethos-U65 read their operand in the shape that
  another reader has, or that is behind a RESHAPE or TRANSPOSE; and Vela refuses one behind which the result is
  rescaled.
- a convolution that takes over the zeros of a PAD before it reads in the shape before the PAD: where a RESHAPE lies
  between the two, the batches of sequences are rows to it.

A CLAMP to all values of the type between the two, or LOGICAL_OR of a truth value with itself, changes nothing and
keeps them apart: it reads and writes rightly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ethosu_sdk.aot.graph.tosa_nodes import operator, origin

_EXTREMA = ("REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN")
_CONVOLUTIONS = ("CONV2D", "DEPTHWISE_CONV2D")
_REDUCTIONS = (*_EXTREMA, "REDUCE_PRODUCT", "REDUCE_SUM")


def repair(graph: Any) -> bool:
    """Put an operator that changes nothing between those whose shapes Vela mixes up."""
    from executorch.backends.arm.tosa.specification import get_context_spec

    u55 = get_context_spec().is_U55_subset
    found, read = dict.fromkeys(_mixed_up(graph, u55)), list(_read_too(graph)) if u55 else []
    for node in found:
        _separate(graph, node)
    for node, reader in read:
        _separate(graph, node, reader)
    return bool(found or read)


def _mixed_up(graph: Any, u55: bool) -> Iterator[Any]:
    """The affected tensors; Vela handles those of int32 correctly."""
    readers = (*_REDUCTIONS, "MATMUL") if u55 else _REDUCTIONS
    for node in graph.nodes:
        name = operator(node)
        if name in readers:
            source = origin(node.args[0])
            if operator(source) == "SLICE" and _is_narrow(source):
                yield source
        # The maximum of a softmax goes into a subtraction, and needs nothing.
        alone = name == "REDUCE_MAX" and all(operator(user) == "RESCALE" for user in node.users)
        if name in _EXTREMA and not alone and _is_narrow(node):
            yield node
        if name == "PAD" and not node.kwargs.get("value") and _is_read_otherwise(node, _four(node)):
            yield node


def _is_read_otherwise(node: Any, shape: Sequence[int]) -> bool:
    """Whether a convolution reads `node` in another shape than `shape`, perhaps through a RESHAPE."""
    return any(
        _is_read_otherwise(user, shape)
        if operator(user) in ("IDENTITY", "RESHAPE")
        else operator(user) in _CONVOLUTIONS and _four(node) != shape
        for user in node.users
    )


def _four(node: Any) -> list[int]:
    """The shape of a tensor with ones ahead, as Vela reads it."""
    shape = list(node.meta["val"].shape)
    return [1] * (4 - len(shape)) + shape


def _is_narrow(node: Any) -> bool:
    import torch

    return node.meta["val"].dtype in (torch.bool, torch.int8, torch.int16)


def _read_too(graph: Any) -> Iterator[tuple[Any, Any]]:
    """The operands of REDUCE_MIN that others read too, perhaps in another shape, each with that operation."""
    for node in graph.nodes:
        if operator(node) == "REDUCE_MIN" and _is_narrow(node) and len(node.args[0].users) > 1:
            yield node.args[0], node


def _separate(graph: Any, node: Any, reader: Any = None) -> None:
    """Let the readers of `node`, or the one that is given, read a copy of it."""
    import torch
    from executorch.exir.dialects._ops import ops

    tosa, dtype = ops.backend.tosa, node.meta["val"].dtype
    with graph.inserting_after(node):
        if dtype == torch.bool:
            same = graph.call_function(tosa.LOGICAL_OR.default, (node, node))
        else:
            limits = torch.iinfo(dtype)
            same = graph.call_function(tosa.CLAMP.default, (node, limits.min, limits.max))
    same.meta = dict(node.meta)
    node.replace_all_uses_with(same, delete_user_cb=lambda user: user is not same and reader in (None, user))
