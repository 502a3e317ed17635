"""Makes a compilation faster without changing a byte of its result: short cuts for torch, torchao and ExecuTorch."""

from __future__ import annotations

import contextlib
import copy
import functools
import gc
import importlib
import math
import os
import weakref
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

import numpy as np

from ethosu_sdk.compile.tool_hooks import patched

SWITCH = "ETHOSU_SDK_ACCELERATE"  # "0" leaves all of it out: for the test that compares, and to find faults
_COLLECT_AFTER = 100_000  # objects; Python's own 700 spend a tenth of the time in walks over torch's graphs
_GENERATED = ("_code", "_lineno_map", "_prologue_start")  # what torch's `recompile` leaves at a module
_STEP = 1e-5  # of a histogram's sum, by which torchao narrows the range from one side or the other


def _wanted() -> bool:
    return os.environ.get(SWITCH) != "0"


def quick_imports() -> AbstractContextManager[None]:
    """Import ExecuTorch in the block in half the time, unless the environment forbids it: ExecuTorch reads a table
    of its operators with a YAML reader written in Python; this replaces it by the one in C."""
    slow, quick = (importlib.import_module(name) for name in ("ruamel.yaml", "yaml"))
    if not hasattr(quick, "CSafeLoader") or not _wanted():
        return contextlib.nullcontext()
    return patched(slow.YAML, load=lambda self, stream: quick.load(stream, Loader=quick.CSafeLoader))


