"""An ONNX file as a graph that onnx2torch can take: read with bounds, its shapes fixed, what depends on shapes alone
computed, and written for the operator set that onnx2torch knows. Without torch."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import helper, inliner, numpy_helper, shape_inference
from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_model, uses_external_data

from ethosu_sdk.base import filesystem, plain_text
from ethosu_sdk.base.errors import InputError

Array = NDArray[Any]
Shape = tuple[int, ...]

OPSET = 17  # the last whose operators onnx2torch has, apart from a few
_MOST_BYTES = 1 << 29  # of the file, and of the data beside it
_MOST_NODES = 100_000
_MOST_ELEMENTS = 1 << 28  # of one tensor
_SHAPES_HINT = (
    "give the sizes to `compile` with --inputs FILE.npz (input0, … of the shapes that you want), or fix "
    "them: python -m onnxruntime.tools.make_dynamic_shape_fixed --input_name {name} --input_shape 1,… {file} new.onnx"
)
_OTHER_WAY = (
    "compile the PyTorch model that the file was exported from, or cut the graph around it with "
    "onnx.utils.extract_model"
)
_STANDARD = ("", "ai.onnx")
_INLINED = 3  # functions in functions
_QUANTISED = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger")
_CONTROL = ("If", "Loop", "Scan", "SequenceMap")
_OF_VALUES = ("NonZero", "NonMaxSuppression", "Unique", "Compress")  # whose shapes are
_RANDOM = (
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
)


@dataclass(frozen=True)
class OnnxInput:
    """An input of the graph; its shape has no open dimension."""

    name: str
    dtype: np.dtype[Any]
    shape: Shape


@dataclass(frozen=True)
class OnnxFile:
    """A file as it was read: its `model` with fixed shapes, what it takes, and the files of its weights beside it."""

    path: Path
    model: Any
    inputs: tuple[OnnxInput, ...]
    beside: tuple[Path, ...]

    @property
    def output_names(self) -> list[str]:
        return [row.name for row in self.model.graph.output]


def read_onnx(path: Path, given: Sequence[Array] | None) -> OnnxFile:
    """Read the model at `path`. Its open dimensions get their sizes from the inputs that are `given`; an open batch
    is 1 without. InputError for a file that is none, is too large, or has an operator that nobody converts."""
    content = filesystem.file_content(path, _MOST_BYTES)
    if len(content) > _MOST_BYTES:
        raise InputError(
            f"{path} has more than {_MOST_BYTES >> 20} MiB", "a model for a microcontroller is smaller"
        )
    try:
        return _checked(path, onnx.load_model_from_string(content), given)
    except DecodeError as error:
        raise InputError(f"{path} is damaged: it is no complete ONNX model", "export it again") from error
    except (TypeError, ValueError) as error:  # a text that is no UTF-8 comes as bytes
        raise _invalid(path, error) from error


def _checked(path: Path, model: Any, given: Sequence[Array] | None) -> OnnxFile:
    beside = _load_beside(path, model)
    functions = {row.domain for row in model.functions}
    for node in (*_all_nodes(model.graph), *(node for row in model.functions for node in row.node)):
        _refuse_kind(path, node, functions)
    for row in model.graph.output:
        row.type.tensor_type.shape.SetInParent()  # the checker wants one, which is inferred below
    try:
        onnx.checker.check_model(model)
        model = inliner.inline_local_functions(model)
    except Exception as error:  # of classes of its own, and of those of the native library
        raise _invalid(path, error) from error
    _name_nodes(model.graph)
    inputs = _fixed_inputs(path, model, given)
    return OnnxFile(path, _with_shapes(path, model), inputs, beside)


def _invalid(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} is not a valid ONNX model: {plain_text.error(error)}", "export it again")


def place(node: Any) -> str:
    """Words for a node: its operator and name."""
    return f"{node.op_type} '{plain_text.cut(node.name, 200)}'" if node.name else f"{node.op_type}"


def _all_nodes(graph: Any, depth: int = 0) -> Iterator[Any]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g") and depth < 8:
                yield from _all_nodes(attribute.g, depth + 1)


def _refuse_kind(path: Path, node: Any, functions: Collection[str]) -> None:
    """InputError for a node of a kind that says by itself what the way out is."""
    if node.op_type in _QUANTISED or node.op_type.startswith(("QLinear", "QAttention", "QGemm")):
        raise InputError(
            f"{path} is quantised already ({place(node)}), and its scales cannot be carried over",
            "give the float model and samples with --calibration FILE.npz: compile quantises it for the NPU; for a "
            "quantised .tflite, give that file",
        )
    if node.op_type in _CONTROL:
        raise InputError(f"{path} has control flow, which is not supported: {place(node)}", _OTHER_WAY)
    if node.op_type in _OF_VALUES:
        raise InputError(
            f"{path}: the shape of what {place(node)} gives depends on values, which a program cannot have",
            "cut the graph before it with onnx.utils.extract_model, and do the rest in your application",
        )
    if node.domain not in _STANDARD and node.domain not in functions:
        raise InputError(
            f"{path} needs an operator of {plain_text.cut(node.domain, 100)}, which is not standard: {place(node)}",
            _OTHER_WAY,
        )
    if node.op_type in _RANDOM:
        raise InputError(f"{path} has random results, which nobody can check: {place(node)}", _OTHER_WAY)


def _load_beside(path: Path, model: Any) -> tuple[Path, ...]:
    """Load what lies in other files. InputError for one outside of the model's folder, or too short."""
    folder = path.resolve().parent
    found: dict[Path, None] = {}
    for tensor in _all_tensors(model.graph):
        if not uses_external_data(tensor):
            _refuse_large(path, tensor)
            continue
        info = ExternalDataInfo(tensor)
        name = info.location
        file = folder / name
        if not name or "\0" in name or file.is_symlink() or not file.resolve().is_relative_to(folder):
            raise InputError(
                f"{path}: the data of '{plain_text.cut(tensor.name, 200)}' are in "
                f"{plain_text.cut(name, 200)!r}, outside of its folder",
                "put the file beside the model, with a relative name",
            )
        if not file.is_file():
            raise InputError(
                f"{path} has its weights in {file}, which is not there", "copy it with the model"
            )
        _refuse_large(path, tensor)
        end = (info.offset or 0) + (info.length or 0)
        if min(info.offset or 0, info.length or 0) < 0 or end > file.stat().st_size:
            raise InputError(
                f"{file} is shorter than {path} says, or is of another model", "export both again"
            )
        found[file] = None
    if sum(file.stat().st_size for file in found) > _MOST_BYTES:
        raise InputError(f"the weights of {path} have more than {_MOST_BYTES >> 20} MiB")
    try:
        load_external_data_for_model(model, str(folder))
    except Exception as error:
        raise _invalid(path, error) from error
    return tuple(found)


