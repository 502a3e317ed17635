"""What Vela itself writes as a program: a `.tflite` with ``ethos-u`` operators, its raw `.npz`, or a bare command
stream (COP1). None of them says which system it was compiled for.

The raw `.npz` has the driver actions, the weights, the size of the scratch memory, and for each input, output and
variable its shape, element size, region and offset. Versions before 5 store the bytes as text and add arrays of
objects, which are never unpickled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.npz import Archive
from ethosu_sdk.npu import vela_blocks
from ethosu_sdk.npu.vela_blocks import REGION_SCRATCH, REGION_WEIGHTS, TensorSlot, VelaBlocks
from ethosu_sdk.program import cop1, execution_plan, tflite, vela_tflite
from ethosu_sdk.program.execution_plan import (
    ENTRY,
    ETHOSU_BACKEND,
    Chain,
    Delegate,
    DelegateCall,
    ExecutionPlan,
    Instruction,
    KernelCall,
    Tensor,
)
from ethosu_sdk.program.pte import Pte
from ethosu_sdk.program.tflite import TfliteModel, TfliteTensor

RAW_SUFFIX = ".npz"
_DTYPES = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}
_MOST_DIMENSIONS = 6  # of a slot
_USUAL_DIMENSIONS = 4  # leading ones beyond these are Vela's own
_HINT = "give Vela's output as it wrote it: NAME_vela.tflite, or the .npz of --output-format=raw"


@dataclass(frozen=True)
class RawOutput:
    """Vela's raw output: the payload of a delegate, decoded as well."""

    payload: bytes
    vela: VelaBlocks


def is_output(path: Path) -> bool:
    """Whether the file `path` is what Vela wrote: an `.npz`, or a `.tflite` with operators for the NPU.

    InputError for a damaged `.tflite`.
    """
    if path.suffix == RAW_SUFFIX:
        return path.is_file()
    return path.suffix == tflite.SUFFIX and path.is_file() and bool(tflite.read_tflite(path).npu_operators)


def read(path: Path) -> Pte:
    """What Vela wrote to `path` as a program that says no system. InputError for what is malformed, or none."""
    if cop1.is_stream(path):
        return cop1.read(path)
    if path.suffix == RAW_SUFFIX:
        raw = read_raw(path)
        return _program(path, _raw_plan(raw))
    model = tflite.read_tflite(path)
    if not model.npu_operators:
        raise InputError(
            f"{path} has no operator of Vela's", "compile it first: `ethosu-sdk compile`, or Vela"
        )
    return _program(path, _plan(model))


def config_word(program: Pte) -> int:
    """The CONFIG word of the NPU that `program` is for. InputError for delegates of two."""
    words = {row.vela.config_word for row in program.delegates if row.vela is not None}
    if len(words) != 1:
        raise InputError(
            "the program is for several NPUs: " + ", ".join(f"{word:#010x}" for word in sorted(words))
        )
    return words.pop()


def _program(path: Path, plan: ExecutionPlan) -> Pte:
    return cop1.program_of(plan, filesystem.sha256_file(path), path.stat().st_size, memoryview(b""))


def _delegate(payload: bytes, vela: VelaBlocks) -> Delegate:
    return Delegate(ETHOSU_BACKEND, 0, memoryview(payload), {}, vela)


# The raw .npz.


def read_raw(path: Path) -> RawOutput:
    """Vela's raw output at `path`. InputError for what is malformed or is none, and for variables, which would have
    to be kept from one inference to the next."""
    with Archive(path, with_bytes=True) as archive:
        missing = [
            name for name in ("cmd_data", "weight_data", "scratch_shape") if name not in archive.entries
        ]
        if missing:
            raise InputError(f"{path} is not Vela's raw output: it has no array '{missing[0]}'", _HINT)
        if "variable_offset" in archive.entries and len(_numbers(archive, "variable_offset")):
            raise InputError(f"{path} has variables, which its runtime would have to keep", _HINT)
        regions = {"weight_region": REGION_WEIGHTS, "scratch_region": REGION_SCRATCH}
        for name, usual in regions.items():
            if [usual] != [int(value) for value in _numbers(archive, name)]:
                raise InputError(f"{path}: '{name}' is not {usual}, as in all of Vela's memory modes", _HINT)
        scratch = [int(value) for value in _numbers(archive, "scratch_shape")]
        if len(scratch) != 1 or not 0 <= scratch[0] < 1 << 32:
            raise InputError(f"{path}: 'scratch_shape' is {scratch}, not a number of bytes", _HINT)
        commands = archive.read("cmd_data").tobytes()
        payload = vela_tflite.pack_payload(
            commands + bytes(-len(commands) % 4),
            archive.read("weight_data").tobytes(),
            scratch[0],
            _slots(archive, "input"),
            _slots(archive, "output"),
        )
    try:
        return RawOutput(payload, vela_blocks.parse(payload))
    except InputError as error:
        raise InputError(f"{path}: {error.message}", _HINT) from error


