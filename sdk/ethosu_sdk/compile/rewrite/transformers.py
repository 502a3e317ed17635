"""Layers of transformers in forms that cost the NPU less: projections of attention, and layer normalisation."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from typing import Any

from ethosu_sdk.compile.graphs.fx import stored_values
from ethosu_sdk.compile.rewrite.before_quantisation import Goal, inline

_LINEAR = "aten.linear.default"
_SAME = ("aten.contiguous.default", "aten.clone.default")
_SHAPED = ("aten.reshape.default", "aten.view.default", "aten.unflatten.int")
Replaced = list[tuple[dict[str, Any], str]]


def split_projections(program: Any, goal: Goal) -> Replaced:
    """Make several linear layers of one whose result is turned round and then taken apart, as queries, keys and
    values of attention are: the NPU turns small tensors round for a tenth of the cycles, and each gets a scale."""
    del goal
    constants, replaced = stored_values(program), []
    for node in list(program.graph.nodes):
        if str(node.target) != _LINEAR or any(row not in constants for row in _weights(node)):
            continue
        found = _taken_apart(node)
        if found is None:
            continue
        sizes, order, leaves = found
        replaced.append((dict(node.meta), _LINEAR))
        for leaf, index in leaves:
            rows = slice(index * sizes[1], (index + 1) * sizes[1])
            part = [constants[row][rows] for row in _weights(node)]
            project = functools.partial(_project, part=part, sizes=sizes[2:], order=order)
            made = inline(program, leaf, project, [node.args[0]])
            while str(made.target) != _LINEAR:
                made = made.args[0]
            made.meta = {**node.meta, "val": made.meta["val"]}
    return replaced


def _weights(linear: Any) -> list[Any]:
    """The nodes of a linear layer's weight and of its bias, if it has one."""
    return [row for row in linear.args[1:] if row is not None]


def _project(x: Any, part: Sequence[Any], sizes: Sequence[int], order: Sequence[int | None]) -> Any:
    """A linear layer whose last axis is split into `sizes`; then the axes in `order`, None for a new one."""
    made = _linear(x, part).reshape(*x.shape[:-1], *sizes)
    made = made.permute([axis for axis in order if axis is not None])
    for place, axis in enumerate(order):
        made = made.unsqueeze(place) if axis is None else made
    return made


def _taken_apart(node: Any) -> tuple[list[int], list[int | None], list[tuple[Any, int]]] | None:
    """How the result of a linear layer is taken apart: the number of parts, the channels of each and the sizes that
    these are split into; the axes of each part, as numbers of those before; and the parts with their numbers. None
    where the result is used in another way."""
    shape: list[int] = list(node.meta["val"].shape)
    user: Any = _only_user(node)
    if user is None or str(user.target) not in _SHAPED:
        return None
    lead, made = len(shape) - 1, list(user.meta["val"].shape)
    if made[:lead] != shape[:lead] or len(made) < lead + 2:
        return None
    axes: list[int | None] = list(range(len(made)))
    while True:
        node, users = user, list(user.users)
        user = _only_user(node)
        moved = None if user is None else _moved(user, axes)
        if moved is None:
            break
        axes = moved
    leaves = list(_parts(users, axes, lead))
    if not leaves or (len(leaves) != len(users) and str(users[0].target) != "aten.unbind.int"):
        return None
    order = [axis if axis is None or axis < lead else axis - 1 for axis in axes if axis != lead]
    return [made[lead], shape[-1] // made[lead], *made[lead + 1 :]], order, leaves


def _only_user(node: Any) -> Any | None:
    return next(iter(node.users)) if len(node.users) == 1 else None


def _moved(user: Any, axes: Sequence[int | None]) -> list[int | None] | None:
    """`axes` behind an operator that only moves them; None for another operator."""
    name, args = str(user.target), user.args
    if name in _SAME:
        return list(axes)
    if name == "aten.permute.default":
        return [axes[axis] for axis in args[1]]
    if name == "aten.transpose.int":
        first, second = (axis % len(axes) for axis in args[1:3])
        result = list(axes)
        result[first], result[second] = axes[second], axes[first]
        return result
    if name == "aten.unsqueeze.default":
        place = args[1] % (len(axes) + 1)
        return [*axes[:place], None, *axes[place:]]
    if name == "aten.squeeze.dim":
        place = args[1] % len(axes)
        return [*axes[:place], *axes[place + 1 :]] if axes[place] is None else None
    return None


def _parts(users: Sequence[Any], axes: Sequence[int | None], lead: int) -> Iterator[tuple[Any, int]]:
    """The users that take one part of the axis `lead` each, with its number; those of an ``unbind`` too."""
    for user in users:
        axis = user.args[1] if len(user.args) > 1 and isinstance(user.args[1], int) else 0
        if str(user.target) == "aten.unbind.int" and axes[axis] == lead and len(users) == 1:
            for part in user.users:
                if part.target is operator.getitem:
                    yield part, part.args[1]
        elif str(user.target) == "aten.select.int" and axes[axis] == lead:
            parts = user.args[0].meta["val"].shape[axis]
            yield user, user.args[2] % parts


def simplify_layer_norms(program: Any, goal: Goal) -> Replaced:
    """Take layer normalisation apart so that the difference from the mean is computed once; where only linear layers
    read the result, its scale and offset go into their weights."""
    del goal
    constants, replaced = stored_values(program), []
    for node in list(program.graph.nodes):
        if str(node.target) != "aten.layer_norm.default" or len(node.args[1]) != 1:
            continue
        replaced.append((dict(node.meta), str(node.target)))
        factor, offset = (*node.args[2:4], None, None)[:2]
        if _fold(program, node, factor, offset, constants):
            factor = offset = None
        given = {"factor": factor, "offset": offset}
        named = [name for name, row in given.items() if row is not None]
        epsilon = node.args[4] if len(node.args) > 4 else 1e-5
        normalise = functools.partial(_normalise, named=named, epsilon=epsilon)
        inline(program, node, normalise, [node.args[0], *(given[name] for name in named)])
    return replaced


def _normalise(x: Any, *affine: Any, named: Sequence[str], epsilon: float) -> Any:
    import torch

    given = dict(zip(named, affine, strict=True))
    difference = x - x.mean(-1, keepdim=True)
    result = difference * torch.rsqrt((difference * difference).mean(-1, keepdim=True) + epsilon)
    result = result * given["factor"] if "factor" in given else result
    return result + given["offset"] if "offset" in given else result


def _fold(program: Any, node: Any, factor: Any, offset: Any, constants: dict[Any, Any]) -> bool:
    """Put the scale and offset of a normalisation into the linear layers that alone read it; whether that was
    done."""
    users = list(node.users)
    if not users or any(str(user.target) != _LINEAR or user.args[0] is not node for user in users):
        return False
    needed = [row for user in users for row in _weights(user)] + [
        row for row in (factor, offset) if row is not None
    ]
    if any(row not in constants for row in needed):
        return False
    for user in users:
        weight, *bias = (constants[row] for row in _weights(user))
        if offset is not None:
            bias = [sum(bias, start=weight @ constants[offset])]
        scaled = weight if factor is None else weight * constants[factor]
        inline(program, user, functools.partial(_linear, part=[scaled, *bias]), [node])
    return True


def _linear(x: Any, part: Sequence[Any]) -> Any:
    from torch.nn import functional

    return functional.linear(x, *part)
