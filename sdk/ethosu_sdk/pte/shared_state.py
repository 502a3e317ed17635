"""Whether the methods of a program were planned over one memory for their state."""

from __future__ import annotations

from collections.abc import Sequence

from ethosu_sdk.pte.model import ExecutionPlan, Tensor

# ExecuTorch 1.5.1 plans state that methods share into this buffer (exir/passes/memory_planning_pass.py,
# run_multimethod), and all else into the one before.
SHARED_ID = 2
WORK_ID = 1


def shares_state(plans: Sequence[ExecutionPlan]) -> bool:
    """Whether each of the methods has a second planned buffer, of one size, and nothing in the first that lasts."""
    sizes = [row.non_const_buffer_sizes for row in plans]
    return (
        len(plans) > 1
        and all(len(row) == SHARED_ID + 1 for row in sizes)
        and len({row[SHARED_ID] for row in sizes}) == 1
        and sizes[0][SHARED_ID] > 0
        and not any(
            isinstance(value, Tensor)
            and value.allocation is not None
            and value.allocation.memory_id == WORK_ID
            and value.data is not None
            for row in plans
            for value in row.values
        )
    )
