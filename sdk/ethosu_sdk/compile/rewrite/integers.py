"""Integers in a model that is quantised: divisions, and int64 that Arm's quantiser lets be cast to int32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.compile.graphs.source_lines import SourceFinder
from ethosu_sdk.compile.tool_hooks import patched

Function = Callable[..., Any]
Tensors = tuple[Any, ...]

_HINT = (
    "a quantised program computes with 32-bit integers: give values between -2147483648 and 2147483647, as int32, "
    "or compile with --quantize none, which keeps int64 on the CPU"
)
_CASTS = ("aten.to.dtype", "aten._to_copy.")
_ROUNDING = tuple(f"aten.{name}." for name in ("round", "floor", "ceil", "trunc", "fix"))


def _by_number(node: Any) -> Function | None:
    """A choice for integers that are divided by a number: the CPU's kernels divide by a tensor alone."""
    import torch

    integer = not node.args[0].meta["val"].dtype.is_floating_point
    return _divided if integer and not isinstance(node.args[1], torch.fx.Node) else None


def _divided(x: Any, divisor: int, *, rounding_mode: str = "floor") -> Any:
    import torch

    return torch.div(x, torch.full((), divisor, dtype=x.dtype), rounding_mode=rounding_mode)


DIVISION_CHOICES: dict[str, Callable[[Any], Function | None]] = dict.fromkeys(
    ("aten.floor_divide.default", "aten.floor_divide.Scalar", "aten.div.Tensor_mode", "aten.div.Scalar_mode"),
    _by_number,
)


def integer_divisions_kept() -> AbstractContextManager[None]:
    """While the block runs, divisions of integers with a rounding mode stay as they are, where there is no INTDIV:
    the CPU has a kernel. ExecuTorch 1.5.1 takes them for divisions of floats, and gives them 256 steps."""
    from executorch.backends.arm._passes import DecomposeDivTensorModePass
    from executorch.backends.arm.tosa.specification import get_context_spec
    from executorch.exir.pass_base import ExportPass

    inherited = DecomposeDivTensorModePass.call_operator

    def call_operator(self: Any, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        whole = op in self.target_ops and all(self._is_integer_tensor(value) for value in args[:2])
        if whole and kwargs.get("rounding_mode") and get_context_spec().is_U55_subset:
            return ExportPass.call_operator(self, op, args, kwargs, meta)
        return inherited(self, op, args, kwargs, meta)

    return patched(DecomposeDivTensorModePass, call_operator=call_operator)


def refuse_wide_integers(
    program: Any, quantize: str, inputs: Tensors, calibration: Sequence[Tensors], finder: SourceFinder
) -> None:
    """InputError when int64 values do not fit 32 bits: of the samples, or of constants of the ``ExportedProgram``.
    Nothing for ``none``: what is not quantised keeps 64 bits."""
    if quantize == "none":
        return
    places = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    signature = program.graph_signature
    samples = [("example input", inputs)]
    samples += [(f"calibration sample {index}: input", sample) for index, sample in enumerate(calibration)]
    for what, sample in samples:
        for index, (tensor, name) in enumerate(zip(sample, signature.user_inputs, strict=True)):
            _check_width(tensor, f"{what} {index}", places.get(name), finder)
    held = {**program.state_dict, **program.constants}
    targets = {**signature.inputs_to_buffers, **signature.inputs_to_lifted_tensor_constants}
    for name, target in targets.items():
        _check_width(held.get(target), f"constant '{target}'", places.get(name), finder)


def _check_width(tensor: Any, what: str, node: Any, finder: SourceFinder) -> None:
    import torch

    users = [] if node is None else list(node.users)
    if not users or not isinstance(tensor, torch.Tensor) or tensor.dtype != torch.int64:
        return
    limits = torch.iinfo(torch.int32)
    wide = tensor[(tensor < limits.min) | (tensor > limits.max)]
    if wide.numel():
        place = finder.place(users[0].meta)
        raise InputError(
            f"{what} holds {int(wide[0])}, which does not fit 32 bits ({wide.numel():,} of its {tensor.numel():,} "
            f"values do not); it is an input of {users[0].target}" + (f" at {place}" if place else ""),
            _HINT,
        )


def restore_int64(module: Any) -> Callable[[Any], Any]:
    """What gives the quantised or prepared `module` int64 for each output that has become int32, and for its own
    buffers: Arm's quantiser lets every int64 input be cast to int32."""
    import torch

    types = [_dtype(node) for node in _outputs(module)]

    def restore(changed: Any) -> Any:
        _restore_state(changed)
        output, wide = changed.graph.output_node(), {}
        for node, dtype in zip(_outputs(changed), types, strict=True):
            if dtype == torch.int64 and _dtype(node) == torch.int32 and node not in wide:
                wide[node] = _widened(changed.graph, node, output)
        for node, result in wide.items():
            output.replace_input_with(node, result)
        if wide:
            changed.recompile()
        return changed

    return restore


def _dtype(node: Any) -> Any:
    return getattr(node.meta.get("val"), "dtype", None)


def _outputs(module: Any) -> list[Any]:
    import torch
    from torch.utils import _pytree

    leaves = _pytree.tree_leaves(module.graph.output_node().args)
    return [leaf for leaf in leaves if isinstance(leaf, torch.fx.Node)]


def _widened(graph: Any, node: Any, before: Any) -> Any:
    """A cast of `node` to int64, ahead of the node `before`."""
    import torch

    with graph.inserting_before(before):
        wide = graph.call_function(torch.ops.aten.to.dtype, (node, torch.int64))
    wide.meta = {**node.meta, "val": node.meta["val"].to(torch.int64)}
    return wide


def _restore_state(module: Any) -> None:
    """Let the int64 buffers of `module` be written themselves: Arm's pass writes to their int32 copies, which are
    nobody's."""
    import torch

    for node in module.graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default):
        copy, source = node.args[:2]
        buffer: Any = copy.args[0] if copy.op == "call_function" and copy.args else copy
        value = buffer.meta.get("val") if isinstance(buffer, torch.fx.Node) else None
        if value is None or buffer is copy or buffer.op != "get_attr" or value.dtype != torch.int64:
            continue
        node.args = (buffer, _widened(module.graph, source, node), *node.args[2:])
        node.meta = {**node.meta, "val": value}
        module.recompile()


