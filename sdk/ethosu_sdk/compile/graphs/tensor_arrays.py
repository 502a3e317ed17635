"""Tensors and arrays: example inputs and calibration samples from `.npz` files, and conversions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk.base import npz
from ethosu_sdk.base.errors import InputError

Array = NDArray[Any]
Tensors = tuple[Any, ...]
_OUTPUT = re.compile(r"output\d+")


def read_inputs(path: Path) -> tuple[Array, ...]:
    """The arrays ``input0``, ``input1``, … of an `.npz`, in order; ``output0``… are left alone, so that the file that
    a compilation wrote can be given. InputError when the file cannot be read, holds other names, or leaves a gap."""
    arrays = {name: array for name, array in npz.read_npz(path).items() if not _OUTPUT.fullmatch(name)}
    names = [f"input{index}" for index in range(len(arrays))]
    if not arrays or set(names) != set(arrays):
        found = ", ".join(sorted(arrays)) or "no inputs"
        hint = npz.name_hint(path, "input", arrays) or "it must hold input0, input1, … without a gap"
        raise InputError(f"{path} holds {found}, and not {', '.join(names) or 'input0'}", hint)
    return tuple(arrays[name] for name in names)


def check_inputs(arrays: Sequence[Array], examples: Sequence[Array], where: Path | str) -> None:
    """InputError unless `arrays` have the number, dtypes and shapes of `examples`."""
    _check_count(arrays, examples, where)
    for index, (array, example) in enumerate(zip(arrays, examples, strict=True)):
        _check_dtype(array, example, index, where)
        if array.shape != example.shape:
            raise InputError(
                f"input{index} in {where} has shape {array.shape}, but the model takes {example.shape}",
                npz.shape_hint(array.shape, example.shape),
            )


def calibration_samples(
    arrays: Sequence[Array], examples: Sequence[Array], where: Path
) -> list[tuple[Array, ...]]:
    """Calibration samples, each shaped like `examples`, from arrays that stack them on a leading axis. An array of
    the example's own shape is one sample. For an example of shape (1, ...) the leading axis may take the place of
    that 1. InputError when an array fits neither way or the counts differ between inputs."""
    _check_count(arrays, examples, where)
    columns = []
    for index, (array, example) in enumerate(zip(arrays, examples, strict=True)):
        _check_dtype(array, example, index, where)
        columns.append(_unstack(array, example, index, where))
    if len({len(column) for column in columns}) != 1:
        counts = ", ".join(str(len(column)) for column in columns)
        raise InputError(f"the inputs in {where} have different numbers of samples: {counts}")
    if not columns[0]:
        raise InputError(f"{where} holds no samples")
    return list(zip(*columns, strict=True))


def _unstack(array: Array, example: Array, index: int, where: Path) -> list[Array]:
    if array.shape == example.shape:
        return [array]
    if array.ndim and len(array) > npz.MOST_SAMPLES:
        raise InputError(
            f"input{index} in {where} has shape {array.shape}: at most {npz.MOST_SAMPLES:,} samples are accepted",
            "give fewer: a few hundred are enough for calibration",
        )
    if array.shape[1:] == example.shape:
        return list(array)
    if example.shape[:1] == (1,) and array.ndim == example.ndim and array.shape[1:] == example.shape[1:]:
        return [sample[None] for sample in array]
    raise InputError(
        f"input{index} in {where} has shape {array.shape}, which is not a stack of {example.shape}",
        "stack the samples on a leading axis",
    )


def _check_count(arrays: Sequence[Array], examples: Sequence[Array], where: Path | str) -> None:
    if len(arrays) != len(examples):
        raise InputError(f"{where} holds {len(arrays)} inputs, but the model takes {len(examples)}")


def _check_dtype(array: Array, example: Array, index: int, where: Path | str) -> None:
    if array.dtype != example.dtype:
        raise InputError(
            f"input{index} in {where} is {array.dtype}, but the model takes {example.dtype}",
            f"convert it with .astype('{example.dtype}')",
        )


def io_arrays(inputs: Sequence[Array], outputs: Sequence[Array]) -> Mapping[str, Array]:
    """The content of ``NAME.io.npz``: ``input0``…, ``output0``…."""
    return {
        **{f"input{index}": np.asarray(array, order="C") for index, array in enumerate(inputs)},
        **{f"output{index}": np.asarray(array, order="C") for index, array in enumerate(outputs)},
    }


def as_numpy(tensor: Any, what: str = "a tensor") -> Array:
    """`tensor` as an array; InputError, which begins with `what`, for a type that NumPy lacks."""
    try:
        array: Array = tensor.detach().cpu().numpy()
    except (TypeError, RuntimeError) as error:
        raise InputError(
            f"{what} of type {tensor.dtype} cannot be stored in an .npz", "use a type that NumPy supports"
        ) from error
    return array


def tensors_like(values: Sequence[Array], examples: Tensors) -> Tensors:
    """`values` as tensors that lie in memory as `examples` do: the memory format is part of the program."""
    import torch

    return tuple(
        torch.empty_like(example).copy_(torch.from_numpy(value.copy()))
        for value, example in zip(values, examples, strict=True)
    )


def dense_tensor(tensor: Any) -> Any:
    """`tensor` with the strides of its memory format, contiguous or channels_last, copied unless it has them.
    ``array[None]`` of NumPy has a stride of 0, and a broadcast tensor has several: torch calls the first contiguous
    and exports both, and ExecuTorch then fails on the order of its dimensions."""
    import torch

    formats = [torch.contiguous_format]
    formats += {4: [torch.channels_last], 5: [torch.channels_last_3d]}.get(tensor.ndim, [])
    for memory_format in formats:
        ideal = torch.empty(tensor.shape, dtype=tensor.dtype, device="meta", memory_format=memory_format)
        if tensor.stride() == ideal.stride():
            return tensor
    chosen = next((known for known in formats if tensor.is_contiguous(memory_format=known)), formats[0])
    return torch.empty(tensor.shape, dtype=tensor.dtype, memory_format=chosen).copy_(tensor)
