"""An ONNX file as a PyTorch module, and what onnxruntime gives for the same inputs."""

from __future__ import annotations

import operator
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ethosu_sdk.base import plain_text
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.compile.front_ends import onnx_file
from ethosu_sdk.compile.front_ends.onnx_file import Array, OnnxFile, Session
from ethosu_sdk.compile.graphs import tensor_arrays

Tensors = tuple[Any, ...]

_SEED = 20
# Operators of which torch.export wants some inputs, which are constants now, as numbers of Python.
_WITH_NUMBERS = frozenset(
    (
        *("Reshape", "Expand", "Pad", "Slice", "Tile", "Resize", "Split"),
        *("Squeeze", "Unsqueeze", "CumSum", "ReduceSum"),
    )
)


@dataclass(frozen=True)
class OnnxModel:
    """The converted `module` of an ONNX `file`, example inputs, and the file's own graph in onnxruntime."""

    file: OnnxFile
    module: Any
    example_inputs: Tensors

    def outputs(self, samples: Sequence[Tensors]) -> list[Tensors]:
        """What onnxruntime gives for each sample."""
        session = Session(self.file.path, self.file.model)
        return [_tensors(session.run([tensor_arrays.as_numpy(item) for item in row])) for row in samples]

    def place_of_loss(self, inputs: Tensors, is_close: Callable[[Array, Array], bool]) -> str:
        """The first node whose results onnxruntime and the module do not share; empty when there is none."""
        values = _values(self.module, inputs)
        nodes = [node for node in self.file.model.graph.node if node.name in values]
        names = [name for node in nodes for name in node.output if name]
        found = Session(self.file.path, self.file.model, names).run(
            [tensor_arrays.as_numpy(item) for item in inputs]
        )
        given = dict(zip(names, found, strict=True))
        for node in nodes:
            outputs = (
                values[node.name] if isinstance(values[node.name], (tuple, list)) else (values[node.name],)
            )
            for name, value in zip(node.output, outputs, strict=False):
                if name and not is_close(tensor_arrays.as_numpy(value), given[name]):
                    return onnx_file.place(node)
        return ""


def load_onnx(path: Path, given: Path | None) -> OnnxModel:
    """The model at `path`, with the sizes and values of the inputs in the file `given`, or values of its own.

    InputError for a file that is none, and for what onnx2torch does not convert.
    """
    arrays = None if given is None else tensor_arrays.read_inputs(given)
    file = onnx_file.read_onnx(path, arrays)
    examples = _examples(file, arrays)
    Session(path, file.model).run(examples)  # which refuses what is wrong, before it is converted
    onnx2torch = _onnx2torch()
    model = onnx_file.for_conversion(file, examples, _has_converter)
    tensors = _tensors(examples)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of modes that may differ: the outputs are compared
            module = onnx2torch.convert(model).eval()
            _put_numbers(module, tensors, {node.name: node.op_type for node in model.graph.node})
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"onnx2torch cannot convert {path}: {plain_text.error(error)}",
            "compile the PyTorch model that the file was exported from",
        ) from error
    return OnnxModel(file, module, tensors)


def _examples(file: OnnxFile, given: Sequence[Array] | None) -> list[Array]:
    if given is not None:
        return [array.astype(row.dtype, copy=False) for row, array in zip(file.inputs, given, strict=True)]
    source = np.random.default_rng(_SEED)
    return [
        source.standard_normal(row.shape).astype(row.dtype)
        if row.dtype.kind == "f"
        else source.integers(0, 2, row.shape).astype(row.dtype)
        for row in file.inputs
    ]


def _tensors(arrays: Sequence[Array]) -> Tensors:
    import torch

    return tuple(torch.from_numpy(np.array(array)) for array in arrays)


def _onnx2torch() -> Any:
    """The package. It imports torchvision for two operators, which are refused: it does without here, as what is
    installed may be missing, or be for another torch."""
    with _placeholder("torchvision", "torchvision.ops"):
        import onnx2torch
    return onnx2torch


@contextmanager
def _placeholder(name: str, inner: str) -> Iterator[None]:
    if name in sys.modules:
        yield
        return
    package, module = types.ModuleType(name), types.ModuleType(inner)
    module.roi_align = package.ops = None  # type: ignore[attr-defined]
    sys.modules.update({name: package, inner: module})
    try:
        yield
    finally:
        del sys.modules[name], sys.modules[inner]


