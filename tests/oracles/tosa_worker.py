"""Child process of oracles/tosa.py: runs the TOSA reference model, which prints, and can end its process.

Usage: tosa_worker.py FD. Requests and replies are pickled over the socket FD; both ends are this test suite.
"""

import sys
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import tosa_reference_model
from tosa.DType import DType
from tosa.TosaGraph import TosaGraph

DTYPES: dict[int, type[np.generic]] = {
    DType.BOOL: np.bool_,
    DType.INT8: np.int8,
    DType.INT16: np.int16,
    DType.INT32: np.int32,
}


def tensor_layouts(block: Any, names: list[bytes]) -> list[tuple[tuple[int, ...], type[np.generic]]]:
    """(shape, dtype) of each named tensor of a basic block."""
    tensors = {block.Tensors(i).Name(): block.Tensors(i) for i in range(block.TensorsLength())}
    layouts = []
    for name in names:
        tensor = tensors[name]
        if tensor.Type() not in DTYPES:
            raise ValueError(f"TOSA tensor {name!r} has the type {tensor.Type()}, which has no NumPy dtype")
        layouts.append((tuple(tensor.Shape(i) for i in range(tensor.ShapeLength())), DTYPES[tensor.Type()]))
    return layouts


def run(tosa: bytes, inputs: list[bytes]) -> list[np.ndarray[Any, Any]]:
    """The outputs of the graph in its own order, for inputs given as bytes in its own order."""
    block = TosaGraph.GetRootAs(tosa, 0).Regions(0).Blocks(0)
    layouts = tensor_layouts(block, [block.Inputs(i) for i in range(block.InputsLength())])
    if len(layouts) != len(inputs):
        raise ValueError(f"the TOSA graph takes {len(layouts)} inputs, {len(inputs)} given")
    arrays = [
        np.frombuffer(data, dtype).reshape(shape)
        for data, (shape, dtype) in zip(inputs, layouts, strict=True)
    ]
    outputs, status = tosa_reference_model.run(tosa, arrays, initialize_variable_tensor_from_numpy=True)
    if status != tosa_reference_model.GraphStatus.TOSA_VALID:
        raise ValueError(f"the TOSA reference model says {status}")
    wanted = tensor_layouts(block, [block.Outputs(i) for i in range(block.OutputsLength())])
    for output, (shape, dtype) in zip(outputs, wanted, strict=True):
        if output.shape != shape or output.dtype != dtype:
            raise ValueError(
                f"the TOSA reference model gave {output.dtype} {output.shape} for {dtype} {shape}"
            )
    return list(outputs)


def main() -> None:
    """Answer requests until the other end closes."""
    connection = Connection(int(sys.argv[1]))
    while True:
        try:
            tosa, inputs = connection.recv()
        except EOFError:
            return
        try:
            connection.send(run(tosa, inputs))
        except (ValueError, RuntimeError, AttributeError) as error:
            connection.send(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
