"""ExecuTorch's record of a lowering, the ETRecord. ExecuTorch's Inspector uses it to map events to the model's lines.

ExecuTorch 1.5.1 makes it, but for what happens in a delegate: its backend for Ethos-U says nothing of that. Which
node each TOSA operator was made from is traced (:mod:`ethosu_sdk.aot.graph.lowering_trace`): that is filled in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ethosu_sdk import plain_text, pte
from ethosu_sdk.errors import DISK_FULL, BuildError
from ethosu_sdk.pte.executorch_package import event_place

if TYPE_CHECKING:
    from ethosu_sdk.aot.vela.capture import VelaCapture

SUFFIX = ".etrecord"
_HANDLE = "debug_handle"


def write(path: Path, manager: Any, captures: Sequence[VelaCapture]) -> None:
    """Write the ETRecord of the program `manager`, which was lowered with one, and its Vela runs. BuildError when
    ExecuTorch cannot write it."""
    from ethosu_sdk.aot.graph import program_facts
    from ethosu_sdk.aot.vela import capture

    delegates = [captures[turn] for turn in capture.turns(program_facts.delegate_payloads(manager), captures)]

    try:
        record = manager.get_etrecord()
        # The graph before it is lowered holds all weights once more, and is of use for values alone, not for times.
        record.exported_program = record.export_graph_id = None
        record._delegate_map = {pte.ENTRY: _completed(record._delegate_map[pte.ENTRY], manager, delegates)}
        record.save(path)
    except OSError as error:
        if error.errno in DISK_FULL:
            raise
        raise BuildError(f"the ETRecord cannot be written: {error.strerror}") from error
    except Exception as error:
        raise BuildError(
            f"ExecuTorch could not write the ETRecord: {plain_text.error(error)}",
            "compile without --etrecord",
        ) from error


def _completed(
    calls: Mapping[int, Mapping[str, Any]], manager: Any, delegates: Sequence[VelaCapture]
) -> dict[int, dict[str, Any]]:
    """What ExecuTorch says of each call of a delegate, by its instruction, with the nodes of its operators."""
    plan = next(plan for plan in manager.executorch_program.execution_plan if plan.name == pte.ENTRY)
    instructions = plan.chains[0].instructions
    return {
        number: {**row, "delegate_map": _handles(delegates[instructions[number].instr_args.delegate_index])}
        for number, row in calls.items()
    }


def _handles(capture: VelaCapture) -> dict[str, list[int]]:
    """The debug handle of the node behind each TOSA operator of a delegate."""
    return {event_place(tensor): [meta[_HANDLE]] for tensor, meta in capture.nodes.items() if _HANDLE in meta}
