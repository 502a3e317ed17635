"""An ETDump: the events of one inference as ExecuTorch's Inspector reads them, the NPU's with modelled cycles.

Each cycle is in one event: the Inspector adds up those of a module, and a call of a delegate would be in several.

Written after the schema in ExecuTorch's package. Times are cycles of the NPU: open it with
``Inspector(..., source_time_scale=TimeScale.CYCLES, target_time_scale=TimeScale.CYCLES)``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from ethosu_sdk import plain_text, pte
from ethosu_sdk.errors import InputError
from ethosu_sdk.pte import executorch_package
from ethosu_sdk.readers.convert import flatbuffer
from ethosu_sdk.readers.convert.inputs import Inputs
from ethosu_sdk.records import kinds
from ethosu_sdk.records.profile import Operation, Profile

KINDS = (kinds.PROFILE.schema,)
LEFT_OUT = (
    "operators on the CPU and the whole inference, whose time nothing models: the format has no event without a time",
    "traffic, MACs and what sets the pace of an operation: the format has times alone",
    "calls of delegates: their cycles are those of their operations, and of their start",
)
_SCHEMA = "devtools/etdump/etdump_schema_flatcc.fbs"
_LARGEST = (1 << 63) - 1


def convert(inputs: Inputs) -> bytes:
    """The NPU's events of the profile of `inputs`. InputError when there are none."""
    events = list(_events(inputs.the(kinds.PROFILE)))
    if not events:
        raise InputError(f"{inputs.path} has no NPU operations: there are no times to write")
    if max(event["end_time"] for event in events) > _LARGEST:
        raise InputError(f"{inputs.path} takes more cycles than 64 bits hold")
    return _written(events)


def _events(profile: Profile) -> Iterator[dict[str, Any]]:
    """The start of each delegate and its operations, one behind the other from 0."""
    starts = {row.index: row.calls * (row.start_cycles or 0) for row in profile.delegates}
    now = 0
    for row in profile.operations:
        if row.runs_on != "NPU" or row.delegate is None:
            continue
        if start := starts.pop(row.delegate, 0):
            yield _event(row.instruction, now, now + start, f"start of delegate {row.delegate}")
            now += start
        end = now + row.modelled_cycles * row.calls
        yield _event(row.instruction, now, end, _identifier(row))
        now = end


def _identifier(row: Operation) -> str:
    """What tells an operation from the others, by which the Inspector groups events; its TOSA operator is in it."""
    tensor = row.tosa.tensor if row.tosa is not None else None
    where = "" if tensor is None else f" {executorch_package.event_place(tensor)}"
    return plain_text.line(f"{row.index} {row.operator or row.name}{where}")


def _event(instruction: int, begin: int, end: int, identifier: str) -> dict[str, Any]:
    return {
        "chain_index": 0,
        "instruction_id": instruction,
        "delegate_debug_id_str": identifier,
        "start_time": begin,
        "end_time": end,
    }


def _written(events: list[dict[str, Any]]) -> bytes:
    """The flatbuffer, with its size ahead, as the runtime writes it."""
    run = {"name": pte.ENTRY, "allocators": [], "events": [{"profile_event": event} for event in events]}
    content = flatbuffer.write(_SCHEMA, {"version": 0, "run_data": [run]})
    return struct.pack("<I", len(content)) + content
