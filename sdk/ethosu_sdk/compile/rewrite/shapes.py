"""Operators that move or choose values, as slices, products and the spellings that ExecuTorch's quantiser knows.

ExecuTorch's quantiser goes by a list of operators. Others stay floating point, and on the CPU, although the NPU has
what they are made of.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ethosu_sdk.compile.graphs.fx import add_constant, stored_values
from ethosu_sdk.compile.rewrite.before_quantisation import Function, Goal, GoalChoice, inline
from ethosu_sdk.compile.rewrite.convolutions_and_pooling import part

_MOST_SLICES = 16  # in the place of one operator
_MOST_MATRIX_BYTES = 64 * 1024
_MASKS = -100.0  # at or below it, a constant hides a score from a softmax: attention_masks places it

# What torch itself defines by operators of the quantiser's list.
_COMPOSED = frozenset(
    f"aten.{name}"
    for name in (
        *("absolute.default", "adjoint.default", "atleast_3d.default", "block_diag.default"),
        *("broadcast_to.default", "clip.default", "dstack.default", "expand_as.default"),
        *("fliplr.default", "flipud.default", "hsplit.array", "hsplit.int", "hstack.default"),
        *("inner.default", "kron.default", "mT.default", "max.other", "meshgrid.indexing"),
        *("min.other", "multiply.Tensor", "narrow.default", "negative.default", "numpy_T.default"),
        *(
            "outer.default",
            "ravel.default",
            "reshape_as.default",
        ),
        *("square.default", "subtract.Tensor", "swapaxes.default", "swapdims.default"),
        *("tensor_split.indices", "tensor_split.sections", "tensordot.default"),
        *("true_divide.Tensor", "unsafe_chunk.default", "vsplit.array", "vsplit.int"),
        *("vstack.default",),
    )
)


def _computes_floats(node: Any) -> bool:
    import torch

    value = node.meta.get("val")
    first = value[0] if isinstance(value, (tuple, list)) and value else value
    return isinstance(first, torch.Tensor) and first.is_floating_point()


def _for_floats(function: Function) -> GoalChoice:
    """A choice of `function` where floating-point values come out: integers stay with the operator that they have."""
    return lambda node, goal: function if _computes_floats(node) else None


def _join(parts: list[Any], dim: int) -> Any:
    import torch

    return parts[0] if len(parts) == 1 else torch.cat(parts, dim)


def _largest(x: Any) -> Any:
    return x.amax(tuple(range(x.dim())))


def _smallest(x: Any) -> Any:
    return x.amin(tuple(range(x.dim())))


def _at_least(x: Any, low: Any) -> Any:
    import torch

    return x.maximum(low) if isinstance(low, torch.Tensor) else x.clamp(min=low)


def _at_most(x: Any, high: Any) -> Any:
    import torch

    return x.minimum(high) if isinstance(high, torch.Tensor) else x.clamp(max=high)


def _by_root_mean_square(x: Any, shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    import torch

    axes = tuple(range(-len(shape), 0))
    least = torch.finfo(x.dtype).eps if eps is None else eps
    scaled = x * (x.pow(2).mean(axes, keepdim=True) + least).rsqrt()
    return scaled if weight is None else scaled * weight


_SPELLINGS: dict[str, Function] = {
    **dict.fromkeys(("aten.clamp_min.default", "aten.clamp_min.Tensor"), _at_least),
    **dict.fromkeys(("aten.clamp_max.default", "aten.clamp_max.Tensor"), _at_most),
    "aten.max.default": _largest,
    "aten.min.default": _smallest,
    "aten.rms_norm.default": _by_root_mean_square,
}


def spell_as_known(program: Any, goal: Goal) -> list[tuple[dict[str, Any], str]]:
    """Put operators of the quantiser's list in the place of those that `program` has for the same."""
    del goal
    made = []
    for node in list(program.graph.nodes):
        name = str(node.target)
        function = _SPELLINGS.get(name) or (node.target if name in _COMPOSED else None)
        if node.op == "call_function" and function and _computes_floats(node):
            made.append((dict(node.meta), name))
            inline(program, node, function, whole=name not in _COMPOSED)
    return made


