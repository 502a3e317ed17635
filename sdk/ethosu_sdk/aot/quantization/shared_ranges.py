"""One range for what several methods of a module compute alike, so that all of them round alike.

Each method is calibrated with samples of its own. With ranges of their own, a prefill would leave other values in a
cache than as many steps of a decode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any


def share(prepared: Sequence[Any]) -> None:
    """Let observers at the same place of `prepared`, methods of one module with observers, be one observer.

    A place is the operator that computes a value, by its module and its turn among the same operators there; of an
    input or a buffer it is the operator that takes it. Where two methods have different numbers of an operator in a
    module, its results keep ranges of their own.
    """
    first: dict[Hashable, Any] = {}
    joined = _Joined()
    counts = [_counts(module) for module in prepared]
    common = {key for key in counts[0] if all(row[key] == counts[0][key] for row in counts[1:])}
    for module in prepared:
        for key, observer in _places(module, common):
            known = first.setdefault(key, observer)
            if _alike(known, observer):
                joined.join(known, observer)
    for module in prepared:
        _replace(module, joined)


class _Joined:
    """Sets of observers that are to be one; the first of each stands for it."""

    def __init__(self) -> None:
        self._of: dict[int, Any] = {}

    def find(self, observer: Any) -> Any:
        while id(observer) in self._of:
            observer = self._of[id(observer)]
        return observer

    def join(self, one: Any, other: Any) -> None:
        one, other = self.find(one), self.find(other)
        if one is not other:
            self._of[id(other)] = one


def _alike(one: Any, other: Any) -> bool:
    """Whether two observers of activations may be one: they quantise to the same values, by one scale."""
    import torch

    members = ("dtype", "quant_min", "quant_max", "qscheme")
    return (
        type(one) is type(other)
        and getattr(one, "qscheme", None) in (torch.per_tensor_affine, torch.per_tensor_symmetric)
        and all(getattr(one, name) == getattr(other, name) for name in members)
    )


def _replace(module: Any, joined: _Joined) -> None:
    from torchao.quantization.pt2e import DerivedObserverOrFakeQuantize

    modules = dict(module.named_modules(remove_duplicate=False))
    for target in {node.target for node in module.graph.nodes if node.op == "call_module"}:
        observer = modules[target]
        if isinstance(observer, DerivedObserverOrFakeQuantize):
            observer.obs_or_fqs = [joined.find(row) for row in observer.obs_or_fqs]
        parent, _, name = target.rpartition(".")
        setattr(modules[parent], name, joined.find(observer))


def _places(module: Any, common: set[Hashable]) -> Iterator[tuple[Hashable, Any]]:
    """Each observer of `module` with the places that it is at."""
    modules = dict(module.named_modules(remove_duplicate=False))
    turns: Counter[Hashable] = Counter()
    place_of: dict[Any, tuple[Hashable, int]] = {}
    for node in module.graph.nodes:
        if node.op == "call_function":
            key = _operator(node)
            place_of[node] = (key, turns[key])
            turns[key] += 1
    for node in module.graph.nodes:
        if node.op != "call_module" or not node.all_input_nodes:
            continue
        source = node.all_input_nodes[0]
        observer = modules[node.target]
        if source in place_of:
            key, turn = place_of[source]
            if key in common:
                yield ("result", key, turn), observer
            continue
        for user in node.users:
            key, turn = place_of.get(user, (None, 0))
            if key in common:
                yield ("argument", key, turn, _position(user, node)), observer


def _position(user: Any, node: Any) -> int:
    return next(index for index, given in enumerate(user.all_input_nodes) if given is node)


def _counts(module: Any) -> Counter[Hashable]:
    found: Counter[Hashable] = Counter()
    for node in module.graph.nodes:
        if node.op == "call_function":
            found[_operator(node)] += 1
    return found


def _operator(node: Any) -> Hashable:
    """An operator with the module that calls it."""
    stack = node.meta.get("nn_module_stack") or {}
    path = [row[0] for row in stack.values()][-1:] if isinstance(stack, dict) else []
    return (path[0] if path else "", str(node.target))