def _all_tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for node in _all_nodes(graph):
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


def _refuse_large(path: Path, tensor: Any) -> None:
    if any(size < 0 for size in tensor.dims) or math.prod(tensor.dims) > _MOST_ELEMENTS:
        raise InputError(
            f"{path}: '{plain_text.cut(tensor.name, 200)}' has the impossible shape {list(tensor.dims)}"
        )


def _name_nodes(graph: Any) -> None:
    """Give each node a name of its own, which names its module."""
    taken: set[str] = set()
    for number, node in enumerate(graph.node):
        name = node.name.replace(".", "/").strip("/") or f"{node.op_type}_{number}"
        node.name = name if name not in taken else f"{name}_{number}"
        taken.add(node.name)


def _fixed_inputs(path: Path, model: Any, given: Sequence[Array] | None) -> tuple[OnnxInput, ...]:
    """Fix the shapes of the inputs in `model`. InputError for one that cannot be."""
    constants = {row.name for row in model.graph.initializer}
    rows = [row for row in model.graph.input if row.name not in constants]
    if not rows:
        raise InputError(f"{path} takes no inputs: there is nothing to run")
    if given is not None and len(given) != len(rows):
        raise InputError(
            f"{path} takes {plain_text.counted(len(rows), 'input')}, and --inputs has {len(given)}",
            f"give input0, … in this order: {', '.join(row.name for row in rows)}",
        )
    found = []
    for number, row in enumerate(rows):
        kind = row.type.tensor_type
        if not row.type.HasField("tensor_type"):
            raise InputError(f"{path}: the input '{row.name}' is no tensor", _OTHER_WAY)
        known = [size.dim_value if size.HasField("dim_value") else 0 for size in kind.shape.dim]
        shape = _shape_of(path, row, known, None if given is None else given[number].shape)
        del kind.shape.dim[:]
        for size in shape:
            kind.shape.dim.add().dim_value = size
        try:
            dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
        except (KeyError, TypeError) as error:
            raise InputError(f"{path}: the input '{row.name}' has no type that NumPy has") from error
        if dtype.kind not in "fiub":
            raise InputError(
                f"{path}: the input '{row.name}' is {dtype}, which a program cannot take", _OTHER_WAY
            )
        found.append(OnnxInput(row.name, dtype, shape))
    return tuple(found)


