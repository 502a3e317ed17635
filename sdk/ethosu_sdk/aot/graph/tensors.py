"""Conversion between torch tensors and NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ethosu_sdk.aot.graph.arrays import Array
from ethosu_sdk.errors import InputError

Tensors = tuple[Any, ...]


def as_numpy(tensor: Any, what: str = "a tensor") -> Array:
    """`tensor` as an array; InputError, which begins with `what`, for a type that NumPy lacks."""
    try:
        array: Array = tensor.detach().cpu().numpy()
    except (TypeError, RuntimeError) as error:
        raise InputError(
            f"{what} of type {tensor.dtype} cannot be stored in an .npz", "use a type that NumPy supports"
        ) from error
    return array


def like(values: Sequence[Array], examples: Tensors) -> Tensors:
    """`values` as tensors that lie in memory as `examples` do: the memory format is part of the program."""
    import torch

    return tuple(
        torch.empty_like(example).copy_(torch.from_numpy(value.copy()))
        for value, example in zip(values, examples, strict=True)
    )


def dense(tensor: Any) -> Any:
    """`tensor` with the strides of its memory format, contiguous or channels_last, copied unless it has them.

    ``array[None]`` of NumPy has a stride of 0, and a broadcast tensor has several: torch calls the first contiguous
    and exports both, and ExecuTorch then fails on the order of its dimensions.
    """
    import torch

    formats = [torch.contiguous_format]
    formats += {4: [torch.channels_last], 5: [torch.channels_last_3d]}.get(tensor.ndim, [])
    for memory_format in formats:
        ideal = torch.empty(tensor.shape, dtype=tensor.dtype, device="meta", memory_format=memory_format)
        if tensor.stride() == ideal.stride():
            return tensor
    chosen = next((known for known in formats if tensor.is_contiguous(memory_format=known)), formats[0])
    return torch.empty(tensor.shape, dtype=tensor.dtype, memory_format=chosen).copy_(tensor)
