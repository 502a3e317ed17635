"""Refuses kernel calls of which two runtimes could make different things.

A kernel writes its output, and that lies on none of its inputs. Its overload says whether an input is a tensor or a
number: the firmware has one kernel for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ethosu_sdk import pte
from ethosu_sdk.errors import InputError
from ethosu_sdk.pte import Tensor

_PRIMITIVES = "executorch_prim::"  # they return nothing, and a view's output is its input's memory
_OUT = "out"  # in the overload of an operator with an output of its own
_LISTS = ("TensorList", "OptionalTensorList")
_NUMBER = "Scalar"  # in the overload of an operator that takes a number
_NUMBER_AT = {"aten::pow.Scalar_out": 0, "aten::masked_fill.Scalar_out": 2}  # of the others it is argument 1
_TWO_TENSORS = {
    *(f"aten::{name}.Tensor_out" for name in ("eq", "ne", "lt", "le", "gt", "ge", "remainder", "fmod")),
    *(f"aten::bitwise_{name}.Tensor_out" for name in ("and", "or", "xor", "left_shift", "right_shift")),
    *("aten::pow.Tensor_Tensor_out", "aten::atan2.out", "aten::floor_divide.out", "aten::div.out_mode"),
}
_AGAIN = "compile the model again: the file is damaged"


def refuse(plans: Iterable[pte.ExecutionPlan]) -> None:
    """InputError for a call whose output is a constant, lies on an input, or is not what the call returns, and for a
    number in place of a tensor."""
    for plan in plans:
        for number, call in enumerate(plan.instructions):
            if isinstance(call, pte.KernelCall):
                _check(plan, call, f"instruction {number} of method '{plan.name}'")


def _check(plan: pte.ExecutionPlan, call: pte.KernelCall, where: str) -> None:
    operator = plan.operators[call.op_index]
    if operator.name.startswith(_PRIMITIVES) or len(call.args) < 2:
        return
    where = f"{where}, {operator.full_name},"
    _check_operands(plan, operator, call, where)
    *_, output, returned = call.args  # a call ends with what the operator returns
    if _OUT in operator.overload and isinstance(plan.values[returned], Tensor) and output != returned:
        raise InputError(f"{where} returns value {returned}, but its output is value {output}", _AGAIN)
    written = dict(_tensors(plan, [returned]))
    constant = next((index for index, row in written.items() if row.is_constant), None)
    if constant is not None:
        raise InputError(f"{where} writes value {constant}, which is a constant", _AGAIN)
    for index, row in _tensors(plan, call.args[:-1]):
        for other, target in written.items():
            if index not in written and _collide(row, target):
                raise InputError(
                    f"{where} writes value {other} over value {index}, which it reads: the memory plan has both "
                    "at the same place",
                    _AGAIN,
                )


def _check_operands(
    plan: pte.ExecutionPlan, operator: pte.Operator, call: pte.KernelCall, where: str
) -> None:
    """InputError for a number where the overload has a tensor, and the other way round."""
    number = None
    if _NUMBER in operator.overload.split("_"):
        number = _NUMBER_AT.get(operator.full_name, 1)
    elif operator.full_name not in _TWO_TENSORS:
        return
    for place, index in enumerate(call.args[: max(2, (number or 0) + 1)]):
        value, wanted = plan.values[index], "number" if place == number else "tensor"
        if isinstance(value, pte.Scalar if place == number else Tensor):
            continue
        kind = "number" if isinstance(value, pte.Scalar) else type(value).__name__.lower()
        raise InputError(
            f"{where} needs a {wanted} as argument {place}, but value {index} is a {kind}", _AGAIN
        )


def _tensors(plan: pte.ExecutionPlan, indices: Iterable[int]) -> Iterator[tuple[int, Tensor]]:
    """The tensors among these values, and those of lists."""
    for index in indices:
        value = plan.values[index]
        if isinstance(value, Tensor):
            yield index, value
        elif isinstance(value, pte.List) and value.kind in _LISTS:
            yield from _tensors(plan, (int(item) for item in value.items if item >= 0))


def _collide(one: Tensor, other: Tensor) -> bool:
    first, second = one.allocation, other.allocation
    if first is None or second is None or first.memory_id != second.memory_id:
        return False
    if first == second and _is_state(one, other):
        return False  # two names of the program's state
    return first.offset < second.offset + other.nbytes and second.offset < first.offset + one.nbytes


def _is_state(one: Tensor, other: Tensor) -> bool:
    same = (one.dtype, one.sizes, one.dim_order) == (other.dtype, other.sizes, other.dim_order)
    return same and (one.data is not None or other.data is not None)
