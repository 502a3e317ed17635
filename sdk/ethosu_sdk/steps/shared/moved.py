"""What the CPU moves in an inference, by operator and part: tensors of kernels, copies of delegates' tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ethosu_sdk import pte
from ethosu_sdk.cpu_cycles.waits import Moved

_TWICE = 2  # a copy reads and writes


def data(plan: pte.ExecutionPlan, instruction: int) -> Mapping[str, Moved]:
    """What the instruction with this index moves, by part; nothing for those that move references alone."""
    row = plan.instructions[instruction] if instruction < len(plan.instructions) else None
    if isinstance(row, pte.KernelCall):
        constants, others = _sizes(plan, row.args)
        return {"kernel": Moved(constant_bytes=constants, arena_bytes=others)}
    if isinstance(row, pte.DelegateCall) and (vela := plan.delegates[row.delegate_index].vela) is not None:
        inputs = len(vela.inputs)
        return {
            "copy_in": _copied(_sizes(plan, row.args[:inputs])),
            "copy_out": _copied(_sizes(plan, row.args[inputs:])),
        }
    return {}


def _copied(sizes: tuple[int, int]) -> Moved:
    """A constant goes to the arena too."""
    constants, others = sizes
    return Moved(constant_bytes=constants, arena_bytes=constants + _TWICE * others)


def _sizes(plan: pte.ExecutionPlan, values: Iterable[int]) -> tuple[int, int]:
    """Bytes of the constants among the tensors of `values`, and of the others. Each is moved once."""
    sizes = {True: 0, False: 0}
    for index in _tensors(plan, values):
        tensor = plan.values[index]
        if isinstance(tensor, pte.Tensor):
            sizes[tensor.is_constant] += tensor.nbytes
    return sizes[True], sizes[False]


def _tensors(plan: pte.ExecutionPlan, values: Iterable[int]) -> Iterable[int]:
    """`values` and what lists among them hold, without repetition: an output is an argument and a result."""
    found: dict[int, None] = {}
    for index in values:
        value = plan.values[index]
        items = value.items if isinstance(value, pte.List) and "Tensor" in value.kind else ()
        found.update(dict.fromkeys([index, *(int(item) for item in items if int(item) >= 0)]))
    return found
