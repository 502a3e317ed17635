"""Passes that interpret a graph again with less work for each node.

Most of ExecuTorch's passes make a new graph by running the old one with fake tensors, and nearly all of its nodes
come out as they went in. What was computed for a node by the same operator on the very same values is taken again,
and the ways that lead there are shortened; the graphs are the same.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

from ethosu_sdk.aot.graph.patching import patched


class _Known:
    """In the place of the interpreter that would compute a node's value."""

    def __init__(self, result: Any) -> None:
        self._result = result

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The value that is known."""
        del target, args, kwargs
        return self._result


class _Computed:
    """What nodes' values were computed from, by the identity of the value at the node."""

    def __init__(self) -> None:
        from executorch.exir.dialects.edge._ops import EdgeOpOverload
        from executorch.exir.pass_base import ProxyValue
        from torch import Tag
        from torch._ops import OpOverload
        from torch._subclasses.fake_tensor import FakeTensor

        self._operators = (OpOverload, EdgeOpOverload)
        self._fake, self._proxy, self._random = FakeTensor, ProxyValue, Tag.nondeterministic_seeded
        self._calls: dict[int, tuple[Any, ...]] = {}
        self._pure: dict[Any, bool] = {}

    def call(
        self, target: Any, args: Any, kwargs: Any, mode: Any
    ) -> tuple[tuple[Any, ...], list[Any]] | None:
        """What identifies a call, and the tensors in it; None for one that may give another value each time."""
        if not self._is_pure(target):
            return None
        parts: list[Any] = [id(target), id(mode)]
        tensors: list[Any] = [target, mode]
        if self._collect(args, parts, tensors) and self._collect(kwargs, parts, tensors):
            return tuple(parts), tensors
        return None

    def result(self, value: Any, key: tuple[Any, ...]) -> Any:
        """The result of the call that made `value`, when it was the call `key`; else None."""
        found = self._calls.get(id(value))
        return found[1] if found is not None and found[0] == key else None

    def add(self, value: Any, result: Any, key: tuple[Any, ...], tensors: list[Any]) -> None:
        """Note that the call `key` made the node's `value` from `result`. Keeps all of them: an identity ends with
        its object."""
        leaves = result if isinstance(result, (tuple, list)) else (result,)
        if all(self._is_plain(leaf) for leaf in leaves):
            self._calls[id(value)] = (key, result, value, tensors)

    def keep(self, made: Any, before: Any) -> None:
        """Let a node that was `made` anew have its value from `before`, when they differ in nothing but identity:
        what follows it then finds the values it knows."""
        after = made.data
        if self._is_plain(after) and self._is_plain(before) and _facts(after) == _facts(before):
            made.data = made.node.meta["val"] = before

    def _is_plain(self, value: Any) -> bool:
        return type(value) is self._fake and value.constant is None and not value._has_symbolic_sizes_strides

    def _is_pure(self, target: Any) -> bool:
        known = self._pure.get(target) if isinstance(target, self._operators) else False
        if known is None:
            operator = target._op if isinstance(target, self._operators[1]) else target
            schema = getattr(operator, "_schema", None)
            known = (
                schema is not None
                and not schema.is_mutable
                and self._random not in getattr(operator, "tags", ())
            )
            self._pure[target] = known
        return known

    def _collect(self, value: Any, parts: list[Any], tensors: list[Any]) -> bool:
        """Add what identifies `value` to `parts`; False for what is not known to stay what it is."""
        kind = type(value)
        if kind is self._proxy:
            value = value.data
            kind = type(value)
        if kind is self._fake:
            tensors.append(value)
            parts += (kind, id(value))
            return self._is_plain(value)
        if kind in _plain_types():
            parts += (kind, repr(value) if kind is float else value)
            return True
        if isinstance(value, (tuple, list)):
            parts += (kind, len(value))
            return all(self._collect(item, parts, tensors) for item in value)
        if isinstance(value, dict):
            parts += (kind, *value)
            return all(self._collect(item, parts, tensors) for item in value.values())
        return False


def _facts(tensor: Any) -> tuple[Any, ...]:
    """All facts of a fake tensor without symbols."""
    return (
        tensor.fake_mode,
        tensor.dtype,
        tensor.device,
        tensor.layout,
        tensor.shape,
        tensor.stride(),
        tensor.storage_offset(),
        tensor.requires_grad,
        tensor._is_view(),
    )


_PLAIN: set[type] = set()


def _plain_types() -> set[type]:
    """Types of arguments that torch.fx keeps as they are."""
    if not _PLAIN:
        import torch

        _PLAIN.update((int, float, bool, str, type(None), torch.dtype, torch.device, torch.layout))
        _PLAIN.add(torch.memory_format)
    return _PLAIN