_NEEDS_TORCHVISION = ("RoiAlign", "NonMaxSuppression")


def _has_converter(operator: str, version: int) -> bool:
    from onnx2torch.node_converters import get_converter

    if operator in _NEEDS_TORCHVISION:
        return False
    try:
        get_converter(operator, version)
    except NotImplementedError:
        return False
    return True


def _values(module: Any, inputs: Tensors) -> dict[str, Any]:
    """What each module of a converted model gives, by its name."""
    import torch

    found = {}

    class Noting(torch.fx.Interpreter):  # type: ignore[misc]
        def run_node(self, node: Any) -> Any:
            result = super().run_node(node)
            if node.op == "call_module":
                found[node.target] = result
            return result

    with torch.no_grad():
        Noting(module).run(*(item.clone() for item in inputs))
    return found


def _put_numbers(module: Any, inputs: Tensors, operators: Mapping[str, str]) -> None:
    """Let each operator that computes with numbers of Python have them, in place of tensors."""
    import torch

    rows = [
        node
        for node in module.graph.nodes
        if node.op == "call_module" and operators.get(node.target) in _WITH_NUMBERS
    ]
    for node in rows:
        if any(part.op != "get_attr" for part in node.all_input_nodes[1:]):
            raise InputError(
                f"the shape of what {operators[node.target]} '{node.target}' gives depends on values, which a "
                "program cannot have",
                "cut the graph before it with onnx.utils.extract_model, and do the rest in your application",
            )

    class Replacing(torch.fx.Interpreter):  # type: ignore[misc]
        def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
            if operators.get(target) not in _WITH_NUMBERS:
                return super().call_module(target, args, kwargs)
            setattr(module, target, _recorded(self.fetch_attr(target), args, kwargs))
            return getattr(module, target)(args[0])

    with torch.no_grad():
        Replacing(module).run(*inputs)
    for node in rows:
        node.args, node.kwargs = node.args[:1], {}
    output = module.graph.output_node()
    if isinstance(output.args[0], list):
        output.args = (tuple(output.args[0]),)  # a list would be another structure once it was exported
    module.graph.eliminate_dead_code()
    module.delete_all_unused_submodules()
    module.recompile()


def _recorded(module: Any, args: Any, kwargs: Any) -> Any:
    """`module` for constant arguments behind its first, as the calls that it makes with them."""
    import torch
    from torch.overrides import TorchFunctionMode

    graph, root = torch.fx.Graph(), torch.nn.Module()
    nodes = {id(args[0]): graph.placeholder("input")}
    kept = [args[0]]  # whose ids stay theirs

    def known(value: Any) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) in nodes:
            return nodes[id(value)]
        if value.dim() == 0 and not value.is_floating_point():
            return value.item()
        name = f"constant_{len(kept)}"
        root.register_buffer(name, value)
        kept.append(value)
        nodes[id(value)] = graph.get_attr(name)
        return nodes[id(value)]

    class Recorder(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if function is torch.Tensor.__getitem__ and isinstance(args[1], list):
                args = (args[0], tuple(args[1]))  # which a list will no longer mean
            result = function(*args, **(kwargs or {}))
            parts = result if isinstance(result, (tuple, list)) else (result,)
            given: list[Any] = []
            torch.fx.node.map_aggregate((args, kwargs or {}), given.append)
            if any(id(item) in nodes for item in given) and all(
                isinstance(part, torch.Tensor) for part in parts
            ):
                call = torch.fx.node.map_aggregate((args, kwargs or {}), known)
                node = graph.call_function(function, *call)
                for number, part in enumerate(parts):
                    is_one = parts[0] is result
                    nodes[id(part)] = (
                        node if is_one else graph.call_function(operator.getitem, (node, number))
                    )
                    kept.append(part)
            return result

    with Recorder():
        result = module(*args, **kwargs)
    graph.output(torch.fx.node.map_aggregate(result, known))
    # Not the graph module itself: torch.export would not name it as the module that its operators come from.
    found = type(
        type(module).__name__, (torch.nn.Module,), {"forward": lambda self, item: self.calls(item)}
    )()
    found.add_module("calls", torch.fx.GraphModule(root, graph))
    return found
