"""What ExecuTorch's own tools read in an ETDump and in a bundled program, as JSON; in a process of its own."""

import json
import sys
from pathlib import Path
from typing import Any


def inspected(path: str) -> list[dict[str, Any]]:
    """The Inspector's events: instruction, name, cycles, and whether the event is a delegate's."""
    from executorch.devtools import Inspector
    from executorch.devtools.inspector import TimeScale

    cycles = TimeScale.CYCLES
    inspector = Inspector(etdump_path=path, source_time_scale=cycles, target_time_scale=cycles)
    return [
        {
            "instruction": event._instruction_id,
            "name": event.name,
            "cycles": event.perf_data.raw[0],
            "delegated": event.is_delegated_op,
        }
        for block in inspector.event_blocks
        for event in block.events
    ]


def bundled(ours: str, program: str, arrays: str) -> dict[str, Any]:
    """Whether the reader finds in `ours` what it finds in the bundle that ExecuTorch's own classes make, and whether
    the runtime, given `ours`, computes the expected outputs from the inputs in it."""
    import numpy as np
    import torch
    from executorch.devtools import BundledProgram
    from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
    from executorch.devtools.bundled_program.serialize import (
        deserialize_from_flatbuffer_to_bundled_program as read,
        serialize_from_bundled_program_to_flatbuffer as write,
    )
    from executorch.extension.pybindings import portable_lib

    with np.load(arrays) as values:
        inputs, outputs = (torch.from_numpy(values[name]) for name in ("input0", "output0"))
    suite = MethodTestSuite("forward", [MethodTestCase([inputs], [outputs])])
    theirs = write(BundledProgram(None, [suite], program))
    content = Path(ours).read_bytes()
    bundle = portable_lib._load_bundled_program_from_buffer(content)
    module = portable_lib._load_for_executorch_from_bundled_program(bundle)
    case = read(content).method_test_suites[0].test_cases[0]
    given, expected = (_tensor(row.val, torch) for row in (case.inputs[0], case.expected_outputs[0]))
    (executed,) = module.forward([given])
    return {"same": read(content) == read(theirs), "executed": bool(torch.allclose(executed, expected))}


def _tensor(value: Any, torch: Any) -> Any:
    """A tensor of the bundle; the test's are float32."""
    return torch.frombuffer(bytearray(value.data), dtype=torch.float32).reshape(value.sizes)


if __name__ == "__main__":
    etdump, *bundle = sys.argv[1:]
    print(json.dumps({"events": inspected(etdump), "bundle": bundled(*bundle)}))