@contextlib.contextmanager
def accelerated() -> Iterator[None]:
    """Run the block faster, unless the environment forbids it."""
    if not _wanted():
        yield
        return
    with contextlib.ExitStack() as stack:
        gc.freeze()  # what was imported lives as long as the process
        stack.callback(gc.unfreeze)
        stack.enter_context(code_on_demand())
        stack.enter_context(short_cuts())
        stack.enter_context(values_remembered())
        stack.enter_context(ranges_by_bisection())
        stack.enter_context(operators_looked_up_once())
        yield


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage less often in the block, unless the environment forbids it."""
    before = gc.get_threshold()
    if _wanted():
        gc.set_threshold(_COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextlib.contextmanager
def code_on_demand() -> Iterator[None]:
    """While the block runs, torch.fx modules write their Python code when somebody asks for it, not each time their
    graph changes. Those of the block go on to do so after it. ExecuTorch 1.5.1 runs some 150 passes over a graph.
    After each one torch generates and compiles the source of a `forward` that nobody calls: the next pass reads the
    graph. Here a module only notes that its code is out of date."""
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

    for name in _GENERATED:
        setattr(GraphModule, name, _Attribute(name, write))
    with patched(GraphModule, recompile=recompile, __reduce__=reduce_with_code):
        yield


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
    def __init__(self, module: Any, write: Callable[[Any], Any]) -> None:
        self._module, self._write = module, write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._write(self._module), name)


def operators_looked_up_once() -> AbstractContextManager[None]:
    """Look all composite operators up when their list has changed, and not otherwise, in the block. torch.export
    looks each up by name for every decomposition, once for each of some forty name spaces (torch/_export/utils.py of
    torch 2.13.0), a fifth of the time of lowering. It only fills ``torch.ops``."""
    import torch
    from torch._export import utils

    look_up = utils._materialize_cpp_cia_ops
    seen: list[str] = []

    def look_up_changed() -> None:
        registered = torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
        if registered != seen:
            look_up()
            seen[:] = registered

    return patched(utils, _materialize_cpp_cia_ops=look_up_changed)


def ranges_by_bisection() -> AbstractContextManager[None]:
    """While the block runs, torchao's histogram observers find their ranges quickly, and the same ones bit for bit.
    torchao 0.18 reads a cumulated histogram one tensor element at a time: a fifth of the compilation of a recurrent
    network. Here the bins are numbers, found by bisection; a histogram that is not of finite float32 counts is
    searched as before."""
    import torch
    from torchao.quantization.pt2e.observer import HistogramObserver

    search = HistogramObserver._non_linear_param_search

    def quick_search(observer: Any) -> tuple[Any, Any]:
        counts = observer.histogram
        plain = counts.dtype == torch.float32 and len(counts) == observer.bins
        if not (plain and bool((counts >= 0).all()) and math.isfinite(counts.sum().item())):
            found: tuple[Any, Any] = search(observer)
            return found
        first, last = _range(observer)
        width = (observer.max_val - observer.min_val) / observer.bins
        return observer.min_val + width * first, observer.min_val + width * (last + 1)

    return patched(HistogramObserver, _non_linear_param_search=quick_search)


def _range(observer: Any) -> tuple[int, int]:
    """The first and last bin of the range with least error, as torchao finds it, with quantile limits in float32."""
    total = observer.histogram.sum().item()
    sums = observer.histogram.cumsum(dim=0).tolist()
    low, high, first, last, least = 0.0, 1.0, 0, observer.bins - 1, math.inf
    while low < high:
        next_low, next_high = low + _STEP, high - _STEP
        left = bisect_left(sums, float(np.float32(next_low * total)), first, last)
        right = bisect_right(sums, float(np.float32(next_high * total)), first + 1, last + 1) - 1
        if left - first > last - right:
            low, bins = next_low, (left, last)
        else:
            high, bins = next_high, (first, right)
        if bins == (first, last):
            continue
        error = observer._compute_quantization_error(*bins)
        if error > least:
            break
        least = error
        first, last = bins
    return first, last


def values_remembered() -> AbstractContextManager[None]:
    """While the block runs, a pass takes the value at a node instead of computing the same again. Most of
    ExecuTorch's passes make a new graph by running the old one with fake tensors, and nearly all of its nodes come
    out as they went in. What was computed for a node by the same operator on the very same values is taken again; the
    graphs are the same."""
    from executorch.exir.pass_base import _ExportPassBase

    computed, original = _Computed(), _ExportPassBase._fx

    def run(self: Any, kind: str, target: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        call = computed.call(target, args, kwargs, self.fake_tensor_mode) if kind == "call_function" else None
        if call is None:
            return original(self, kind, target, args, kwargs, meta)
        result = computed.result(meta.data.get("val"), call[0])
        interpreter = self.interpreter
        if result is not None:
            self.interpreter = SimpleNamespace(call_function=lambda *_: result)
        try:
            made = original(self, kind, target, args, kwargs, meta)
        finally:
            self.interpreter = interpreter
        if result is None:
            computed.keep(made, meta.data.get("val"))
        computed.add(made.node.meta["val"], made.data, *call)
        return made

    return patched(_ExportPassBase, _fx=run)


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
        """Note that the call `key` made `value` from `result`; all are kept, for an identity ends with its object."""
        leaves = result if isinstance(result, (tuple, list)) else (result,)
        if all(self._is_plain(leaf) for leaf in leaves):
            self._calls[id(value)] = (key, result, value, tensors)

    def keep(self, made: Any, before: Any) -> None:
        """Let a node that was `made` anew have its value from `before`, when they differ in identity alone."""
        after = made.data
        if self._is_plain(after) and self._is_plain(before) and _facts(after) == _facts(before):
            made.data = made.node.meta["val"] = before

    def _is_plain(self, value: Any) -> bool:
        return type(value) is self._fake and value.constant is None and not value._has_symbolic_sizes_strides

    def _is_pure(self, target: Any) -> bool:
        if not isinstance(target, self._operators):
            return False
        if target not in self._pure:
            operator = target._op if isinstance(target, self._operators[1]) else target
            schema = getattr(operator, "_schema", None)
            random = self._random in getattr(operator, "tags", ())
            self._pure[target] = schema is not None and not schema.is_mutable and not random
        return self._pure[target]

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
    members = ("fake_mode", "dtype", "device", "layout", "shape", "requires_grad")
    calls = (tensor.stride(), tensor.storage_offset(), tensor._is_view())
    return (*(getattr(tensor, name) for name in members), *calls)


@functools.cache
def _plain_types() -> frozenset[type]:
    """Types of arguments that torch.fx keeps as they are."""
    import torch

    own = (torch.dtype, torch.device, torch.layout, torch.memory_format)
    return frozenset((int, float, bool, str, type(None), *own))


@contextlib.contextmanager
def short_cuts() -> Iterator[None]:
    """While the block runs, the most frequent arguments and values take a short way into the graph."""
    from executorch.exir import pass_base
    from executorch.exir.pass_base import ExportPass, _ExportPassBase
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.fx import Interpreter, traceback

    tracer, other_tracer = _ExportPassBase.ExportTracer, ExportPass.ExportTracer
    set_metadata = tracer.set_metadata

    def run_named(self: Any, node: Any) -> Any:
        # Without the text of the whole node, which ExecuTorch keeps for messages about dynamic shapes alone.
        self.node, self.callback.node_debug_str = node, node.name
        return Interpreter.run_node(self, node)

    def set_value(self: Any, node: Any, value: Any) -> None:
        if type(value) is FakeTensor:
            node.meta["val"], node.meta["tensor_meta"] = value, None
        else:
            set_metadata(self, node, value)

    # A node's history is copied for each node that is made from it. Nobody changes its members.
    copies = SimpleNamespace(copy=copy.copy, deepcopy=list)
    create_arg, other_create_arg = _short(tracer.create_arg), _short(other_tracer.create_arg)
    with (
        patched(tracer, create_arg=create_arg, set_metadata=set_value),
        patched(other_tracer, create_arg=other_create_arg),
        patched(_ExportPassBase.ExportInterpreter, run_node=run_named),
        patched(traceback, copy=copies),
        patched(pass_base, pytree=_Trees(pass_base.pytree)),
    ):
        yield


def _short(creator: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """`creator`, a tracer's way to make a node's argument, with the most frequent kinds first."""
    from torch.fx.immutable_collections import immutable_list
    from torch.fx.proxy import Proxy

    plain = _plain_types()

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
    """torch's `pytree` for ExecuTorch's passes: containers without the description of their structure."""

    def __init__(self, pytree: Any) -> None:
        from torch.fx.immutable_collections import immutable_list

        self._pytree = pytree
        self._sequences = {tuple: tuple, list: list, immutable_list: immutable_list}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pytree, name)

    def tree_map_only(self, kind: Any, function: Callable[[Any], Any], tree: Any, **options: Any) -> Any:
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
