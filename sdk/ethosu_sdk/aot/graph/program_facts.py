"""Facts about a finished program, read from ExecuTorch's own in-memory schema objects (exir/schema.py)."""

from __future__ import annotations

import importlib.metadata
import platform
from typing import Any

from ethosu_sdk import pte
from ethosu_sdk.aot.facts.compilation import DelegationCount, TensorFacts
from ethosu_sdk.errors import BuildError
from ethosu_sdk.pte.scalar_types import NUMPY_TYPES

_PACKAGES = ("torch", "torchao", "executorch", "ethos-u-vela", "tosa-tools", "numpy")

_DTYPES = {row.name: row.dtype for row in NUMPY_TYPES}
DTYPES = frozenset(_DTYPES.values())


def methods(manager: Any) -> tuple[str, ...]:
    """The names of all methods; int8 inputs and outputs add constant ones that give their scales."""
    return tuple(plan.name for plan in manager.executorch_program.execution_plan)


def inputs(manager: Any, method: str = pte.ENTRY) -> tuple[TensorFacts, ...]:
    """The inputs of a method."""
    plan = _plan(manager, method)
    return tuple(_tensor(plan, index) for index in plan.inputs)


def outputs(manager: Any, method: str = pte.ENTRY) -> tuple[TensorFacts, ...]:
    """The outputs of a method."""
    plan = _plan(manager, method)
    return tuple(_tensor(plan, index) for index in plan.outputs)


_TAKES_ONE = "getitem"


def delegation(edge: Any) -> tuple[DelegationCount, ...]:
    """Where the operators of a lowered program run, as ExecuTorch counts them, by their names. It also counts the
    nodes that take a tensor out of a tuple, which are no operators: the program has no call for them."""
    from executorch.devtools.backend_debug import get_delegation_info

    counted = get_delegation_info(edge.exported_program().graph_module).delegation_by_operator
    return tuple(
        DelegationCount(name, row.delegated, row.non_delegated)
        for name, row in sorted(counted.items())
        if name != _TAKES_ONE
    )


def kernel_calls(manager: Any, method: str = pte.ENTRY) -> tuple[tuple[str, str], ...]:
    """(name, overload) of each operator that a method calls on the CPU, in the order of the calls."""
    plan = _plan(manager, method)
    operators = [
        plan.operators[instruction.instr_args.op_index]
        for chain in plan.chains
        for instruction in chain.instructions
        if type(instruction.instr_args).__name__ == "KernelCall"
    ]
    return tuple((operator.name, operator.overload) for operator in operators)


def delegate_payloads(manager: Any, method: str = pte.ENTRY) -> tuple[bytes, ...]:
    """The payload of each delegate of a method, in the plan's order. BuildError when one is not in
    line."""
    program = manager.executorch_program
    payloads = []
    for delegate in _plan(manager, method).delegates:
        if delegate.processed.location.name != "INLINE":
            raise BuildError(f"the payload of a {delegate.id} delegate is not stored in the program itself")
        payloads.append(bytes(program.backend_delegate_data[delegate.processed.index].data))
    return tuple(payloads)


def delegate_arguments(manager: Any, method: str = pte.ENTRY) -> dict[int, int]:
    """With how many tensors a method calls each delegate, by the delegate's index."""
    return {
        call.delegate_index: len(call.args)
        for chain in _plan(manager, method).chains
        for call in (instruction.instr_args for instruction in chain.instructions)
        if type(call).__name__ == "DelegateCall"
    }


def versions() -> dict[str, str]:
    """Python and every package that shapes the `.pte`, with their installed versions."""
    return {"python": platform.python_version()} | {
        name: importlib.metadata.version(name) for name in _PACKAGES
    }


def _plan(manager: Any, method: str) -> Any:
    return next(plan for plan in manager.executorch_program.execution_plan if plan.name == method)


def _tensor(plan: Any, index: int) -> TensorFacts:
    value = plan.values[index].val
    if type(value).__name__ != "Tensor":
        raise BuildError(f"an input or output of the program is a {type(value).__name__}, not a tensor")
    name = value.scalar_type.name
    if name not in _DTYPES:
        raise BuildError(f"an input or output of the program has the type {name}, which NumPy does not have")
    return TensorFacts(_DTYPES[name], tuple(value.sizes), tuple(value.dim_order))
