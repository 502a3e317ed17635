"""What ExecuTorch's Inspector tells of an ETDump with its ETRecord, as JSON; in a process of its own."""

import json
import sys
from typing import Any

from executorch.devtools import Inspector
from executorch.devtools.etrecord import parse_etrecord
from executorch.devtools.inspector import TimeScale

CYCLES = TimeScale.CYCLES


def events(inspector: Inspector) -> list[dict[str, Any]]:
    """Every event with its cycles, and with what the Inspector found for it in the model's graph."""
    return [
        {
            "instruction": event._instruction_id,
            "name": event.name,
            "cycles": event.perf_data.raw,
            "op_types": event.op_types,
            "modules": sorted(
                {
                    name
                    for row in event.module_hierarchy.values()
                    if row
                    for name, _ in list(row.values())[-1:]
                }
            ),
            "traces": [trace for trace in event.stack_traces.values() if trace],
            "backend": event.delegate_backend_name,
        }
        for block in inspector.event_blocks
        for event in block.events
    ]


def main(etdump: str, etrecord: str, *modules: str) -> None:
    """Print what is told of `modules` and of all events; and of these without what the ETRecord says of delegates."""
    inspector = Inspector(
        etdump_path=etdump, etrecord=etrecord, source_time_scale=CYCLES, target_time_scale=CYCLES
    )
    inspector.print_data_tabular(file=sys.stderr)
    without = parse_etrecord(etrecord)
    for row in without._delegate_map["forward"].values():
        row["delegate_map"] = None
    bare = Inspector(etdump_path=etdump, etrecord=without, source_time_scale=CYCLES, target_time_scale=CYCLES)
    found = {
        "events": events(inspector),
        "modules": {name: inspector.find_total_for_module(name) for name in modules},
        "bare": events(bare),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