def remembered() -> AbstractContextManager[None]:
    """While the block runs, a pass takes the value at a node instead of computing the same again."""
    from executorch.exir.pass_base import _ExportPassBase

    computed, original = _Computed(), _ExportPassBase._fx

    def run(self: Any, kind: str, target: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        call = None
        if kind == "call_function":
            call = computed.call(target, args, kwargs, self.fake_tensor_mode)
        if call is None:
            return original(self, kind, target, args, kwargs, meta)
        known = computed.result(meta.data.get("val"), call[0])
        interpreter = self.interpreter
        if known is not None:
            self.interpreter = _Known(known)
        try:
            made = original(self, kind, target, args, kwargs, meta)
        finally:
            self.interpreter = interpreter
        if known is None:
            computed.keep(made, meta.data.get("val"))
        computed.add(made.node.meta["val"], made.data, *call)
        return made

    return patched(_ExportPassBase, _fx=run)


def _short(creator: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """`creator`, a tracer's way to make a node's argument, with the most frequent kinds first."""
    from torch.fx.immutable_collections import immutable_list
    from torch.fx.proxy import Proxy

    plain = frozenset(_plain_types())

    def create_arg(self: Any, a: Any) -> Any:
        kind = type(a)
        if kind in plain:
            return a
        if kind is Proxy:
            return a.node
        if kind is tuple:
            return tuple([self.create_arg(item) for item in a])
        if kind is list or kind is immutable_list:
            return [self.create_arg(item) for item in a]
        return creator(self, a)

    return create_arg


class _Trees:
    """In the place of torch's `pytree` for ExecuTorch's passes: the containers that arguments are made of without
    the description of their structure; all else as before."""

    def __init__(self, pytree: Any) -> None:
        from torch.fx.immutable_collections import immutable_list

        self._pytree = pytree
        self._sequences = {tuple: tuple, list: list, immutable_list: immutable_list}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pytree, name)

    def tree_map_only(self, kind: Any, function: Callable[[Any], Any], tree: Any, **options: Any) -> Any:
        """`tree` with `function` of each leaf of that kind."""
        if options or type(kind) is not type:
            return self._pytree.tree_map_only(kind, function, tree, **options)
        return self._map(kind, function, tree)

    def _map(self, kind: type, function: Callable[[Any], Any], tree: Any) -> Any:
        own = type(tree)
        if own is kind:
            return function(tree)
        if own in _plain_types():
            return tree
        if own in self._sequences:
            return self._sequences[own]([self._map(kind, function, item) for item in tree])
        if own is dict:
            return {key: self._map(kind, function, item) for key, item in tree.items()}
        return self._pytree.tree_map_only(kind, function, tree)


@contextlib.contextmanager
def short_cuts() -> Iterator[None]:
    """While the block runs, the most frequent arguments and values take a short way into the graph."""
    from executorch.exir import pass_base
    from executorch.exir.pass_base import ExportPass, _ExportPassBase
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.fx import Interpreter, traceback

    tracers = (_ExportPassBase.ExportTracer, ExportPass.ExportTracer)
    creators = [tracer.create_arg for tracer in tracers]
    set_metadata = _ExportPassBase.ExportTracer.set_metadata
    deep, trees = traceback.copy, pass_base.pytree
    interpreter = _ExportPassBase.ExportInterpreter
    run_node = interpreter.run_node

    def run_named(self: Any, node: Any) -> Any:
        # Without the text of the whole node, which ExecuTorch keeps for messages about dynamic shapes alone.
        self.node, self.callback.node_debug_str = node, node.name
        return Interpreter.run_node(self, node)

    def set_value(self: Any, node: Any, value: Any) -> None:
        if type(value) is FakeTensor:
            node.meta["val"], node.meta["tensor_meta"] = value, None
        else:
            set_metadata(self, node, value)

    for tracer, creator in zip(tracers, creators, strict=True):
        tracer.create_arg = _short(creator)
    _ExportPassBase.ExportTracer.set_metadata, interpreter.run_node = set_value, run_named
    # A node's history is copied for each node that is made from it. Nobody changes its members.
    traceback.copy = SimpleNamespace(copy=copy.copy, deepcopy=list)
    pass_base.pytree = _Trees(trees)
    try:
        yield
    finally:
        for tracer, creator in zip(tracers, creators, strict=True):
            tracer.create_arg = creator
        _ExportPassBase.ExportTracer.set_metadata, interpreter.run_node = set_metadata, run_node
        traceback.copy, pass_base.pytree = deep, trees
