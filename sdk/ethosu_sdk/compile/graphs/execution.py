"""Models and graphs executed in PyTorch, as a whole or node by node with every value recorded."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ethosu_sdk.base import plain_text
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.compile import model_errors
from ethosu_sdk.compile.graphs.fx import is_observer
from ethosu_sdk.compile.graphs.source_lines import last_return

Tensors = tuple[Any, ...]
Replacement = Callable[[Any], Callable[..., Any] | None]  # what a node calls in place of its target, or None


def run_eager(module: Any, inputs: Tensors) -> Tensors:
    """The outputs of `module` as a flat tuple of tensors. InputError when it fails or returns something else."""
    from torch.utils import _pytree

    return flat_outputs(_pytree.tree_leaves(call_module(module, inputs)), module)


def call_module(module: Any, inputs: Tensors) -> Any:
    """What `module` returns for copies of `inputs`, which it may write to. InputError when it fails."""
    import torch

    try:
        with torch.no_grad():
            return module(*(item.clone() for item in inputs))
    except Exception as error:
        shapes = ", ".join(f"{str(item.dtype).removeprefix('torch.')} {tuple(item.shape)}" for item in inputs)
        words, hint = model_errors.explained(plain_text.error(error), error)
        raise InputError(
            f"the model's forward failed on the example inputs ({shapes}): {words}", hint
        ) from error


def flat_outputs(leaves: Sequence[Any], module: Any = None) -> Tensors:
    """The leaves of what `module` returned, as tensors. InputError with the line for something else."""
    import torch

    wrong = [type(item).__name__ for item in leaves if not isinstance(item, torch.Tensor)]
    if wrong or not leaves:
        place = None if module is None else last_return(module)
        raise InputError(
            f"the model's forward returns {f'a value of type {wrong[0]}' if wrong else 'nothing'}"
            + (f" at {place}" if place else "")
            + ": the outputs of a program are tensors",
            "return only tensors, alone or in tuples, lists and dicts",
        )
    return tuple(leaves)


def observer_of(graph_module: Any, node: Any) -> Any | None:
    if node.op != "call_module":
        return None
    module = graph_module.get_submodule(node.target)
    return module if is_observer(module) else None


def run_graph(
    graph_module: Any,
    inputs: Tensors,
    *,
    note: Callable[[Any, Any], None] | None = None,
    observe: Callable[[Any, Any, Any], Any] | None = None,
) -> Tensors:
    """The flat outputs of a graph. Each node's result goes to `note`. `observe` gives the result of an observer from
    its node, itself and the value; without it, an observer gives a fresh copy, as quantise and dequantise do. No
    observer learns anything."""
    import torch
    from torch.utils import _pytree

    class Interpreter(torch.fx.Interpreter):  # type: ignore[misc]
        def run_node(self, node: Any) -> Any:
            observer = observer_of(graph_module, node)
            if observer is None:
                result = super().run_node(node)
            else:
                value = self.fetch_args_kwargs_from_env(node)[0][0]
                result = value.clone() if observe is None else observe(node, observer, value)
            if note is not None:
                note(node, result)
            return result

    with torch.no_grad():
        result = Interpreter(graph_module).run(*(item.clone() for item in inputs))
    return tuple(item.detach().clone() for item in _pytree.tree_leaves(result))


@dataclass
class RecordedValues:
    """Values by shape and type, to look one up, and those of nodes by name, as they are in the end."""

    by_form: dict[Any, list[Any]] = field(default_factory=dict)
    by_node: dict[str, Any] = field(default_factory=dict)

    def add(self, value: Any) -> None:
        """Keep a copy of every tensor in `value`."""
        for leaf in tensors_of(value):
            self.by_form.setdefault((leaf.shape, leaf.dtype), []).append(leaf.detach().clone())

    def note(self, node: Any, value: Any) -> None:
        """Keep the value of a node, and itself, so that what is written to it later is seen."""
        self.add(value)
        self.by_node[node.name] = value

    def hold(self, value: Any, close: Callable[[Any, Any], bool]) -> bool:
        """Whether a tensor like `value` is among them."""
        return any(close(value, other) for other in self.by_form.get((value.shape, value.dtype), ()))


def eager_values(module: Any, inputs: Tensors) -> RecordedValues:
    """Every value that a module computes, at the level of PyTorch's dispatcher."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    values = RecordedValues()

    class Watch(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            del types
            result = function(*args, **(kwargs or {}))
            values.add(result)
            return result

    with torch.no_grad(), Watch():
        module(*(item.clone() for item in inputs))
    return values


def tensors_of(value: Any) -> Iterator[Any]:
    import torch
    from torch.utils import _pytree

    return (leaf for leaf in _pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor))


@contextlib.contextmanager
def state_kept(module: Any) -> Iterator[Callable[[], bool]]:
    """Give the module's buffers their values back after the block, which gets a function: whether they changed."""
    import torch

    before = [(buffer, buffer.clone()) for buffer in module.buffers()]
    try:
        yield lambda: not all(torch.equal(buffer, copy) for buffer, copy in before)
    finally:
        with torch.no_grad():
            for buffer, copy in before:
                if not torch.equal(buffer, copy):  # a constant may be expanded, and takes no writes
                    buffer.copy_(copy)


@contextlib.contextmanager
def targets_replaced(module: Any, replacement: Replacement) -> Iterator[None]:
    """While the block runs, nodes of `module` and of the branches in it call what `replacement` says."""
    from torch.fx import GraphModule

    graphs = [part for part in module.modules() if isinstance(part, GraphModule)]
    # All of the answers first: what a node becomes may depend on the targets of others.
    targets = [(node, replacement(node)) for graph_module in graphs for node in graph_module.graph.nodes]
    before = [(node, node.target) for node, target in targets if target is not None]

    def give(rows: Iterable[tuple[Any, Any]]) -> None:
        for node, target in rows:
            node.target = target
        for graph_module in graphs:
            graph_module.recompile()

    give((node, target) for node, target in targets if target is not None)
    try:
        yield
    finally:
        give(before)