def _numbers(archive: Archive, name: str) -> npt.NDArray[Any]:
    """The values of an array of whole numbers, flat; an empty one may have any type of numbers."""
    if name not in archive.entries:
        raise InputError(f"{archive.path} is not Vela's raw output: it has no array '{name}'", _HINT)
    found = archive.read(name)
    if found.size and found.dtype.kind not in "iu":
        raise InputError(
            f"{archive.path}: '{name}' has the type {found.dtype.name}, not of whole numbers", _HINT
        )
    return found.reshape(-1)


def _slots(archive: Archive, kind: str) -> list[bytes]:
    sizes, regions, offsets = (
        _numbers(archive, f"{kind}_{name}") for name in ("elem_size", "region", "offset")
    )
    flat = _numbers(archive, f"{kind}_shape")
    shapes = archive.entries[f"{kind}_shape"].shape
    count, rank = (shapes[0], shapes[1]) if len(shapes) == 2 else (0, 0)
    rows = flat.reshape(count, rank).tolist() if count else []
    if not (count == len(sizes) == len(regions) == len(offsets)) or not 0 < rank <= _MOST_DIMENSIONS:
        raise InputError(f"{archive.path}: its arrays of {kind}s do not belong together", _HINT)
    found = []
    for shape, *numbers in zip(rows, sizes, offsets, regions, strict=True):
        values = [*shape, *map(int, numbers)]
        if not all(0 <= value < 1 << 31 for value in values):
            raise InputError(
                f"{archive.path}: an {kind} has a shape, size or place that does not exist", _HINT
            )
        found.append(vela_tflite.pack_slot(shape, *values[rank:]))
    return found


def slot_type(slot: TensorSlot) -> tuple[str, tuple[int, ...]]:
    """(dtype, shape) of a slot as a tensor: the file has no types, so that elements count as signed integers."""
    shape = slot.shape
    while len(shape) > _USUAL_DIMENSIONS and shape[0] == 1:
        shape = shape[1:]
    return _DTYPES[slot.element_bytes], shape


def _raw_plan(raw: RawOutput) -> ExecutionPlan:
    slots = (*raw.vela.inputs, *raw.vela.outputs)
    values = tuple(_tensor(*slot_type(slot), slot.element_bytes) for slot in slots)
    numbers = tuple(range(len(slots)))
    inputs, outputs = numbers[: len(raw.vela.inputs)], numbers[len(raw.vela.inputs) :]
    call = DelegateCall(0, numbers)
    return _made_plan(values, inputs, outputs, [call], (), (_delegate(raw.payload, raw.vela),))


# The .tflite.


def _plan(model: TfliteModel) -> ExecutionPlan:
    calls = vela_tflite.npu_calls(model)
    by_operator = {call.operator: number for number, call in enumerate(calls)}
    names = list(dict.fromkeys(row.name for row in model.main.operators if row.index not in by_operator))
    rows: list[Instruction] = []
    for row in model.main.operators:
        if row.index in by_operator:
            call = calls[by_operator[row.index]]
            rows.append(DelegateCall(by_operator[row.index], (*call.inputs, *call.outputs)))
        else:
            given = tuple(index for index in row.inputs if index >= 0)
            rows.append(KernelCall(names.index(row.name), (*given, *row.outputs)))
    delegates = []
    for call in calls:
        try:
            delegates.append(_delegate(call.payload, vela_blocks.parse(call.payload)))
        except InputError as error:
            raise InputError(f"{model.path}: operator {call.operator}: {error.message}", _HINT) from error
    values = tuple(_tflite_tensor(row) for row in model.main.tensors)
    operators = tuple(execution_plan.Operator(name, "") for name in names)
    return _made_plan(values, model.main.inputs, model.main.outputs, rows, operators, tuple(delegates))


def _tflite_tensor(row: TfliteTensor) -> Tensor:
    dtype = row.dtype or row.type.lower()
    element_bytes = np.dtype(row.dtype).itemsize if row.dtype else 1
    return _tensor(dtype, row.shape, element_bytes, row.name, row.data if len(row.data) else None)


def _tensor(
    dtype: str, shape: Sequence[int], element_bytes: int, name: str = "", data: memoryview | None = None
) -> Tensor:
    return Tensor(
        dtype=dtype,
        element_bytes=element_bytes,
        sizes=tuple(shape),
        dim_order=tuple(range(len(shape))),
        dynamism="STATIC",
        data_buffer_idx=0,
        allocation=None,
        data=data,
        name=name,
        external_name="",
    )


def _made_plan(
    values: tuple[Tensor, ...],
    inputs: Sequence[int],
    outputs: Sequence[int],
    instructions: Sequence[Instruction],
    operators: tuple[execution_plan.Operator, ...],
    delegates: tuple[Delegate, ...],
) -> ExecutionPlan:
    return ExecutionPlan(
        name=ENTRY,
        values=values,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        chains=(Chain((), (), tuple(instructions)),),
        operators=operators,
        delegates=delegates,
        non_const_buffer_sizes=(),
    )