def _shape_of(path: Path, row: Any, known: list[int], given: Shape | None) -> Shape:
    tensor = row.type.tensor_type
    words = ", ".join(str(size.dim_value or size.dim_param or "?") for size in tensor.shape.dim)
    if given is not None:
        fits = len(given) == len(known) and all(a in (0, b) for a, b in zip(known, given, strict=True))
        if tensor.HasField("shape") and not fits:
            raise InputError(f"the input '{row.name}' of {path} is [{words}], and --inputs has {list(given)}")
        return tuple(given)
    if known and known[0] <= 0 and all(size > 0 for size in known[1:]):
        return (1, *known[1:])
    if not tensor.HasField("shape") or any(size <= 0 for size in known):
        raise InputError(
            f"the input '{row.name}' of {path} has open sizes: [{words}]",
            _SHAPES_HINT.format(name=row.name, file=path.name),
        )
    return tuple(known)


def _with_shapes(path: Path, model: Any) -> Any:
    """`model` with the shape of each value that can be known. InputError for one beyond all bounds."""
    del model.graph.value_info[:]
    for row in model.graph.output:
        row.type.tensor_type.ClearField("shape")
    try:
        found = shape_inference.infer_shapes(model, data_prop=True)
    except Exception as error:
        raise _invalid(path, error) from error
    if len(found.graph.node) > _MOST_NODES:
        raise InputError(
            f"{path} has {len(found.graph.node):,} operators", "a model for a microcontroller has fewer"
        )
    for name, shape in _shapes(found.graph).items():
        if shape is not None and math.prod(shape) > _MOST_ELEMENTS:
            raise InputError(f"{path}: the value '{name}' is too large: {list(shape)}")
    return found


def _shapes(graph: Any) -> dict[str, Shape | None]:
    """The shape of each value by its name; None for one that is not known."""
    found: dict[str, Shape | None] = {row.name: tuple(row.dims) for row in graph.initializer}
    for row in (*graph.input, *graph.value_info, *graph.output):
        shape = row.type.tensor_type.shape
        known = row.type.tensor_type.HasField("shape") and all(
            size.HasField("dim_value") for size in shape.dim
        )
        found[row.name] = tuple(size.dim_value for size in shape.dim) if known else None
    return found


