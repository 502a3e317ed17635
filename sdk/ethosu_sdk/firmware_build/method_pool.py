"""An upper bound of the memory that firmware/runtime takes to load a method.

The firmware reports what it really took (`memory` record ``method_pool``); a test compares the two.
"""

from __future__ import annotations

from ethosu_sdk import pte

# Bytes for each thing, rounded up from sizeof on the 32-bit target: being generous costs no file space.
_FIXED = 1024
_PER_VALUE = 32
_PER_TENSOR = 128
_PER_LIST_ITEM = 16
_PER_OPERATOR = 16
_PER_INSTRUCTION = 16
_PER_ARGUMENT = 8
_PER_DELEGATE = 32


def method_pool_bytes(plan: pte.ExecutionPlan) -> int:
    """Bytes of the method pool that always suffice for `plan`, a multiple of 16."""
    tensors = sum(isinstance(value, pte.Tensor) for value in plan.values)
    items = sum(len(value.items) for value in plan.values if isinstance(value, pte.List))
    arguments = sum(
        len(row.args) for row in plan.instructions if isinstance(row, pte.KernelCall | pte.DelegateCall)
    )
    total = (
        _FIXED
        + _PER_VALUE * len(plan.values)
        + _PER_TENSOR * tensors
        + _PER_LIST_ITEM * items
        + _PER_OPERATOR * len(plan.operators)
        + _PER_INSTRUCTION * len(plan.instructions)
        + _PER_ARGUMENT * arguments
        + _PER_DELEGATE * len(plan.delegates)
    )
    return -(-total // 16) * 16
