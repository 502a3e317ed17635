"""Rewrites of an exported program before it is quantised: repairs, and operators replaced by equivalent ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ethosu_sdk.base.targets import Target
from ethosu_sdk.compile.graphs.fx import add_constant, rename_output, take_place
from ethosu_sdk.compile.rewrite.convolutions_and_pooling import is_grouped_volume

Function = Callable[..., Any]
# For a node: a function of the same arguments that replaces it, or None to keep it.
Choice = Callable[[Any], Function | None]
# The same for a rewrite that is made for speed, where it pays for the goal.
GoalChoice = Callable[[Any, "Goal"], Function | None]

_VALUE_AT = {  # operator → the constant, or the position of the argument that is it
    "aten.zeros_like.default": 0,
    "aten.ones_like.default": 1,
    "aten.new_zeros.default": 0,
    "aten.new_ones.default": 1,
    "aten.full_like.default": "second",
    "aten.new_full.default": "third",
}
_POSITION = {"second": 1, "third": 2}
_BATCHED_AXES = {  # operator → axes of an input with batches
    **dict.fromkeys(("aten.conv1d.default", "aten.conv1d.padding", "aten.conv_transpose1d.default"), 3),
    **dict.fromkeys(("aten.avg_pool1d.default", "aten.adaptive_avg_pool1d.default"), 3),
    **dict.fromkeys(("aten.conv2d.default", "aten.conv2d.padding", "aten.conv_transpose2d.input"), 4),
    **dict.fromkeys(("aten.avg_pool2d.default", "aten.adaptive_avg_pool2d.default"), 4),
}
_ON_U85 = ("aten.conv3d.", "aten.floor_divide.", "aten.div.")


def fill_from_shapes(program: Any) -> Any:
    """The ``ExportedProgram`` with ``aten.full`` for operators that only take their shape from a tensor, such as
    ``ones_like(x)``, changed in place.

    Where ExecuTorch 1.5.1 puts one into a delegate, `x` becomes an input of it; inside, the constant is folded and
    the input goes, but the program still passes it.
    """
    import torch

    graph = program.graph
    for node in list(graph.nodes):
        value = _fill_value(node)
        if value is None:
            continue
        made = node.meta["val"]
        with graph.inserting_before(node):
            full = graph.call_function(
                torch.ops.aten.full.default,
                (list(made.shape), value),
                {"dtype": made.dtype, "device": made.device, "pin_memory": False},
            )
        full.meta = dict(node.meta)
        take_place(program, node, full)
    graph.eliminate_dead_code()
    program.graph_module.recompile()
    return program


def _fill_value(node: Any) -> bool | int | float | None:
    """What all elements of the node's tensor are, or None for another operator or a value that is computed."""
    import torch

    known = _VALUE_AT.get(str(node.target)) if node.op == "call_function" else None
    if known is None:
        return None
    value = known
    if isinstance(known, str):
        position = _POSITION[known]
        value = node.args[position] if len(node.args) > position else None
    made = node.meta.get("val")
    fixed = isinstance(made, torch.Tensor) and all(type(size) is int for size in made.shape)
    return value if fixed and isinstance(value, (bool, int, float)) else None


def inline_regions(program: Any) -> Any:
    """The ``ExportedProgram`` with regions in which automatic mixed precision is off as a part of the graph, changed
    in place."""
    import torch

    graph, modules = program.graph, program.graph_module
    for node in list(graph.nodes):
        if node.target is not torch.ops.higher_order.wrap_with_autocast or node.args[2]:
            continue
        region, given = node.args[4], node.args[5:]
        inner = getattr(modules, region.target).graph
        known = dict(zip(inner.find_nodes(op="placeholder"), given, strict=True))
        with graph.inserting_before(node):
            for step in inner.nodes:
                if step.op not in ("placeholder", "output"):
                    known[step] = graph.node_copy(step, known.__getitem__)
                if step.op == "get_attr":
                    known[step].target = f"{region.target}.{step.target}"
        results = inner.output_node().args[0]
        for user in list(node.users):
            take_place(program, user, known[results[user.args[1]]])
        graph.erase_node(node)
    modules.recompile()
    return program


def split_addmm(program: Any) -> Any:
    """The ``ExportedProgram`` with a product and a sum for ``addmm`` whose factors are one, changed in place.

    ExecuTorch 1.5.1 takes it apart into ``beta * bias + alpha * (x @ w)``, and fails at the product of a parameter
    and a number. The Conv1D layers of GPT-2 in transformers are such.
    """
    import torch

    aten, graph = torch.ops.aten, program.graph
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target is not aten.addmm.default:
            continue
        if any(node.kwargs.get(factor, 1) != 1 for factor in ("alpha", "beta")):
            continue
        bias, left, right = node.args
        with graph.inserting_before(node):
            product = graph.call_function(aten.mm.default, (left, right))
        product.meta = dict(node.meta)
        node.target, node.args, node.kwargs = aten.add.Tensor, (product, bias), {}
    program.graph_module.recompile()
    return program


