"""torch.fx modules that write their Python code when somebody asks for it, not each time their graph changes.

ExecuTorch 1.5.1 runs some 150 passes over a graph. After each one torch generates and compiles the source of a
`forward` that nobody calls: the next pass reads the graph. Here the module only notes that its code is out of date.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

_GENERATED = ("_code", "_lineno_map", "_prologue_start")  # what torch's `recompile` leaves at a module


class _Forward:
    """In the place of a module's `forward` until somebody looks at it."""

    def __init__(self, module: Any, write: Callable[[Any], Any]) -> None:
        self._module, self._write = weakref.ref(module), write

    def __get__(self, instance: Any, owner: type) -> Any:
        module = self._module() if instance is None else instance
        self._write(module)
        return getattr(owner if instance is None else instance, "forward")  # noqa: B009 - it is another one now


class _Attribute:
    """In the place of a class's attribute `name`, which its modules have once their code is written."""

    def __init__(self, name: str, write: Callable[[Any], Any]) -> None:
        self._name, self._write = name, write

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None or not isinstance(vars(type(instance)).get("forward"), _Forward):
            raise AttributeError(self._name)
        self._write(instance)
        return vars(instance)[self._name]


class _Code:
    """In the place of what `recompile` returns."""

    def __init__(self, module: Any, write: Callable[[Any], Any]) -> None:
        self._module, self._write = module, write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._write(self._module), name)


@contextlib.contextmanager
def written_on_demand() -> Iterator[None]:
    """While the block runs, graph modules write their code on demand. Those of the block go on to do so after it."""
    from torch.fx import GraphModule
    from torch.fx.graph import _PyTreeCodeGen

    write, reduce = GraphModule.recompile, GraphModule.__reduce__

    def recompile(self: Any) -> Any:
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec, self._out_spec = codegen.pytree_info.in_spec, codegen.pytree_info.out_spec
        for name in _GENERATED:
            vars(self).pop(name, None)
        type(self).forward = _Forward(self, write)
        self._recompile_submodules()
        return _Code(self, write)

    def reduce_with_code(self: Any) -> Any:
        write(self)
        return reduce(self)

    GraphModule.recompile, GraphModule.__reduce__ = recompile, reduce_with_code
    for name in _GENERATED:
        setattr(GraphModule, name, _Attribute(name, write))
    try:
        yield
    finally:
        GraphModule.recompile, GraphModule.__reduce__ = write, reduce
