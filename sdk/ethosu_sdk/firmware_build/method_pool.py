"""An upper bound for the memory that firmware/runtime needs to load a method.

The firmware reports what it really took (`memory` record ``method_pool``); a test compares the two.
"""

from __future__ import annotations

from ethosu_sdk import pte

# Sizes on the 32-bit target with room for alignment, and half as much again for what the runtime may grow to.
_STATE = 512
_VALUE = 36
_TENSOR = 40
_DIMENSION = 6
_LIST_ITEM = 6
_OPERATOR = 24
_ARGUMENT = 6


def method_pool_bytes(plan: pte.ExecutionPlan) -> int:
    """Bytes of the method pool that suffice for `plan`, a multiple of 16."""
    tensors = [value for value in plan.values if isinstance(value, pte.Tensor)]
    items = sum(len(value.items) for value in plan.values if isinstance(value, pte.List))
    calls = (row for row in plan.instructions if isinstance(row, pte.KernelCall | pte.DelegateCall))
    total = (
        _STATE
        + _VALUE * len(plan.values)
        + _TENSOR * len(tensors)
        + _DIMENSION * sum(len(tensor.sizes) for tensor in tensors)
        + _LIST_ITEM * items
        + _OPERATOR * len(plan.operators)
        + _ARGUMENT * max((len(row.args) for row in calls), default=0)
    )
    return -(-total // 16) * 16