class Session:
    """A model in onnxruntime, operator by operator: nothing fused, one thread."""

    def __init__(self, path: Path, model: Any, outputs: Sequence[str] = ()) -> None:
        if outputs:
            kept = model
            model = onnx.ModelProto()
            model.CopyFrom(kept)
            del model.graph.output[:]
            model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        self._path = path
        with _refused(path):
            self._session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        self._names = [row.name for row in self._session.get_inputs()]
        self._outputs = list(outputs) or None

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs for the `inputs`. InputError when onnxruntime does not compute them."""
        with _refused(self._path):
            values = dict(zip(self._names, inputs, strict=False))
            return [np.asarray(row) for row in self._session.run(self._outputs, values)]


@contextlib.contextmanager
def _refused(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the native library's classes
        raise InputError(
            f"onnxruntime {onnxruntime.__version__} cannot run {path}: {plain_text.error(error)}",
            "a model that onnxruntime runs is compared with what it gives, and no other is taken",
        ) from error


def for_conversion(
    file: OnnxFile, examples: Sequence[Array], has_converter: Callable[[str, int], bool]
) -> Any:
    """The model of `file` without what depends on shapes alone, for operator set OPSET where it is of a later one.
    `has_converter` says of an operator and a version whether it can be converted. InputError with the node for an
    operator that cannot."""
    model = onnx.ModelProto()
    model.CopyFrom(file.model)
    versions = {row.domain or "ai.onnx": row.version for row in model.opset_import}
    version = versions.get("ai.onnx", 1)
    for _ in range(_INLINED):
        lacking = {node.op_type for node in model.graph.node if not has_converter(node.op_type, version)}
        if not lacking:
            break
        _inline(file.path, model, lacking)
    _fold(file, model, examples)
    if version > OPSET:
        _write_for_older(file.path, model)
        version = OPSET
    for node in model.graph.node:
        if not has_converter(node.op_type, version):
            raise InputError(f"onnx2torch has no {place(node)}, which {file.path} needs", _OTHER_WAY)
    _separate_outputs(model.graph)
    return model


def _inline(path: Path, model: Any, operators: Iterable[str]) -> None:
    """Write the `operators` as others, where the standard says how."""
    for row in model.graph.initializer:
        model.graph.value_info.append(helper.make_tensor_value_info(row.name, row.data_type, row.dims))
    ids = [("", name) for name in sorted(operators)]
    try:
        model.CopyFrom(inliner.inline_selected_functions(model, ids, inline_schema_functions=True))
        model.CopyFrom(_with_shapes(path, model))
    except Exception as error:  # the native library's classes
        raise _invalid(path, error) from error
    _name_nodes(model.graph)


def _fold(file: OnnxFile, model: Any, examples: Sequence[Array]) -> None:
    """Compute what no input's values change, and store it in place of the nodes."""
    graph = model.graph
    fixed = {"", *(row.name for row in graph.initializer)}
    static, live = [], []
    for node in graph.node:
        if node.op_type in ("Constant", "Shape", "Size") or fixed.issuperset(node.input):
            static.append(node)
            fixed.update(node.output)
        else:
            live.append(node)
    used = {name for node in live for name in node.input} | {row.name for row in graph.output}
    names = sorted(used & {name for node in static for name in node.output if name})
    if names:
        values = Session(file.path, model, names).run(examples)
        for name, value in zip(names, values, strict=True):
            graph.initializer.append(numpy_helper.from_array(value, name))
    del graph.node[:]
    graph.node.extend(live)
    used |= {name for node in live for name in node.input}
    kept = [row for row in graph.initializer if row.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)


def _separate_outputs(graph: Any) -> None:
    """Give each output of the graph a node of its own: onnx2torch takes the outputs of a node as one, and knows
    neither an input nor a constant as an output."""
    alone = {node.output[0] for node in graph.node if len(node.output) == 1}
    for number, row in enumerate(graph.output):
        if row.name in alone:
            alone.remove(row.name)
            continue
        name = f"{row.name}/output_{number}"
        graph.node.append(helper.make_node("Identity", [row.name], [name], name=f"output_{number}"))
        row.name = name


# Operators that were changed after OPSET, as they were before. What has no such form keeps its new attributes, which
# the checker then names.

_DEFAULTS = {  # of attributes that came later
    "antialias": 0,
    "keep_aspect_ratio_policy": b"stretch",
    "saturate": 1,
    "round_mode": b"up",
    "dilations": None,
    "stash_type": 1,
}


def _write_for_older(path: Path, model: Any) -> None:
    graph = model.graph
    constants = {row.name: row for row in graph.initializer}
    shapes = _shapes(graph)
    for node in graph.node:
        change = _CHANGES.get("Reduce" if node.op_type.startswith("Reduce") else node.op_type)
        if change is not None:
            change(node, graph, constants, shapes)
        later = [row.name for row in node.attribute if _is_later_default(node.op_type, row)]
        for name in later:
            _take_attribute(node, name)
    for row in model.opset_import:
        if row.domain in _STANDARD:
            row.version = OPSET
    model.ir_version = min(model.ir_version, 8)
    for node in graph.node:
        if node.domain in _STANDARD:
            _check_older(path, node, model)


