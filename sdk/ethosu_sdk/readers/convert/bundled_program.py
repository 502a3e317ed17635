"""A bundled program: a compiled program with its example inputs and outputs, which ExecuTorch's runners check.

Program and arrays are the files that the record of a compilation names, beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ethosu_sdk import pte
from ethosu_sdk.errors import InputError
from ethosu_sdk.pte.scalar_types import RECORD_TYPES
from ethosu_sdk.readers.convert import flatbuffer
from ethosu_sdk.readers.convert.inputs import Inputs
from ethosu_sdk.records import kinds
from ethosu_sdk.results import bundle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ethosu_sdk.npz import Array

KINDS = (kinds.COMPILE.schema,)
LEFT_OUT = ("all but the program, its inputs and outputs: the format has no place for figures",)
_SCHEMA = "devtools/bundled_program/serialize/bundled_program_schema.fbs"
_VERSION = 2  # of the format, in ExecuTorch 1.5.1
_MOST_BYTES = 64 << 20  # of program and arrays: flatc reads them as text, of several characters for each byte
_TYPES = {row.dtype: row.name for row in RECORD_TYPES}


def convert(compiled: Inputs) -> bytes:
    """The program of `compiled` with its test cases. InputError when its files are gone, changed or too large."""
    from ethosu_sdk import npz

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
    bundle.confirm(arrays)
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
    return flatbuffer.write(_SCHEMA, value)


def _check_size(*paths: Path) -> None:
    for path in paths:
        try:
            size = path.stat().st_size
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}", "compile the model again") from error
        if size > _MOST_BYTES:
            raise InputError(f"{path} has {size:,} bytes: a bundle may have {_MOST_BYTES:,} at most")


def _values(tensors: Sequence[pte.Tensor], arrays: Sequence[Array]) -> list[dict[str, Any]]:
    return [_value(tensor, array) for tensor, array in zip(tensors, arrays, strict=True)]


def _value(tensor: pte.Tensor, array: Array) -> dict[str, Any]:
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
