"""Files of ExecuTorch's own tools, written by flatc: an ETDump and a bundled program."""

from __future__ import annotations

import json
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ethosu_sdk.base import plain_text, proc, tools
from ethosu_sdk.base.errors import InputError, ToolError
from ethosu_sdk.program import execution_plan, pte
from ethosu_sdk.program.execution_plan import ENTRY
from ethosu_sdk.program.pte_schema import RECORD_TYPES
from ethosu_sdk.records import bundle, kinds
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.reporting.convert.conversion_inputs import ConversionInputs

if TYPE_CHECKING:
    from ethosu_sdk.base.npz import Array


def write_flatbuffer(schema: str, value: Any) -> bytes:
    """`value` as the root of `schema`, the path of a schema in the package.

    ToolError when flatc or the package is missing, or does not take what is written.
    """
    path = tools.executorch_root() / schema
    if not path.is_file():
        raise ToolError(f"the installed executorch package has no {schema}", "install executorch 1.5.1")
    flatc = tools.require("flatc").path
    with tempfile.TemporaryDirectory(prefix="ethosu-sdk-flatc-") as name:
        folder = Path(name)
        source = folder / "value.json"
        source.write_text(json.dumps(value, allow_nan=False), encoding="utf-8")
        argv = [str(flatc), "--binary", "-o", str(folder), str(path), str(source)]
        proc.run(argv, timeout_s=120.0, error=ToolError)
        (found,) = (part for part in folder.iterdir() if part != source)
        return found.read_bytes()


ETDUMP_KINDS = (kinds.PROFILE.schema,)
ETDUMP_LEFT_OUT = (
    "operators on the CPU and the whole inference, whose time nothing models: the format has no event without a time",
    "traffic, MACs and what sets the pace of an operation: the format has times alone",
    "calls of delegates: their cycles are those of their operations, and of their start",
)
_LARGEST = (1 << 63) - 1


def to_etdump(inputs: ConversionInputs) -> bytes:
    """The NPU's events of one inference as ExecuTorch's Inspector reads them, with modelled cycles as times: open it
    with ``Inspector(..., source_time_scale=TimeScale.CYCLES, target_time_scale=TimeScale.CYCLES)``.

    Each cycle is in one event: the Inspector adds up those of a module, and a call of a delegate would be in several.
    InputError when there are no events.
    """
    events: list[dict[str, Any]] = [
        {
            "chain_index": 0,
            "instruction_id": instruction,
            "delegate_debug_id_str": identifier,
            "start_time": begin,
            "end_time": end,
        }
        for instruction, begin, end, identifier in _events(inputs.the(kinds.PROFILE))
    ]
    if not events:
        raise InputError(f"{inputs.path} has no NPU operations: there are no times to write")
    if events[-1]["end_time"] > _LARGEST:
        raise InputError(f"{inputs.path} takes more cycles than 64 bits hold")
    run = {"name": ENTRY, "allocators": [], "events": [{"profile_event": event} for event in events]}
    schema = "devtools/etdump/etdump_schema_flatcc.fbs"
    content = write_flatbuffer(schema, {"version": 0, "run_data": [run]})
    return struct.pack("<I", len(content)) + content  # with its size ahead, as the runtime writes it


def _events(profile: Profile) -> Iterator[tuple[int, int, int, str]]:
    """The start of each delegate and its operations, one behind the other from 0: instruction, begin, end, name."""
    starts = {row.index: row.calls * (row.start_cycles or 0) for row in profile.delegates}
    now = 0
    for row in profile.operations:
        if row.runs_on != "NPU" or row.delegate is None:
            continue
        if start := starts.pop(row.delegate, 0):
            yield row.instruction, now, now + start, f"start of delegate {row.delegate}"
            now += start
        end = now + row.modelled_cycles * row.calls
        # What tells an operation from the others, by which the Inspector groups events; its TOSA operator is in it.
        tensor = row.tosa.tensor if row.tosa is not None else None
        where = "" if tensor is None else f" {tools.event_place(tensor)}"
        yield row.instruction, now, end, plain_text.line(f"{row.index} {row.operator or row.name}{where}")
        now = end


BUNDLED_KINDS = (kinds.COMPILE.schema,)
BUNDLED_LEFT_OUT = ("all but the program, its inputs and outputs: the format has no place for figures",)
_MOST_BYTES = 64 << 20  # of program and arrays: flatc reads them as text, of several characters for each byte


def to_bundled_program(compiled: ConversionInputs) -> bytes:
    """The program of `compiled` with its test cases. InputError when its files are gone, changed or too large."""
    from ethosu_sdk.base import npz

    record, file = compiled.the(kinds.COMPILE), compiled.files[kinds.COMPILE.schema]
    path, arrays = file.with_name(record.files.pte), file.with_name(record.files.io)
    program = pte.read(path)
    if program.sha256 != record.model.sha256:
        raise InputError(f"{path} is not the program of {file.name}", "compile the model again")
    plan = program.plan(record.model.entry)
    tensors = plan.input_tensors(), plan.output_tensors()
    if len(tensors[0]) != len(plan.inputs) or len(tensors[1]) != len(plan.outputs):
        raise InputError(f"{path} has inputs or outputs that are not tensors: no examples of them are kept")
    for file in (path, arrays):
        try:
            size = file.stat().st_size
        except OSError as error:
            raise InputError(f"cannot read {file}: {error.strerror}", "compile the model again") from error
        if size > _MOST_BYTES:
            raise InputError(f"{file} has {size:,} bytes: a bundle may have {_MOST_BYTES:,} at most")
    bundle.confirm_listed(arrays)
    inputs = npz.read_samples(arrays, "input", tensors[0]).samples
    outputs = npz.read_samples(arrays, "output", tensors[1]).samples
    if len(inputs) != len(outputs):
        raise InputError(f"{arrays} has {len(inputs)} sets of inputs and {len(outputs)} of outputs")
    cases = [
        {
            "inputs": list(map(_value, tensors[0], sample)),
            "expected_outputs": list(map(_value, tensors[1], expected)),
        }
        for sample, expected in zip(inputs, outputs, strict=True)
    ]
    suite = {"method_name": plan.name, "test_cases": cases}
    # The version is that of the format in ExecuTorch 1.5.1.
    value = {"version": 2, "method_test_suites": [suite], "program": list(path.read_bytes())}
    return write_flatbuffer("devtools/bundled_program/serialize/bundled_program_schema.fbs", value)


def _value(tensor: execution_plan.Tensor, array: Array) -> dict[str, Any]:
    """A tensor with its bytes in the order of dimensions that the program has them in."""
    types = {row.dtype: row.name for row in RECORD_TYPES}
    if tensor.dtype not in types:
        raise InputError(f"an input or output is of type {tensor.dtype}, which a bundle cannot hold")
    order = tensor.dim_order
    found = {
        "scalar_type": types[tensor.dtype],
        "sizes": list(array.shape),
        "data": list(array.transpose(order).tobytes()),
        "dim_order": list(order),
    }
    return {"val_type": "Tensor", "val": found}
