"""What Vela wrote into a `.tflite`: each custom operator ``ethos-u`` as the payload of a delegate.

Its inputs are command stream, weights, scratch memory, fast scratch memory and what the NPU reads. The addresses of
its inputs and outputs are those of Vela's plan of the arena, which is region 1 of the command stream (metadata
``OfflineMemoryAllocation``: version, subgraph, number of tensors in all subgraphs, an offset for each; -1 for none).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.npu import vela_blocks
from ethosu_sdk.npu.vela_blocks import FIRST_BLOCK, LAST_BLOCK, REGION_SCRATCH
from ethosu_sdk.program.tflite import TfliteModel, TfliteOperator, TfliteTensor

_PLAN = "OfflineMemoryAllocation"
_FIXED_INPUTS = 4
_SLOT_DIMENSIONS = 6
_HINT = "compile the original .tflite: `ethosu-sdk compile FILE.tflite`"


@dataclass(frozen=True)
class NpuCall:
    """An ``ethos-u`` operator: its payload, and the tensors that it is called with."""

    operator: int
    payload: bytes = field(repr=False)
    weights: bytes = field(repr=False)
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    scratch_bytes: int
    fast_scratch_bytes: int


def pack_payload(
    command_data: bytes | memoryview,
    weights: bytes | memoryview,
    scratch_bytes: int,
    inputs: Sequence[bytes],
    outputs: Sequence[bytes],
) -> bytes:
    """A payload (:mod:`ethosu_sdk.npu.vela_blocks`) with these blocks; `inputs` and `outputs` are slots."""
    parts = {
        FIRST_BLOCK: b"",
        "cmd_data": bytes(command_data),
        "weight_data": bytes(weights),
        "scratch_size": struct.pack("<I", scratch_bytes),
        "inputs": struct.pack("<i", len(inputs)) + b"".join(inputs),
        "outputs": struct.pack("<i", len(outputs)) + b"".join(outputs),
        LAST_BLOCK: b"",
    }
    return b"".join(_block(name, data) for name, data in parts.items())


def without_weights(payload: bytes, key: str) -> bytes:
    """The payload whose weights lie in the program's named data, under `key`."""
    out = bytearray()
    for row in vela_blocks.parse(payload).blocks:
        is_outside = row.name == "weight_data"
        data = key.encode("ascii") if is_outside else payload[row.offset : row.offset + row.length]
        out += _block(row.name, data, is_outside=is_outside)
    return bytes(out)


def _block(name: str, data: bytes, *, is_outside: bool = False) -> bytes:
    head = struct.pack("<16sIB11s", name.encode("ascii"), len(data), is_outside, bytes(11))
    return head + data + bytes(-len(data) % 16)


def pack_slot(shape: Sequence[int], element_bytes: int, offset: int, region: int = REGION_SCRATCH) -> bytes:
    """A slot of a payload, whose shape has six dimensions."""
    ones = (1,) * (_SLOT_DIMENSIONS - len(shape))
    return struct.pack("<9i", *ones, *shape, element_bytes, offset, region)


def npu_calls(model: TfliteModel) -> tuple[NpuCall, ...]:
    """The main subgraph's ``ethos-u`` operators, in order. InputError for one that is malformed."""
    rows = model.npu_operators
    if not rows:
        return ()
    places = _arena_places(model)
    return tuple(_call(model, row, places) for row in rows)


def _arena_places(model: TfliteModel) -> tuple[int, ...]:
    """Where Vela puts each tensor in the arena, those of the main subgraph first; -1 without a place."""
    content = model.metadata.get(_PLAN)
    if content is None:
        raise InputError(f"{model.path.name} has no {_PLAN}: where the NPU's inputs lie is not known", _HINT)
    count = sum(len(row.tensors) for row in model.subgraphs)
    if len(content) != 4 * (3 + count):
        raise InputError(f"{model.path.name}: {_PLAN} has {len(content)} bytes for {count} tensors", _HINT)
    _, _, counted, *places = struct.unpack(f"<{3 + count}i", content)
    if counted != count:
        raise InputError(f"{model.path.name}: {_PLAN} counts {counted} tensors, the model {count}", _HINT)
    return tuple(places)


def _call(model: TfliteModel, operator: TfliteOperator, places: Sequence[int]) -> NpuCall:
    where = f"{model.path.name}: operator {operator.index} (ethos-u)"
    if len(operator.inputs) < _FIXED_INPUTS or min(operator.inputs) < 0:
        raise InputError(
            f"{where} has {len(operator.inputs)} inputs, at least {_FIXED_INPUTS} belong to it", _HINT
        )
    tensors = model.main.tensors
    commands, weights, scratch, fast = (tensors[index] for index in operator.inputs[:_FIXED_INPUTS])
    given = operator.inputs[_FIXED_INPUTS:]
    slots = [
        [_slot(where, tensors[index], places[index]) for index in part] for part in (given, operator.outputs)
    ]
    # Where there is no fast scratch memory, Vela names the scratch memory twice.
    fast_bytes = 0 if fast.index == scratch.index else fast.size_bytes
    payload = pack_payload(commands.data, weights.data, scratch.size_bytes, *slots)
    return NpuCall(
        operator.index,
        payload,
        bytes(weights.data),
        given,
        operator.outputs,
        scratch.size_bytes,
        fast_bytes,
    )


def _slot(where: str, tensor: TfliteTensor, place: int) -> bytes:
    element_bytes = tensor.size_bytes // max(tensor.elements, 1)
    if len(tensor.shape) > _SLOT_DIMENSIONS or tensor.elements == 0 or not element_bytes:
        raise InputError(
            f"{where}: '{tensor.name}' is {tensor.type} {list(tensor.shape)}, which cannot be passed"
        )
    if place < 0:
        raise InputError(f"{where}: '{tensor.name}' has no place in the arena", _HINT)
    return pack_slot(tensor.shape, element_bytes, place)
