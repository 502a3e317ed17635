"""Values of inputs that a program cannot take: NaN and infinity where it quantises, whole numbers beyond 32 bits
where it casts int64 to int32. A kernel would compute something from them without a sign that it is meaningless."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk import pte
from ethosu_sdk.errors import InputError
from ethosu_sdk.steps.shared.exact_kernels import CONVERSIONS, MOVES

Array = npt.NDArray[Any]

_CAST = "dim_order_ops::_to_dim_order_copy"
_FINITE_HINT = (
    "no quantised value can represent it: give real data; a program of `compile --quantize none` accepts it"
)
_NARROW_HINT = (
    "the quantised program casts this input to int32: give values between -2147483648 and 2147483647; a program of "
    "`compile --quantize none` keeps int64"
)


def check(source: str, plan: pte.ExecutionPlan, inferences: Sequence[tuple[Array, ...]]) -> None:
    """InputError for the first of the `inferences` with a value that the program cannot take; `source` names them."""
    tensors = [index for index in plan.inputs if isinstance(plan.values[index], pte.Tensor)]
    for position, index in enumerate(tensors):
        limits = _limits(plan, index)
        if limits is None:
            continue
        for number, inference in enumerate(inferences):
            array = inference[position]
            bad = (array < limits.min) | (array > limits.max) | np.isnan(array)
            if bad.any():
                floating = array.dtype.kind == "f"
                raise InputError(
                    f"{source}: 'input{position}' holds {_first(array, bad)}"
                    + (f" of inference {number}" if len(inferences) > 1 else "")
                    + f" ({int(bad.sum()):,} of its {array.size:,} values), and the program "
                    + ("quantises it" if floating else "takes 32 bits of each"),
                    _FINITE_HINT if floating else _NARROW_HINT,
                )


def _limits(plan: pte.ExecutionPlan, index: int) -> np.finfo[Any] | np.iinfo[Any] | None:
    """What the values of an input must not exceed; None where the program takes all of its type."""
    dtype, users = _dtype(plan, index), list(_users(plan, index))
    if dtype.startswith("float") and any(name.startswith(f"{CONVERSIONS}quantize") for name, _ in users):
        return np.finfo(dtype)
    if dtype == "int64" and any(name == _CAST and _dtype(plan, to) == "int32" for name, to in users):
        return np.iinfo(np.int32)
    return None


def _users(plan: pte.ExecutionPlan, index: int) -> Iterator[tuple[str, int]]:
    """(operator without its overload, value of the result) of each call that takes a value, or what is merely moved
    of it, as its first argument."""
    known = {index}
    for step in plan.instructions:
        if isinstance(step, pte.KernelCall) and step.args and step.args[0] in known:
            name = plan.operators[step.op_index].name
            if name in MOVES:
                known.add(step.args[-1])
            yield name, step.args[-1]


def _dtype(plan: pte.ExecutionPlan, index: int) -> str:
    value = plan.values[index]
    return value.dtype if isinstance(value, pte.Tensor) else ""


def _first(array: Array, bad: npt.NDArray[np.bool_]) -> str:
    """The first bad value and its place."""
    place = [int(axis) for axis in np.argwhere(bad)[0]]
    value = array[tuple(place)]
    words = str(value)
    if array.dtype.kind == "f":
        words = "NaN" if np.isnan(value) else "infinity"
    return f"{words} at {place}" if place else words
