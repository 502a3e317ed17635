"""The state of a finished program: the tensors that it keeps from one inference to the next, read from its `.pte`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ethosu_sdk import pte
from ethosu_sdk.aot.facts.compilation import StateFacts
from ethosu_sdk.errors import VerdictError


def find(manager: Any, written: Sequence[str], method: str = pte.ENTRY) -> tuple[StateFacts, ...]:
    """The state of a method in the `.pte` of `manager`. VerdictError for a buffer in `written`, those that the model
    changes in an inference, that the `.pte` does not begin with or does not write."""
    if not written:
        return ()
    plan = pte.parse(bytes(manager.buffer)).plan(method)
    stored: dict[pte.Allocation, tuple[int, pte.Tensor | None]] = {
        value.allocation: (index, value)
        for index, value in enumerate(plan.values)
        if isinstance(value, pte.Tensor) and value.allocation is not None and value.data is not None
    }
    places, found = _places(manager.exported_program(method)), []
    for name in written:
        place = places.get(name) or places.get(_plain(name))
        index, tensor = stored.get(place, (-1, None)) if place is not None else (-1, None)
        if tensor is None or index not in _written(plan):
            raise VerdictError(
                f"the program loses the state '{name}', which the model changes during an inference",
                "nothing was written. This is a fault of the compiler; write the buffer with copy_ of a new tensor, "
                "or make the state an input and an output of the model",
            )
        found.append(StateFacts(name, tensor.dtype, tensor.sizes, tensor.nbytes, *_place(tensor)))
    return tuple(found)


def _plain(name: str) -> str:
    """A buffer's name, whether it is an attribute of a submodule or flat."""
    return name.replace(".", "_")


def _places(program: Any) -> dict[str, pte.Allocation]:
    """Where memory planning put the buffers of a program."""
    buffers = program.graph_signature.inputs_to_buffers
    found = {
        buffers[node.name]: pte.Allocation(node.meta["spec"].mem_id, node.meta["spec"].mem_offset)
        for node in program.graph.find_nodes(op="placeholder")
        if node.name in buffers and node.meta["spec"].mem_id is not None
    }
    return {**{_plain(name): place for name, place in found.items()}, **found}


def _written(plan: pte.ExecutionPlan) -> set[int]:
    """The values that operators write in place: ``copy_`` at the end of a program."""
    return {
        call.args[0]
        for call in plan.instructions
        if isinstance(call, pte.KernelCall) and plan.operators[call.op_index].name.endswith("_")
    }


def _place(tensor: pte.Tensor) -> tuple[int, int]:
    assert tensor.allocation is not None
    return tensor.allocation.memory_id - 1, tensor.allocation.offset
