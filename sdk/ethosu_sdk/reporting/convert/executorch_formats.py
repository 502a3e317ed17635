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
from ethosu_sdk.program import execution_plan, executorch_package, pte
from ethosu_sdk.program.execution_plan import ENTRY
from ethosu_sdk.program.pte_schema import RECORD_TYPES
from ethosu_sdk.records import bundle, kinds
from ethosu_sdk.records.profile import Operation, Profile
from ethosu_sdk.reporting.convert.conversion_inputs import ConversionInputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ethosu_sdk.base.npz import Array


_TIMEOUT_S = 120.0


def write_flatbuffer(schema: str, value: Any) -> bytes:
    """`value` as the root of `schema`, the path of a schema in the package.

    ToolError when flatc or the package is missing, or does not take what is written.
    """
    path = executorch_package.executorch_root() / schema
    if not path.is_file():
        raise ToolError(f"the installed executorch package has no {schema}", "install executorch 1.5.1")
    flatc = tools.require("flatc").path
    with tempfile.TemporaryDirectory(prefix="ethosu-sdk-flatc-") as name:
        folder = Path(name)
        source = folder / "value.json"
        source.write_text(json.dumps(value, allow_nan=False), encoding="utf-8")
        argv = [str(flatc), "--binary", "-o", str(folder), str(path), str(source)]
        proc.run(argv, timeout_s=_TIMEOUT_S, error=ToolError)
        (found,) = (part for part in folder.iterdir() if part != source)
        return found.read_bytes()


ETDUMP_KINDS = (kinds.PROFILE.schema,)
ETDUMP_LEFT_OUT = (
    "operators on the CPU and the whole inference, whose time nothing models: the format has no event without a time",
    "traffic, MACs and what sets the pace of an operation: the format has times alone",
    "calls of delegates: their cycles are those of their operations, and of their start",
)
_ETDUMP_SCHEMA = "devtools/etdump/etdump_schema_flatcc.fbs"
_LARGEST = (1 << 63) - 1


def to_etdump(inputs: ConversionInputs) -> bytes:
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
    run = {"name": ENTRY, "allocators": [], "events": [{"profile_event": event} for event in events]}
    content = write_flatbuffer(_ETDUMP_SCHEMA, {"version": 0, "run_data": [run]})
    return struct.pack("<I", len(content)) + content


BUNDLED_KINDS = (kinds.COMPILE.schema,)
BUNDLED_LEFT_OUT = ("all but the program, its inputs and outputs: the format has no place for figures",)
_BUNDLED_SCHEMA = "devtools/bundled_program/serialize/bundled_program_schema.fbs"
_VERSION = 2  # of the format, in ExecuTorch 1.5.1
_MOST_BYTES = 64 << 20  # of program and arrays: flatc reads them as text, of several characters for each byte
_TYPES = {row.dtype: row.name for row in RECORD_TYPES}


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
    _check_size(path, arrays)
    bundle.confirm_listed(arrays)
    inputs = npz.read_samples(arrays, "input", tensors[0]).samples
    outputs = npz.read_samples(arrays, "output", tensors[1]).samples
    if len(inputs) != len(outputs):
        raise InputError(f"{arrays} has {len(inputs)} sets of inputs and {len(outputs)} of outputs")
    cases = [
        {"inputs": _values(tensors[0], sample), "expected_outputs": _values(tensors[1], expected)}
        for sample, expected in zip(inputs, outputs, strict=True)
    ]
    suite = {"method_name": plan.name, "test_cases": cases}
    value = {"version": _VERSION, "method_test_suites": [suite], "program": list(path.read_bytes())}
    return write_flatbuffer(_BUNDLED_SCHEMA, value)


def _check_size(*paths: Path) -> None:
    for path in paths:
        try:
            size = path.stat().st_size
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}", "compile the model again") from error
        if size > _MOST_BYTES:
            raise InputError(f"{path} has {size:,} bytes: a bundle may have {_MOST_BYTES:,} at most")


def _values(tensors: Sequence[execution_plan.Tensor], arrays: Sequence[Array]) -> list[dict[str, Any]]:
    return [_value(tensor, array) for tensor, array in zip(tensors, arrays, strict=True)]


def _value(tensor: execution_plan.Tensor, array: Array) -> dict[str, Any]:
    """A tensor with its bytes in the order of dimensions that the program has them in."""
    if tensor.dtype not in _TYPES:
        raise InputError(f"an input or output is of type {tensor.dtype}, which a bundle cannot hold")
    order = tensor.dim_order
    found = {
        "scalar_type": _TYPES[tensor.dtype],
        "sizes": list(array.shape),
        "data": list(array.transpose(order).tobytes()),
        "dim_order": list(order),
    }
    return {"val_type": "Tensor", "val": found}