def _roll(x: Any, shifts: Any, dims: Any = ()) -> Any:
    if not dims:
        return _roll(x.reshape(-1), shifts, (0,)).reshape(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        size = x.shape[dim]
        cut = (size - shift) % size
        if cut:
            x = _join([part(x, dim, cut, size), part(x, dim, 0, cut)], dim)
    return x


def _windows(x: Any, dim: int, size: int, step: int) -> Any:
    """``Tensor.unfold``: whole windows where they are few, else what each has at the same place."""
    import torch

    dim %= x.dim()
    x = x.movedim(dim, -1)
    count, chunk = (x.shape[-1] - size) // step + 1, math.gcd(size, step)
    if count < size // chunk:
        windows = [part(x, -1, at, at + size) for at in range(0, count * step, step)]
        return torch.stack(windows, -2).movedim(-2, dim)
    used, stride = ((count - 1) * step + size) // chunk, step // chunk
    chunks = part(x, -1, 0, used * chunk).unflatten(-1, (used, chunk))
    end = (count - 1) * stride + 1
    pieces = [part(chunks, -2, at, at + end, stride) for at in range(size // chunk)]
    return _join(pieces, -1).movedim(-2, dim)


def _choose_windows(node: Any, goal: Goal) -> Function | None:
    del goal
    x = node.args[0].meta["val"]
    dim, size, step = node.args[1:]
    if not x.dim() or not _computes_floats(node):
        return None
    slices = min((x.shape[dim] - size) // step + 1, size // math.gcd(size, step))
    return _windows if slices <= _MOST_SLICES else None


def _patches(x: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    """``nn.Unfold``: patches side by side by their shape alone, others by what each has at the same place."""
    import torch
    from torch.nn import functional

    x = functional.pad(x, (padding[1], padding[1], padding[0], padding[0])) if any(padding) else x
    sizes = [
        (size - reach * (length - 1) - 1) // step + 1
        for size, reach, length, step in zip(x.shape[2:], dilation, kernel, stride, strict=True)
    ]
    (height, width), batch = sizes, x.shape[0]
    if list(kernel) == list(stride) and tuple(dilation) == (1, 1):
        x = part(part(x, 2, 0, height * kernel[0]), 3, 0, width * kernel[1])
        parts = x.reshape(batch, -1, height, kernel[0], width, kernel[1])
        return parts.permute(0, 1, 3, 5, 2, 4).reshape(batch, -1, height * width)
    parts = []
    for top in range(0, kernel[0] * dilation[0], dilation[0]):
        rows = part(x, 2, top, top + (height - 1) * stride[0] + 1, stride[0])
        for left in range(0, kernel[1] * dilation[1], dilation[1]):
            parts.append(part(rows, 3, left, left + (width - 1) * stride[1] + 1, stride[1]))
    return torch.stack(parts, 2).reshape(batch, -1, height * width)


def _choose_patches(node: Any, goal: Goal) -> Function | None:
    del goal
    x, (kernel, dilation, _, stride) = node.args[0].meta["val"], node.args[1:]
    apart = list(kernel) == list(stride) and tuple(dilation) == (1, 1)
    fits = x.dim() == 4 and (apart or math.prod(kernel) <= _MOST_SLICES)
    return _patches if fits and _computes_floats(node) else None


def _from_patches(x: Any, output_size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    del dilation, padding, stride
    height, width = (size // length for size, length in zip(output_size, kernel, strict=True))
    parts = x.reshape(x.shape[0], -1, kernel[0], kernel[1], height, width)
    return parts.permute(0, 1, 4, 2, 5, 3).reshape(x.shape[0], -1, *output_size)


def _choose_from_patches(node: Any, goal: Goal) -> Function | None:
    """``nn.Fold`` of patches side by side, which leave nothing out."""
    del goal
    output_size, kernel, dilation, padding, stride = node.args[1:]
    whole = not any(size % length for size, length in zip(output_size, kernel, strict=True))
    apart = list(kernel) == list(stride) and tuple(dilation) == (1, 1) and not any(padding)
    return _from_patches if whole and apart and node.args[0].meta["val"].dim() == 3 else None


def _flip(x: Any, dims: Any) -> Any:
    """By rows of a plane, which every NPU reverses."""
    shape = x.shape
    for dim in dims:
        size = shape[dim]
        if size > 1:
            before = math.prod(shape[: dim % len(shape)])
            x = x.reshape(1, before, size, -1).flip(2)
    return x.reshape(shape)


def _choose_flip(node: Any, goal: Goal) -> Function | None:
    x, dims = node.args[0].meta["val"], node.args[1]
    is_taken = goal.is_ethos_u85 or (x.dim() == 4 and len(dims) == 1 and dims[0] % 4 in (1, 2))
    return None if is_taken or not dims or not _computes_floats(node) else _flip


SLICE_CHOICES: dict[str, GoalChoice] = {
    "aten.roll.default": _for_floats(_roll),
    "aten.unfold.default": _choose_windows,
    "aten.im2col.default": _choose_patches,
    "aten.col2im.default": _choose_from_patches,
    "aten.flip.default": _choose_flip,
}

# Which axes an index is for: the first, how many, and the places in what these are together.
Selection = tuple[int, int, Any]


def slice_constant_indices(program: Any, goal: Goal) -> list[tuple[dict[str, Any], str]]:
    """Put slices, or a product with a constant matrix where these are many, in the place of what picks values of
    `program` by constant indices: Ethos-U55 and Ethos-U65 gather nothing, and the delegates take no int64."""
    del goal
    made, values = [], stored_values(program)
    for node in list(program.graph.nodes):
        found = _selection(node, values) if node.op == "call_function" else None
        if found is None:
            continue
        x, (dim, axes, index) = node.args[0], found
        sizes = x.meta["val"].shape[dim : dim + axes]
        places = (index % math.prod(sizes)).reshape(-1).tolist()
        runs = list(_runs(places))
        picked = _picked(dim, axes, tuple(index.shape), runs)
        sources, name = [x], str(node.target)
        if len(runs) > _MOST_SLICES:
            if len(places) * math.prod(sizes) > _MOST_MATRIX_BYTES:
                continue
            sources.append(add_constant(program, f"picks_{node.name}", _matrix(places, math.prod(sizes))))
        made.append((dict(node.meta), name))
        inline(program, node, picked, sources)
    return made


def _selection(node: Any, values: dict[Any, Any]) -> Selection | None:
    """What `node` picks, if it picks floating-point values by constant indices."""
    find = _SELECTIONS.get(str(node.target))
    if find is None or not _computes_floats(node) or not node.args[0].meta["val"].dim():
        return None
    return find(node, values)


def _of_index_select(node: Any, values: dict[Any, Any]) -> Selection | None:
    x, dim, index = node.args
    if index not in values or values[index].dim() != 1:
        return None
    return dim % x.meta["val"].dim(), 1, values[index]


def _of_index(node: Any, values: dict[Any, Any]) -> Selection | None:
    """Indices of one axis, or of several that lie side by side."""
    import torch

    x, indices = node.args[0].meta["val"], node.args[1]
    axes = [axis for axis, index in enumerate(indices) if index is not None]
    given = [values.get(indices[axis]) for axis in axes]
    if any(index is None or index.dtype not in (torch.int32, torch.int64) for index in given):
        return None
    if axes != list(range(axes[0], axes[-1] + 1)):
        return None
    place: Any = 0
    for axis, index in zip(axes, torch.broadcast_tensors(*given), strict=True):
        place = place * x.shape[axis] + index % x.shape[axis]
    return axes[0], len(axes), place


def _of_gather(node: Any, values: dict[Any, Any]) -> Selection | None:
    """An index that is the same for all other axes."""
    x, dim, index = node.args[:3]
    value, shape = values.get(index), list(x.meta["val"].shape)
    if value is None or value.dim() != len(shape):
        return None
    dim %= len(shape)
    row = value.movedim(dim, -1).reshape(-1, value.shape[dim])
    shape[dim] = value.shape[dim]
    return (dim, 1, row[0]) if list(value.shape) == shape and bool((row == row[:1]).all()) else None


_SELECTIONS = {
    "aten.index_select.default": _of_index_select,
    "aten.index.Tensor": _of_index,
    "aten.gather.default": _of_gather,
}


def _runs(places: list[int]) -> Iterator[tuple[int, int, int]]:
    """`places` as slices, in their order: start, end and step."""
    at = 0
    while at < len(places):
        end = at + 1
        step = max(places[end] - places[at], 1) if end < len(places) else 1
        while end < len(places) and places[end] - places[end - 1] == step:
            end += 1
        yield places[at], places[end - 1] + 1, step
        at = end


def _picked(dim: int, axes: int, shape: tuple[int, ...], runs: list[tuple[int, int, int]]) -> Function:
    """What picks the `runs` of the axes together, or what a matrix picks, and gives them the `shape` of the index."""
    from torch.nn import functional

    def pick(x: Any, matrix: Any = None) -> Any:
        x = x.flatten(dim, dim + axes - 1) if axes > 1 else x
        if matrix is None:
            x = _join([part(x, dim, *run) for run in runs], dim)
        else:
            x = functional.linear(x.movedim(dim, -1), matrix).movedim(-1, dim)
        return x if len(shape) == 1 else x.reshape(*x.shape[:dim], *shape, *x.shape[dim + 1 :])

    return pick


def _matrix(places: list[int], size: int) -> Any:
    import torch

    return torch.nn.functional.one_hot(torch.tensor(places), size).float()


def multiply_by_masks(program: Any, goal: Goal) -> list[tuple[dict[str, Any], str]]:
    """Put products with constants of 0 and 1 in the place of what chooses values of `program` by constant masks.

    What hides scores from a softmax stays.
    """
    del goal
    made, values = [], stored_values(program)
    for node in list(program.graph.nodes):
        find = _MASKED.get(str(node.target)) if node.op == "call_function" else None
        found = find(node, values) if find else None
        if found is None or not _computes_floats(node):
            continue
        mask, one, other = found
        if not _is_node(one):
            mask, one, other = ~mask, other, one
        if not _is_node(one) or not _is_moderate(other):
            continue
        name, keeps = str(node.target), mask.float()
        sources = [one, add_constant(program, f"keeps_{node.name}", keeps)]
        if _is_node(other):
            sources += [other, add_constant(program, f"takes_{node.name}", 1 - keeps)]
        elif bool((other * (1 - keeps) != 0).any()):
            sources.append(add_constant(program, f"fills_{node.name}", other * (1 - keeps)))
        made.append((dict(node.meta), name))
        inline(program, node, _masked, sources)
    return made


def _masked(x: Any, keeps: Any, other: Any = None, takes: Any = None) -> Any:
    kept = x * keeps
    if other is None:
        return kept
    return kept + other if takes is None else kept + other * takes


def _is_node(value: Any) -> bool:
    return hasattr(value, "meta")


def _is_moderate(value: Any) -> bool:
    """Whether constants are finite, and none of them hides a score."""
    import torch

    return _is_node(value) or bool(torch.isfinite(value).all() and (value > _MASKS).all())


# What is taken where a constant mask is true, and elsewhere: nodes, or the tensors of constants.
Choice = tuple[Any, Any, Any]


def _known(argument: Any, values: dict[Any, Any]) -> Any:
    import torch

    value = values.get(argument) if _is_node(argument) else torch.tensor(float(argument))
    return argument if value is None else value


def _of_where(node: Any, values: dict[Any, Any]) -> Choice | None:
    mask, one, other = node.args
    return (values[mask], _known(one, values), _known(other, values)) if mask in values else None


def _of_masked_fill(node: Any, values: dict[Any, Any]) -> Choice | None:
    x, mask, value = node.args
    return (values[mask], _known(value, values), _known(x, values)) if mask in values else None


def _of_triangle(node: Any, values: dict[Any, Any]) -> Choice | None:
    import torch

    del values
    x, diagonal = node.args[0], node.args[1] if len(node.args) > 1 else 0
    ones = torch.ones(x.meta["val"].shape[-2:], dtype=torch.bool)
    mask = ones.tril(diagonal) if str(node.target) == "aten.tril.default" else ones.triu(diagonal)
    return mask, x, torch.tensor(0.0)


_MASKED = {
    **dict.fromkeys(
        ("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar"), _of_where
    ),
    **dict.fromkeys(("aten.masked_fill.Scalar", "aten.masked_fill.Tensor"), _of_masked_fill),
    **dict.fromkeys(("aten.tril.default", "aten.triu.default"), _of_triangle),
}
