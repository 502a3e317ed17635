"""Runs the rewrites of :mod:`ethosu_sdk.compile.rewrite.table`, each at its moment."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from ethosu_sdk.compile.rewrite import table
from ethosu_sdk.compile.rewrite.before_quantisation import Goal, make_faster, replace_operators
from ethosu_sdk.compile.rewrite.graph_passes import edge_pass_class, tosa_pass_class
from ethosu_sdk.compile.rewrite.table import CORES, Moment, Rewrite

Tensors = tuple[Any, ...]
# A rewrite that was made for speed, the meta data of the node in whose place, and that node's operator.
Taken = tuple[Rewrite, dict[str, Any], str]


def functions_at(moment: Moment, target: str = "") -> list[Any]:
    """What the rewrites of a moment for `target` are, in order."""
    return [function_of(row) for row in table.REWRITES if row.moment is moment and row.is_for(target)]


def function_of(row: Rewrite) -> Any:
    """The function of a row, or its choices of functions by operator."""
    module, _, name = row.name.partition(".")
    return getattr(importlib.import_module(f"{__package__}.{module}"), name)


def rewrite_exported(program: Any) -> Any:
    """An ``ExportedProgram``, as it came from torch, after the first rewrites."""
    for change in functions_at(Moment.EXPORTED):
        program = change(program)
    return program


def rewrite_float(program: Any, goal: Goal, samples: Sequence[Tensors]) -> tuple[Any, list[Taken]]:
    """An ``ExportedProgram`` that is ready to be lowered, or quantised with `samples` of its inputs, as `goal` says;
    and what was rewritten for speed."""
    choices: dict[str, Any] = {}
    for change in functions_at(Moment.FLOAT):
        if isinstance(change, dict):
            choices |= change
        else:
            program = change(program)
    rows = [row for row in table.REWRITES if row.moment is Moment.FASTER and _is_for(row, goal)]
    passing = {name for row in rows if row.first for name in function_of(row)}
    choices = {name: choice for name, choice in choices.items() if name not in passing}
    program = replace_operators(program, choices, goal.target, quantized=goal.quantized)
    taken: list[Taken] = []
    for row in rows:
        change = function_of(row)
        made = change(program, goal) if callable(change) else make_faster(program, change, goal)
        if made:
            program.graph.eliminate_dead_code()
            program.graph_module.recompile()
        taken += [(row, meta, name) for meta, name in made]
    for change in functions_at(Moment.SAMPLED) if goal.quantized else ():
        program = change(program, samples)
    return program, taken


def _is_for(row: Rewrite, goal: Goal) -> bool:
    """Whether a rewrite for speed is wanted, and for the NPU of `goal`, or says that it is for processors too."""
    if goal.as_written:
        return False
    npu = goal.delegate_to
    return row.is_for(npu.name) if npu is not None else CORES[0] in row.targets


def rewrite_for_observers(module: Any, spec: Any, observe: Callable[[Any], Any]) -> Any:
    """`module` with observers, which `observe` puts in; for the NPU of `spec`, ExecuTorch's description of it, or
    with None for a processor."""
    target = CORES[0] if spec is None else spec.target
    for change in functions_at(Moment.OBSERVED, target):
        change(module)
    with ExitStack() as stack:
        after = [change(module) for change in functions_at(Moment.PREPARED, target)]
        for context in functions_at(Moment.QUANTISER, target):
            stack.enter_context(context())
        prepared = observe(module)
    for change in after:
        prepared = change(prepared)
    return prepared


def rewrite_quantised(program: Any, inputs: Tensors) -> Any:
    """An ``ExportedProgram`` that another quantiser than Arm's made, with all that the Arm backend needs."""
    for change in functions_at(Moment.QUANTISED):
        program = change(program, inputs)
    return program


def rewrite_converted(program: Any, target: str) -> Any:
    """A quantised ``ExportedProgram`` as it is lowered for the NPU of that name."""
    for change in functions_at(Moment.CONVERTED, target):
        program = change(program)
    return program


@contextmanager
def rewrites_installed(spec: Any = None) -> Iterator[None]:
    """While the block runs, what is lowered in this process for `spec`, ExecuTorch's description of an NPU, is
    rewritten on the way to Vela. ExecuTorch keeps additional passes in a table of the process; it is left as it was
    found."""
    from executorch.backends.arm import _passes
    from executorch.backends.arm._passes import arm_pass_manager as manager

    target = "" if spec is None else spec.target
    registered = manager._registered_pass_insertions
    found = {
        kind: replace(added, before_passes=list(added.before_passes), after_passes=list(added.after_passes))
        for kind, added in registered.items()
    }
    for row in table.REWRITES:
        if row.before and row.is_for(target):
            manager.register_pass_insertions_before(getattr(_passes, row.before), [_pass_of(row)])
    try:
        with ExitStack() as stack:
            for context in functions_at(Moment.BACKEND, target):
                stack.enter_context(context())
            yield
    finally:
        registered.clear()
        registered.update(found)


def _pass_of(row: Rewrite) -> Any:
    """ExecuTorch's pass of a row, such as ``FlattenSlicesPass``."""
    name = row.name.partition(".")[2]
    if name.startswith("make_"):
        return function_of(row)()
    make = tosa_pass_class if row.moment is Moment.TOSA else edge_pass_class
    return make(f"{name.title().replace('_', '')}Pass", function_of(row))()


def rewrite_on_cpu(edge: Any, core: str) -> Any:
    """`edge`, the program manager of a method, for the kernels of the processor `core` outside of its delegates."""
    for change in functions_at(Moment.ON_CPU):
        edge = change(edge, core)
    return edge


def rewrite_lowered(programs: Sequence[Any]) -> None:
    """Change the edge programs of all methods of one `.pte` in place."""
    for change in functions_at(Moment.LOWERED):
        change(programs)


def rewrite_for_emission(program: Any) -> None:
    """Change an edge program in place before ExecuTorch writes it down."""
    for change in functions_at(Moment.EMITTED):
        change(program)
