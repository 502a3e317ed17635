"""Replaces in-place operators of a program by operators that return new tensors, and output classes that a `.pte`
does not support. PT2E puts observers between operators, and each becomes a quantise and a dequantise operator, which
copy. A write through a view, a slice or an input then reaches a copy and is lost without a word: ``y[:, 2] = 5`` had
no effect."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from ethosu_sdk.compile.graphs.fx import is_mutable, operator_name, take_place
from ethosu_sdk.compile.tool_hooks import patched

# Operators whose result is a tensor of its own. Schemas do not say it of all: dropout in eval mode and type_as return
# their argument.
_FRESH = frozenset(
    (
        *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "linear", "matmul", "bmm"),
        *("batch_norm", "layer_norm", "group_norm", "instance_norm", "add", "sub", "mul", "div", "cat"),
    )
)


def without_writes(program: Any) -> Any:
    """`program`, an ``ExportedProgram``, with every write replaced; the same object when none can reach a view.
    Programs that write only to fresh results of arithmetic, such as ``nn.ReLU(inplace=True)`` behind a convolution,
    stay as they are."""
    if not any(writes(node) for node in program.graph.nodes):
        return program
    # This decomposes nothing: it replaces writes by ``slice_scatter`` and its kin, and makes outputs of new buffers.
    program = program.run_decompositions({})
    _forget_input_writes(program)
    _simplify(program)
    return program


def writes(node: Any) -> bool:
    """Whether a node changes a tensor that others may read, or must be rewritten for another reason."""
    if not is_mutable(node):
        return False
    # Without a form that Arm's quantiser leaves whole: it makes int32 of the indices, which this operator refuses.
    if str(node.target).startswith("aten.index_fill_."):
        return True
    source: Any = node.args[0] if node.args else None
    return not (_is_fresh(source) and list(source.users) == [node])


def _is_fresh(node: Any) -> bool:
    schema = getattr(getattr(node, "target", None), "_schema", None)
    if schema is None:
        return False
    if is_mutable(node):
        return not writes(node)  # it returns its argument
    return schema.name.removeprefix("aten::") in _FRESH


def _forget_input_writes(program: Any) -> None:
    """Leave out what the model writes into its inputs: the caller's memory is not the program's."""
    from torch.export.graph_signature import OutputKind

    signature = program.graph_signature
    output = program.graph.output_node()
    kept = [row.kind is not OutputKind.USER_INPUT_MUTATION for row in signature.output_specs]
    if all(kept):
        return
    results = [item for item, keep in zip(output.args[0], kept, strict=True) if keep]
    output.args = (tuple(results),)
    signature.output_specs[:] = [row for row, keep in zip(signature.output_specs, kept, strict=True) if keep]
    program.graph.eliminate_dead_code()
    program.graph_module.recompile()


def _simplify(program: Any) -> None:
    """Take out ``copy``, ``fill``, ``detach``, which functionalisation leaves and Arm's quantiser does not know."""
    graph = program.graph
    for node in list(graph.nodes):
        simpler = _SIMPLER.get(str(node.target)) if node.op == "call_function" else None
        if simpler is None:
            continue
        with graph.inserting_before(node):
            replacement = simpler(node)
        if replacement is not None:
            take_place(program, node, replacement)
    graph.eliminate_dead_code()
    program.graph_module.recompile()


def _of_copy(node: Any) -> Any | None:
    """``copy(destination, source)`` is the source, in the destination's shape and type."""
    import torch

    value, given = node.meta["val"], node.args[1].meta["val"]
    source = _of_type(node, node.args[1])
    if given.shape != value.shape:
        source = _call(node, torch.ops.aten.expand.default, (source, list(value.shape)), value)
    return source


def _of_fill(node: Any) -> Any | None:
    """``fill(x, number)`` reads nothing of x but its shape."""
    import torch

    value, made = node.args[1], node.meta["val"]
    if not isinstance(value, (bool, int, float)):
        return _call(node, torch.ops.aten.expand.default, (_of_type(node, value), list(made.shape)), made)
    options = {"dtype": made.dtype, "device": made.device, "pin_memory": False}
    return _call(node, torch.ops.aten.full.default, (list(made.shape), value), made, options)


def _of_type(node: Any, source: Any) -> Any:
    import torch

    given, dtype = source.meta["val"], node.meta["val"].dtype
    if given.dtype == dtype:
        return source
    return _call(node, torch.ops.aten.to.dtype, (source, dtype), given.to(dtype))


def _call(
    node: Any, target: Any, args: tuple[Any, ...], value: Any, options: dict[str, Any] | None = None
) -> Any:
    made = node.graph.call_function(target, args, options or {})
    made.meta = {**node.meta, "val": value}
    return made


def _of_select_scatter(node: Any) -> Any:
    """A part of one index is a slice. Of ``select_scatter`` ExecuTorch 1.5.1 makes a comparison of indices, which
    Ethos-U55 leaves to the CPU."""
    import torch

    base, source, axis, index = node.args
    value = node.meta["val"]
    axis, index = axis % value.dim(), index % value.shape[axis]
    part = _call(node, torch.ops.aten.unsqueeze.default, (source, axis), source.meta["val"].unsqueeze(axis))
    args = (base, part, axis, index, index + 1)
    return _call(node, torch.ops.aten.slice_scatter.default, args, value)


def _of_view(node: Any) -> Any | None:
    """The shape of a transposed tensor, which a write before may leave with other strides than were traced."""
    import torch

    if operator_name(node.args[0]) not in ("aten::t", "aten::transpose", "aten::permute"):
        return None
    return _call(node, torch.ops.aten.reshape.default, node.args, node.meta["val"])


_SIMPLER: dict[str, Callable[[Any], Any]] = {
    "aten.select_scatter.default": _of_select_scatter,
    "aten.copy.default": _of_copy,
    "aten.view.default": _of_view,
    "aten.fill.Scalar": _of_fill,
    "aten.fill.Tensor": _of_fill,
    "aten.detach.default": lambda node: node.args[0],
    "aten.alias.default": lambda node: node.args[0],
}


def traced_data() -> AbstractContextManager[None]:
    """While the block runs, ``tensor.data`` is traced; torch 2.13 takes it for a constant and loses writes."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    original = torch._C.TensorBase.data

    def read(self: Any) -> Any:
        return self.detach() if isinstance(self, FakeTensor) else original.__get__(self)

    def write(self: Any, value: Any) -> None:
        if isinstance(self, FakeTensor):
            self.copy_(value)
        else:
            original.__set__(self, value)

    return patched(torch.Tensor, data=property(read, write))


def flatten_outputs(program: Any) -> None:
    """Let `program`, an ``ExportedProgram``, return a tuple of tensors where ExecuTorch 1.5.1 cannot write down the
    classes that its outputs are in, such as what ``torch.topk`` and ``x.max(1)`` return."""
    from torch.utils import _pytree

    signature = program.module_call_graph[0].signature
    try:
        _pytree.treespec_dumps(signature.out_spec)
    except NotImplementedError:
        count = signature.out_spec.num_leaves
        signature.out_spec = _pytree.tree_structure((0,) * count)
