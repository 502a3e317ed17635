"""From a module to an ``ExportedProgram``."""

from __future__ import annotations

from typing import Any

from ethosu_sdk.aot.graph.source_lines import SourceFinder
from ethosu_sdk.aot.lowering.guarding import guarded
from ethosu_sdk.aot.model import shared_buffers
from ethosu_sdk.errors import InputError

Tensors = tuple[Any, ...]


def export(module: Any, inputs: Tensors, finder: SourceFinder | None = None) -> Any:
    """An ``ExportedProgram`` of `module`, which may be one already. `finder` names lines in errors."""
    import torch

    program = module
    if not isinstance(module, torch.export.ExportedProgram):
        copies = tuple(item.clone() for item in inputs)
        program = guarded("torch.export could not trace the model", lambda: _traced(module, copies))
    _check_static(program, finder)
    return program


def _traced(module: Any, inputs: Tensors) -> Any:
    """The exported program of a module.

    Branches need torch's strict mode: the other cannot trace some, and loses the marks by which quantised ones are
    delegated.
    """
    import torch

    try:
        with shared_buffers.assignments_kept(module):
            program = torch.export.export(module, inputs)
    except Exception as error:
        try:
            return torch.export.export(module, inputs, strict=True)
        except Exception:
            raise error from None
    return torch.export.export(module, inputs, strict=True) if has_branches(program) else program


def has_branches(program: Any) -> bool:
    """Whether a program holds ``torch.cond`` or ``while_loop``, whose branches are modules of their own."""
    from torch.ops import higher_order

    branching = (higher_order.cond, higher_order.while_loop)
    return any(node.target in branching for node in program.graph.nodes)


def _check_static(program: Any, finder: SourceFinder | None) -> None:
    """InputError when a shape in `program` is not a fixed one: the NPU's command stream holds numbers."""
    import torch
    from torch.utils import _pytree

    for node in program.graph.nodes:
        for value in _pytree.tree_leaves(node.meta.get("val")):
            if isinstance(value, torch.Tensor) and any(isinstance(n, torch.SymInt) for n in value.shape):
                shape = ", ".join(map(str, value.shape))
                place = finder and node.meta.get("stack_trace") and finder.place(node.meta)
                name = str(node.target) if node.op == "call_function" else f"'{node.name}'"
                raise InputError(
                    f"the model has dynamic shapes: that of {name} is [{shape}]"
                    + (f", at {place}" if place else ""),
                    "export it without dynamic_shapes, and without operators whose result's shape depends on data",
                )
