"""An ETDump: the events of one inference as ExecuTorch's Inspector reads them, the NPU's with modelled cycles.

Each cycle is in one event: the Inspector adds up those of a module, and a call of a delegate would be in several.

Written after the schema in ExecuTorch's package. Times are cycles of the NPU: open it with
``Inspector(..., source_time_scale=TimeScale.CYCLES, target_time_scale=TimeScale.CYCLES)``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ethosu_sdk import plain_text, pte
from ethosu_sdk.errors import InputError
from ethosu_sdk.pte import executorch_package
from ethosu_sdk.readers.convert import flatbuffer
from ethosu_sdk.readers.convert.inputs import Inputs
from ethosu_sdk.records import Record
from ethosu_sdk.results.reading import PROFILE
from ethosu_sdk.tables import figures

KINDS = (PROFILE,)
LEFT_OUT = (
    "operators on the CPU and the whole inference, whose time nothing models: the format has no event without a time",
    "traffic, MACs and what sets the pace of an operation: the format has times alone",
    "calls of delegates: their cycles are those of their operations, and of their start",
)
_SCHEMA = "devtools/etdump/etdump_schema_flatcc.fbs"
_LARGEST = (1 << 63) - 1


def convert(inputs: Inputs) -> bytes:
    """The NPU's events of the profile of `inputs`. InputError when there are none."""
    rows = [row for row in inputs.the(PROFILE)["operations"] if row["runs_on"] == "NPU"]
    if not rows:
        raise InputError(f"{inputs.path} has no NPU operations: there are no times to write")
    profile = inputs.the(PROFILE)
    events = list(_events(profile))
    if max(event["end_time"] for event in events) > _LARGEST:
        raise InputError(f"{inputs.path} takes more cycles than 64 bits hold")
    return _written(events)


def _events(profile: Record) -> Iterator[Record]:
    """The start of each delegate and its operations, one behind the other from 0."""
    starts = {
        row["index"]: int(row["calls"]) * int(row.get("start_cycles", 0)) for row in profile["delegates"]
    }
    now = 0
    for row in profile["operations"]:
        if row["runs_on"] != "NPU":
            continue
        instruction, delegate = row["instruction"], row["delegate"]
        if start := starts.pop(delegate, 0):
            yield _event(instruction, now, now + start, f"start of delegate {delegate}")
            now += start
        end = now + (figures.cycles(row, "modelled") or 0) * int(row["calls"])
        yield _event(instruction, now, end, _identifier(row))
        now = end


def _identifier(row: Record) -> str:
    """What tells an operation from the others, by which the Inspector groups events; its TOSA operator is in it."""
    name = row.get("tosa", {}).get("operator") or row["name"]
    tensor = row.get("tosa", {}).get("tensor")
    where = "" if tensor is None else f" {executorch_package.event_place(tensor)}"
    return plain_text.line(f"{row['index']} {name}{where}")


def _event(instruction: int, begin: int, end: int, identifier: str) -> Record:
    return {
        "chain_index": 0,
        "instruction_id": instruction,
        "delegate_debug_id_str": identifier,
        "start_time": begin,
        "end_time": end,
    }


def _written(events: list[Record]) -> bytes:
    """The flatbuffer, with its size ahead, as the runtime writes it."""
    run = {"name": pte.ENTRY, "allocators": [], "events": [{"profile_event": event} for event in events]}
    content = flatbuffer.write(_SCHEMA, {"version": 0, "run_data": [run]})
    return struct.pack("<I", len(content)) + content