def keep_scalars(module: Any) -> None:
    """Let what is written to a buffer without axes have none: Arm's passes give an axis to numbers in arithmetic."""
    import torch

    for node in module.graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default):
        source = node.args[1]
        value = source.meta.get("val")
        if value is None or value.dim():
            continue
        with module.graph.inserting_before(node):
            scalar = module.graph.call_function(torch.ops.aten.view.default, (source, []))
        scalar.meta = dict(source.meta)
        node.replace_input_with(source, scalar)
        module.recompile()


def round_casts_again(module: Any) -> Callable[[Any], Any]:
    """What lets casts of `module` to integers round, in the prepared module, where whole numbers are cast:
    quantised, 3 may become 2.99, of which a cast makes 2. The quantiser leaves these in float."""
    import torch

    names = {
        node.name
        for node in module.graph.nodes
        if str(node.target).startswith(_CASTS)
        and not node.meta["val"].is_floating_point()
        and str(getattr(node.args[0], "target", "")).startswith(_ROUNDING)
    }

    def round_again(prepared: Any) -> Any:
        casts = [
            node
            for node in prepared.graph.nodes
            if node.name in names and str(node.target).startswith(_CASTS)
        ]
        for node in casts:
            source = node.args[0]
            value = source.meta.get("val")
            if value is not None and not value.is_floating_point():
                continue
            with prepared.graph.inserting_before(node):
                whole = prepared.graph.call_function(torch.ops.aten.round.default, (source,))
            whole.meta = {name: item for name, item in node.meta.items() if name != "val"}
            node.replace_input_with(source, whole)
        if casts:
            prepared.recompile()
        return prepared

    return round_again
