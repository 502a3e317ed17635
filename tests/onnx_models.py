"""ONNX graphs as exporters write them, made with onnx's own helpers from random weights."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
node = helper.make_node
_source = np.random.default_rng(41)

Shape = Sequence[int | str]


def constant(name: str, values: Any, dtype: str = "float32") -> Any:
    return numpy_helper.from_array(np.asarray(values, dtype), name)


def weights(name: str, *shape: int) -> Any:
    return constant(name, _source.standard_normal(shape) * 0.3)


def model(
    nodes: Sequence[Any],
    inputs: dict[str, Shape],
    outputs: Sequence[str],
    constants: Sequence[Any] = (),
    opset: int = 17,
    kind: int = FLOAT,
) -> Any:
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def convolutions(opset: int = 17) -> Any:
    """Two convolutions, one of them depthwise, with a batch normalisation and an open batch."""
    return model(
        [
            node("Conv", ["x", "w", "b"], ["c"], name="/conv1/Conv", pads=[1] * 4, strides=[2, 2]),
            node("BatchNormalization", ["c", "s", "o", "m", "v"], ["n"], name="/bn1/BatchNormalization"),
            node("Relu", ["n"], ["r"], name="/Relu"),
            node("Conv", ["r", "dw"], ["d"], name="/conv2/Conv", group=8, pads=[1] * 4),
            node("Clip", ["d", "low", "high"], ["r6"], name="/Clip"),
            node("GlobalAveragePool", ["r6"], ["p"], name="/GlobalAveragePool"),
            node("Flatten", ["p"], ["f"], name="/Flatten"),
            node("Gemm", ["f", "fw", "fb"], ["y"], transB=1, name="/fc/Gemm"),
        ],
        {"x": ["batch", 3, 16, 16]},
        ["y"],
        [
            *(weights("w", 8, 3, 3, 3), weights("b", 8), weights("s", 8), weights("o", 8), weights("m", 8)),
            *(constant("v", _source.uniform(0.5, 1.5, 8)), weights("dw", 8, 1, 3, 3)),
            *(constant("low", 0.0), constant("high", 6.0), weights("fw", 5, 8), weights("fb", 5)),
        ],
        opset,
    )


def two_inputs() -> Any:
    """Two inputs; both outputs of one node are outputs of the graph, not in its order, and one is used inside too."""
    return model(
        [
            node("Concat", ["a", "b"], ["c"], axis=1, name="cat"),
            node("Split", ["c", "sizes"], ["s", "t"], axis=1, name="split"),
            node("Mul", ["s", "t"], ["y"], name="product"),
        ],
        {"a": [1, 4, 6, 6], "b": [1, 4, 6, 6]},
        ["t", "y", "s"],
        [constant("sizes", [4, 4], "int64")],
    )


def attention(opset: int = 17) -> Any:
    return model(
        [
            node("MatMul", ["x", "wq"], ["q"], name="q"),
            node("MatMul", ["x", "wk"], ["k"], name="k"),
            node("Transpose", ["k"], ["kt"], perm=[0, 2, 1], name="turned"),
            node("MatMul", ["q", "kt"], ["s"], name="scores"),
            node("Mul", ["s", "scale"], ["scaled"], name="scaled"),
            node("Softmax", ["scaled"], ["p"], axis=-1, name="softmax"),
            node("MatMul", ["p", "x"], ["o"], name="values"),
            node("LayerNormalization", ["o", "g", "be"], ["y"], name="norm"),
        ],
        {"x": [1, 8, 16]},
        ["y"],
        [
            weights("wq", 16, 16),
            weights("wk", 16, 16),
            constant("scale", 0.25),
            weights("g", 16),
            weights("be", 16),
        ],
        opset,
    )


def resized(opset: int = 17, to: Sequence[float] = (1, 1, 2, 2), **mode: Any) -> Any:
    return model(
        [
            node("Conv", ["x", "w"], ["c"], name="conv"),
            node("Resize", ["c", "", "scales"], ["y"], name="up", **mode),
        ],
        {"x": [1, 3, 8, 8]},
        ["y"],
        [weights("w", 4, 3, 1, 1), constant("scales", to)],
        opset,
    )


def computed_shapes(opset: int = 17) -> Any:
    """As PyTorch's exporter writes `x.view(x.size(0), -1)`, with a slice, a maximum and a padding behind it."""
    largest = ["part", "axis"] if opset >= 18 else ["part"]
    return model(
        [
            node("Conv", ["x", "w"], ["c"], name="conv"),
            node("Shape", ["c"], ["shape"]),
            node("Gather", ["shape", "first"], ["batch"]),
            node("Unsqueeze", ["batch", "front"], ["batches"]),
            node("Concat", ["batches", "rest"], ["new"], axis=0),
            node("Reshape", ["c", "new"], ["f"], name="flat"),
            node("Slice", ["f", "axis", "end", "axis", "step"], ["part"], name="every_second"),
            node(
                "ReduceMax",
                largest,
                ["m"],
                name="largest",
                keepdims=0,
                **({} if opset >= 18 else {"axes": [1]}),
            ),
            node("Unsqueeze", ["m", "axis"], ["y"], name="column"),
            node("Pad", ["part", "around"], ["z"], name="padded"),
        ],
        {"x": ["batch", 3, "height", "width"]},
        ["y", "z"],
        [
            *(weights("w", 2, 3, 3, 3), constant("first", 0, "int64"), constant("front", [0], "int64")),
            *(
                constant("rest", [-1], "int64"),
                constant("axis", [1], "int64"),
                constant("end", [1000], "int64"),
            ),
            *(constant("step", [2], "int64"), constant("around", [0, 1, 0, 2], "int64")),
        ],
        opset,
    )


def one_operator(
    operator: str,
    *more: Any,
    shape: Shape = (1, 4, 6, 6),
    opset: int = 17,
    outputs: int = 1,
    **attributes: Any,
) -> Any:
    """`operator` with the input ``x`` and the constants `more`; None leaves an input out."""
    names = ["x", *("" if row is None else row.name for row in more)]
    results = [f"y{number}" for number in range(outputs)]
    made = node(operator, names, results, name="it", **attributes)
    return model([made], {"x": shape}, results, [row for row in more if row is not None], opset)


def saved(path: Path, content: Any) -> Path:
    onnx.save(content, path)
    return path