def add_batch_axes(program: Any) -> Any:
    """The ``ExportedProgram`` with a batch of one around layers of one sample without an axis of batches, such as
    ``Conv2d`` on [channels, height, width], changed in place."""
    import torch

    graph = program.graph
    for node in list(graph.nodes):
        axes = _BATCHED_AXES.get(str(node.target)) if node.op == "call_function" else None
        if axes is None or node.args[0].meta["val"].dim() != axes - 1:
            continue
        source, users = node.args[0], list(node.users)
        with graph.inserting_before(node):
            batched = graph.call_function(torch.ops.aten.unsqueeze.default, (source, 0))
        batched.meta = {**node.meta, "val": source.meta["val"].unsqueeze(0)}
        node.update_arg(0, batched)
        with graph.inserting_after(node):
            single = graph.call_function(torch.ops.aten.squeeze.dim, (node, 0))
        single.meta = dict(node.meta)
        node.meta = {**node.meta, "val": node.meta["val"].unsqueeze(0)}
        for user in users:
            user.replace_input_with(node, single)
        rename_output(program, node, single)
    program.graph_module.recompile()
    return program


def replace_operators(
    program: Any, choices: Mapping[str, Choice], target: Target | None, *, quantized: bool
) -> Any:
    """The ``ExportedProgram`` with the functions of `choices`, by operator, in the place of nodes, changed in place.
    What an Ethos-U85 has stays, if the program is for that and will be quantised."""
    ethos_u85 = quantized and target is not None and target.npu == "ethos-u85"
    changed = False
    for node in list(program.graph.nodes):
        name = str(node.target)
        stays = (ethos_u85 and name.startswith(_ON_U85)) or (target and is_grouped_volume(node))
        choice = None if stays else choices.get(name)
        function = choice and choice(node)
        if function:
            inline(program, node, function)
            changed = True
    if changed:
        program.graph.eliminate_dead_code()
        program.graph_module.recompile()
    return program


@dataclass(frozen=True)
class Goal:
    """What a program is rewritten for: an NPU, or None for a processor; what it will be quantised to, one of
    QUANTIZE_CHOICES; whether operators are delegated, whether all stay that the user wrote, and whether other methods
    may change the buffers."""

    target: Target | None
    quantize: str
    delegate: bool = True
    as_written: bool = False
    shares_state: bool = False

    @property
    def quantized(self) -> bool:
        return self.quantize != "none"

    @property
    def delegate_to(self) -> Target | None:
        """The NPU that computes what it can; None where a processor computes all."""
        return self.target if self.quantized and self.delegate else None

    @property
    def is_ethos_u85(self) -> bool:
        """Whether the program is for an Ethos-U85, which takes more than Ethos-U55 and Ethos-U65."""
        return self.target is not None and self.target.npu == "ethos-u85"


def make_faster(
    program: Any, choices: Mapping[str, GoalChoice], goal: Goal
) -> list[tuple[dict[str, Any], str]]:
    """Put the functions of `choices`, by operator, in the place of nodes of `program`; the meta data and the operator
    of each of these nodes."""
    made = []
    for node in list(program.graph.nodes):
        name = str(node.target)
        choice = choices.get(name) if node.op == "call_function" else None
        function = choice and choice(node, goal)
        if function:
            made.append((dict(node.meta), name))
            inline(program, node, function)
    return made


def inline(
    program: Any,
    node: Any,
    function: Function,
    sources: Sequence[Any] | None = None,
    *,
    before: Any = None,
    whole: bool = True,
) -> Any:
    """Put the operators that `function` calls in the place of `node`, as made by the same line of the model, and
    return what they give.

    The function gets the node's arguments, or `sources`, other nodes. Tensors that it holds become constants of the
    program. With `before`, nothing is replaced. Unless they stay `whole`, torch takes operators apart that it defines
    by others.
    """
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils import _pytree

    place = node if before is None else before
    leaves, spec = _pytree.tree_flatten((node.args, node.kwargs) if sources is None else (tuple(sources), {}))
    sources = [leaf for leaf in leaves if isinstance(leaf, torch.fx.Node)]

    def call(*tensors: Any) -> Any:
        given = iter(tensors)
        filled = [next(given) if isinstance(leaf, torch.fx.Node) else leaf for leaf in leaves]
        args, kwargs = _pytree.tree_unflatten(filled, spec)
        return function(*args, **kwargs)

    values = [source.meta["val"] for source in sources]
    with values[0].fake_mode:
        module = make_fx(call, pre_dispatch=whole, _allow_non_fake_inputs=True)(*values)
    traced = module.graph
    known = dict(zip(traced.find_nodes(op="placeholder"), sources, strict=True))
    for held in traced.find_nodes(op="get_attr"):
        known[held] = add_constant(program, "constant", getattr(module, held.target))
    with place.graph.inserting_before(place):
        for step in traced.nodes:
            if step.op == "call_function":
                known[step] = place.graph.node_copy(step, known.__getitem__)
                known[step].meta = {**place.meta, "val": step.meta["val"]}
    result = _pytree.tree_map_only(torch.fx.Node, known.__getitem__, traced.output_node().args[0])
    if before is None:
        _use(program, node, result)
    return result


def _use(program: Any, node: Any, result: Any) -> None:
    """Let `result`, a node or several, take the place of `node` and of what takes its parts."""
    if not isinstance(result, (tuple, list)):
        take_place(program, node, result)
        return
    users = list(node.users)
    for user in users:
        take_place(program, user, result[user.args[1]])
    if users:
        node.graph.erase_node(node)
