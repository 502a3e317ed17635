"""What ExecuTorch planned: which tensor lies where in the planned buffers, and from which instruction to which."""

from __future__ import annotations

from typing import Any

from ethosu_sdk import pte
from ethosu_sdk.tables import figures


def planned(program: pte.Pte | None) -> list[dict[str, Any]]:
    """The tensors of the planned buffers by place."""
    if program is None:
        return []
    plan = program.plan()
    uses: dict[int, list[int]] = {}
    for number, instruction in enumerate(plan.instructions):
        if isinstance(instruction, pte.KernelCall | pte.DelegateCall):
            for index in instruction.args:
                uses.setdefault(index, []).append(number)
    found = []
    for index, value in enumerate(plan.values):
        if isinstance(value, pte.Tensor) and value.allocation is not None:
            place = value.allocation
            used = uses.get(index, [])
            found.append(
                {
                    "value": index,
                    "buffer": place.memory_id,
                    "offset": place.offset,
                    "bytes": value.nbytes,
                    "shape": figures.shape(value.sizes),
                    "first": "input" if index in plan.inputs else used[0] if used else "",
                    "last": "output" if index in plan.outputs else used[-1] if used else "",
                }
            )
    return sorted(found, key=lambda row: (row["buffer"], row["offset"]))
