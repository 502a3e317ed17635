"""Every quantised tensor of a TOSA graph, computed by the TOSA reference model."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ethosu_sdk.aot.graph import tosa_operators
from ethosu_sdk.aot.graph.arrays import Array
from ethosu_sdk.errors import BuildError

_OUTPUTS_FIELD = 12  # of the table TosaBasicBlock: its place in the vtable
_CONSTANTS = ("CONST", "CONST_SHAPE")


@dataclass(frozen=True)
class Values:
    """The graph's outputs by name, in its order; tensors of 8 and 16 bits and the outputs with their values; the
    operator that gives each."""

    outputs: Sequence[str]
    tensors: Mapping[str, Array]
    operators: Mapping[str, str]


def compute(data: bytes, inputs: Sequence[Array]) -> Values:
    """The values of the graph `data` for `inputs`, in the graph's order; only their bytes matter.

    BuildError when the reference model refuses the graph.
    """
    import tosa_reference_model
    from tosa.DType import DType
    from tosa.TosaGraph import TosaGraph

    block = TosaGraph.GetRootAs(data, 0).Regions(0).Blocks(0)
    dtypes = {DType.BOOL: np.bool_, DType.INT8: np.int8, DType.INT16: np.int16, DType.INT32: np.int32}
    layouts = {}
    for index in range(block.TensorsLength()):
        row = block.Tensors(index)
        layouts[row.Name().decode()] = row.Type(), tuple(row.Shape(i) for i in range(row.ShapeLength()))
    operators = {
        name: row.name
        for row in tosa_operators.read(data)
        if row.name not in _CONSTANTS
        for name in row.outputs
    }
    outputs = [block.Outputs(index).decode() for index in range(block.OutputsLength())]
    between = [
        name for name in operators if name not in outputs and layouts[name][0] in (DType.INT8, DType.INT16)
    ]
    named = [block.Inputs(index).decode() for index in range(block.InputsLength())]
    given = [
        np.frombuffer(np.ascontiguousarray(array).tobytes(), dtypes[layouts[name][0]]).reshape(
            layouts[name][1]
        )
        for name, array in zip(named, inputs, strict=True)
    ]
    results, status = tosa_reference_model.run(
        with_outputs(data, block, [*outputs, *between]), given, initialize_variable_tensor_from_numpy=True
    )
    if status != tosa_reference_model.GraphStatus.TOSA_VALID:
        raise BuildError(f"the TOSA reference model says {status}")
    return Values(outputs, dict(zip([*outputs, *between], results, strict=True)), operators)


def with_outputs(data: bytes, block: Any, names: Sequence[str]) -> bytes:
    """The flatbuffer `data` with other outputs of its `block`: a new vector at the end, to which the field points.

    Offsets in a flatbuffer lead forward, each from where it stands.
    """
    field = block._tab.Pos + block._tab.Offset(_OUTPUTS_FIELD)
    vector = -(-len(data) // 4) * 4
    texts = []
    places = []
    position = vector + 4 + 4 * len(names)
    for name in names:
        text = struct.pack("<I", len(name)) + name.encode() + b"\0"
        text += bytes(-len(text) % 4)
        texts.append(text)
        places.append(position)
        position += len(text)
    offsets = [place - (vector + 4 + 4 * index) for index, place in enumerate(places)]
    changed = bytearray(data)
    struct.pack_into("<I", changed, field, vector - field)
    changed += bytes(vector - len(data))
    return bytes(changed) + struct.pack(f"<{len(names) + 1}I", len(names), *offsets) + b"".join(texts)