def _check_older(path: Path, node: Any, model: Any) -> None:
    context = onnx.checker.C.CheckerContext()
    context.ir_version, context.opset_imports = model.ir_version, {"": OPSET}
    try:
        onnx.checker.check_node(node, context)
    except Exception as error:  # the native library's class
        raise InputError(
            f"{path}: {place(node)} has no form in operator set {OPSET}, which onnx2torch takes: "
            f"{plain_text.error(error)}",
            f"export the model with opset_version={OPSET}",
        ) from error


def _is_later_default(operator: str, attribute: Any) -> bool:
    if (
        attribute.name not in _DEFAULTS
        or attribute.name in onnx.defs.get_schema(operator, OPSET, "").attributes
    ):
        return False
    value = helper.get_attribute_value(attribute)
    return set(value) == {1} if attribute.name == "dilations" else bool(value == _DEFAULTS[attribute.name])


def _take_attribute(node: Any, name: str) -> Any:
    """Remove an attribute; its value, None when there is none."""
    for row in node.attribute:
        if row.name == name:
            value = helper.get_attribute_value(row)
            node.attribute.remove(row)
            return value
    return None


Constants = Mapping[str, Any]
Shapes = Mapping[str, Shape | None]


def _constant(graph: Any, node: Any, word: str, value: Array) -> str:
    name = f"{node.name}/{word}"
    graph.initializer.append(numpy_helper.from_array(value, name))
    return name


def _reduce(node: Any, graph: Any, constants: Constants, shapes: Shapes) -> None:
    if node.op_type == "ReduceSum":
        return
    does_nothing = _take_attribute(node, "noop_with_empty_axes")
    axes = []
    if len(node.input) > 1 and node.input[1] in constants:
        axes = numpy_helper.to_array(constants[node.input[1]]).reshape(-1).tolist()
    if axes:
        node.attribute.append(helper.make_attribute("axes", axes))
    elif does_nothing:
        node.op_type = "Identity"
        del node.attribute[:]
    if not node.input[1:] or node.input[1] in constants or not node.input[1]:
        del node.input[1:]


def _split(node: Any, graph: Any, constants: Constants, shapes: Shapes) -> None:
    count = _take_attribute(node, "num_outputs")
    shape = shapes.get(node.input[0])
    if count is None or shape is None:
        return
    axis = next((row.i for row in node.attribute if row.name == "axis"), 0)
    size, part = shape[axis], -(-shape[axis] // count)
    sizes = [min(part, size - part * number) for number in range(count)]
    del node.input[1:]
    node.input.append(_constant(graph, node, "sizes", np.array(sizes, np.int64)))


def _pad(node: Any, graph: Any, constants: Constants, shapes: Shapes) -> None:
    shape = shapes.get(node.input[0])
    if len(node.input) < 4 or shape is None:
        return
    axes, pads = (numpy_helper.to_array(constants[name]).tolist() for name in (node.input[3], node.input[1]))
    whole = np.zeros((2, len(shape)), np.int64)
    whole[:, axes] = np.array(pads).reshape(2, -1)
    node.input[1] = _constant(graph, node, "pads", whole.reshape(-1))
    del node.input[3:]


def _resize(node: Any, graph: Any, constants: Constants, shapes: Shapes) -> None:
    axes, shape = _take_attribute(node, "axes"), shapes.get(node.input[0])
    if axes is None or shape is None:
        return
    for index, whole in ((2, np.ones(len(shape), np.float32)), (3, np.array(shape, np.int64))):
        if len(node.input) > index and node.input[index]:
            whole[list(axes)] = numpy_helper.to_array(constants[node.input[index]])
            node.input[index] = _constant(graph, node, f"whole_{index}", whole)


_CHANGES = {"Reduce": _reduce, "Split": _split, "Pad": _pad, "Resize": _resize}
