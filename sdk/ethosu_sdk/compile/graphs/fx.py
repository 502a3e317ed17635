"""Nodes of torch.fx graphs: their operators, observers, conversions to quantised values, and a program's outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ethosu_sdk.compile.compile_facts import Quantisation

# By name, because torch and torchao have classes of their own.
_OBSERVERS = frozenset({"ObserverBase", "FakeQuantizeBase"})
# The operators between floating-point and quantised values in a program of ``torch.export``.
QUANTIZED_NAMESPACE = "quantized_decomposed."
QUANTIZE = f"{QUANTIZED_NAMESPACE}quantize_per_tensor.default"
DEQUANTIZE = f"{QUANTIZED_NAMESPACE}dequantize_per_tensor.default"
DEQUANTIZE_CHANNELS = f"{QUANTIZED_NAMESPACE}dequantize_per_channel.default"


def all_nodes(module: Any) -> Iterator[Any]:
    """The nodes of a graph and of the graphs inside of it (branches, regions of autocast)."""
    import torch

    for part in module.modules():
        if isinstance(part, torch.fx.GraphModule):
            yield from part.graph.nodes


def is_mutable(node: Any) -> bool:
    """Whether a node calls an operator that writes to an argument."""
    schema = getattr(node.target, "_schema", None)
    return node.op == "call_function" and schema is not None and bool(schema.is_mutable)


def operator_name(node: Any) -> str:
    """The node's operator without its overload, as a program has it: ``aten::add``; empty for another node."""
    return str(getattr(getattr(node.target, "_schema", None), "name", ""))


def is_observer(module: Any) -> bool:
    """Whether a module observes values, or pretends to quantise them, as a graph does before it is converted."""
    return bool(_OBSERVERS & {kind.__name__ for kind in type(module).__mro__})


def mark_key() -> str:
    """Under which of a node's custom notes Arm's quantisers leave whether they marked the node."""
    from executorch.backends.arm.common.annotation_meta import ArmAnnotationInfo

    return str(ArmAnnotationInfo.CUSTOM_META_KEY)


def take_place(program: Any, old: Any, new: Any) -> None:
    """Let the node `new` of an ``ExportedProgram`` take the place of `old`, which goes."""
    old.replace_all_uses_with(new)
    rename_output(program, old, new)
    old.graph.erase_node(old)


def stored_values(program: Any, *, buffers: bool = True) -> dict[Any, Any]:
    """The parameters and constants of an ``ExportedProgram`` that no inference changes, by their nodes, and its
    `buffers` likewise."""
    signature = program.graph_signature
    targets = {**signature.inputs_to_parameters, **signature.inputs_to_lifted_tensor_constants}
    if buffers:
        targets |= signature.inputs_to_buffers
    written = set(signature.buffers_to_mutate.values())
    held = {**program.constants, **program.state_dict}
    found = {}
    for node in program.graph.find_nodes(op="placeholder"):
        target = targets.get(node.name)
        if target is not None and target not in written:
            found[node] = held[target].detach()
    return found


def add_constant(program: Any, name: str, value: Any) -> Any:
    """A node that gives `value`, a tensor that an ``ExportedProgram`` holds from now on, called like `name`."""
    import torch
    from executorch.backends.transforms.utils import create_constant_placeholder
    from torch.export.graph_signature import InputKind

    taken = {node.name for node in program.graph.nodes} | program.state_dict.keys()
    name = next(found for found in (name, *(f"{name}_{n}" for n in range(len(taken)))) if found not in taken)
    stored = value.detach().clone(memory_format=torch.contiguous_format)
    with program.graph.inserting_before(next(iter(program.graph.nodes))):
        return create_constant_placeholder(program, program.graph, name, InputKind.BUFFER, stored, True)


def rename_output(program: Any, old: Any, new: Any) -> None:
    """Let the outputs of an ``ExportedProgram`` that are called like `old` be called like `new`."""
    for row in program.graph_signature.output_specs:
        if row.arg.name == old.name:
            row.arg.name = new.name


def is_quantize(node: Any) -> bool:
    """Whether `node` quantises a tensor with one scale."""
    return str(node.target) == QUANTIZE


def is_dequantize(node: Any) -> bool:
    """Whether `node` makes floating-point values of a tensor with one scale."""
    return str(node.target) == DEQUANTIZE


def output_quantisation(program: Any, index: int) -> tuple[Quantisation | None, str]:
    """How `program` quantises its output `index`, or why that is not known."""
    name = program.graph_signature.user_outputs[index]
    node = next((node for node in program.graph.nodes if node.name == name), None)
    if node is None or not is_dequantize(node):
        return None, "the program's last operation for this output does not dequantise it with a fixed scale"
    scale, zero_point, _, _, dtype = node.args[1:6]
    return Quantisation(float(scale), int(zero_point), str(dtype).removeprefix("torch.")), ""


def reachable(start: Any, following: Callable[[Any], Iterable[Any]]) -> Iterator[Any]:
    """`start`, and what can be reached from it by steps to what is `following`, the nearest first and each once."""
    pending, seen = [start], set()
    while pending:
        current = pending.pop(0)
        if current not in seen:
            seen.add(current)
            yield current
            pending += following(current)
