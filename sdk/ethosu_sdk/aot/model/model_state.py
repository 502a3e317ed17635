"""State that a model changes itself: kept in buffers of the program, or refused with the model's line.

An exported program carries the buffers of a module. What else a model changes, it carries as the constant that it was
when it was traced: attributes that hold a tensor, parameters, numbers, lists. So a copy of the model is executed and
compared with the one that never was; tensors become buffers, and the rest is refused.
"""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ethosu_sdk.aot.graph.source_lines import SourceFinder
from ethosu_sdk.errors import InputError, SdkError

BUFFER, PARAMETER, TENSOR, OTHER = "buffer", "parameter", "tensor", "other"
_DEEPEST = 8
_HINT = (
    "keep it in a buffer: self.register_buffer('{name}', torch.zeros(…)) in __init__, written in forward; or make "
    "it an input and an output of the model"
)


@dataclass(frozen=True)
class Change:
    """A value that an execution changed: `name` of an attribute of the submodule `module` (empty for the model), what
    `kind` of thing it is, and the class of the new value."""

    module: str
    name: str
    kind: str
    type_name: str

    @property
    def path(self) -> str:
        """The name as in a state dict."""
        return f"{self.module}.{self.name}" if self.module else self.name


def changes(before: Any, after: Any) -> list[Change]:
    """What differs between a module and its copy that was executed."""
    import torch

    own = set(vars(torch.nn.Module()))
    found = []
    executed = dict(after.named_modules())
    for path, module in before.named_modules():
        other = executed.get(path)
        if other is None:
            continue
        found += [
            Change(path, name, kind, type(values[1]).__name__)
            for kind, name, values in _pairs(module, other, own)
            if not _same(*values, 0, set())
        ]
    return found


def _pairs(module: Any, other: Any, own: set[str]) -> Iterator[tuple[str, str, tuple[Any, Any]]]:
    import torch

    for kind, registry in ((BUFFER, "_buffers"), (PARAMETER, "_parameters")):
        before, after = getattr(module, registry), getattr(other, registry)
        for name in {**before, **after}:
            yield kind, name, (before.get(name), after.get(name))
    before, after = vars(module), vars(other)
    for name in {**before, **after}:
        if name not in own:
            values = before.get(name), after.get(name)
            both = all(isinstance(value, torch.Tensor) for value in values)
            yield TENSOR if both else OTHER, name, values


def _same(one: Any, other: Any, depth: int, seen: set[int]) -> bool:
    """Whether two values are equal as far as they are data; objects of an unknown kind are compared by members."""
    if id(one) in seen or depth > _DEEPEST:
        return True
    if type(one) is not type(other):
        return False
    return next(same(one, other, depth, seen) for kind, same in _comparisons() if kind(one))


def _comparisons() -> Iterator[tuple[Callable[[Any], bool], Callable[[Any, Any, int, set[int]], bool]]]:
    """How values of each kind are compared, the first that fits."""
    import torch

    def is_a(*kinds: type) -> Callable[[Any], bool]:
        return lambda value: isinstance(value, kinds)

    yield is_a(torch.Tensor), lambda one, other, depth, seen: _same_tensors(one, other)
    yield (
        is_a(bool, int, float, complex, str, bytes),
        lambda one, other, depth, seen: repr(one) == repr(other),
    )
    yield is_a(dict), _same_dicts
    yield is_a(list, tuple, deque), _same_items
    yield is_a(set, frozenset), lambda one, other, depth, seen: len(one) == len(other)
    yield is_a(np.ndarray), lambda one, other, depth, seen: one.tobytes() == other.tobytes()
    yield (
        lambda value: (
            hasattr(value, "__dict__") and not inspect.isroutine(value) and not inspect.isclass(value)
        ),
        lambda one, other, depth, seen: _same_dicts(vars(one), vars(other), depth, seen | {id(one)}),
    )
    yield lambda value: True, lambda one, other, depth, seen: True


def _same_dicts(one: Any, other: Any, depth: int, seen: set[int]) -> bool:
    return list(map(repr, one)) == list(map(repr, other)) and _same_items(
        list(one.values()), list(other.values()), depth, seen | {id(one)}
    )


def _same_items(one: Any, other: Any, depth: int, seen: set[int]) -> bool:
    inside = seen | {id(one)}
    return len(one) == len(other) and all(
        _same(a, b, depth + 1, inside) for a, b in zip(one, other, strict=True)
    )


def _same_tensors(one: Any, other: Any) -> bool:
    import torch

    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.is_meta:
        return True
    return torch.equal(one, other) or bool(torch.allclose(one, other, rtol=0.0, atol=0.0, equal_nan=True))


def carried(
    module: Any, found: Sequence[Change], execute: Callable[[Any], None], finder: SourceFinder
) -> list[str]:
    """Make buffers of the tensors in `module` that an execution changes and later ones read; the names of all buffers
    that change.

    `execute` runs a module once. InputError for what no program can carry, with the line that changes it.
    """
    names = []
    for change in found:
        if change.kind in (TENSOR, OTHER) and not _is_read_first(module, change, execute):
            continue  # written anew each time: nothing is carried from one inference to the next
        if change.kind == OTHER:
            raise _refusal(module, change, finder)
        if change.kind != BUFFER:
            _make_buffer(module.get_submodule(change.module), change)
        names.append(change.path)
    return names


def _make_buffer(owner: Any, change: Change) -> None:
    registry = owner._parameters if change.kind == PARAMETER else vars(owner)
    value = registry.pop(change.name)
    owner.register_buffer(change.name, value.detach().clone())


def _is_read_first(module: Any, change: Change, execute: Callable[[Any], None]) -> bool:
    """Whether the second execution reads an attribute before it writes it."""
    trial = copy.deepcopy(module)
    owner = trial.get_submodule(change.module)
    first: list[str] = []

    class Watched(type(owner)):  # type: ignore[misc]
        def __getattribute__(self, name: str) -> Any:
            if name == change.name:
                first.append("read")
            return super().__getattribute__(name)

        def __setattr__(self, name: str, value: Any) -> None:
            if name == change.name:
                first.append("write")
            super().__setattr__(name, value)

    execute(trial)
    try:
        owner.__class__ = Watched
        execute(trial)
    except (TypeError, SdkError):  # a class without room for another, or a model that asks for its own class
        return True
    return first[:1] == ["read"]


def _refusal(module: Any, change: Change, finder: SourceFinder) -> InputError:
    owner = module.get_submodule(change.module)
    place = _changing_line(type(owner), change.name, finder)
    where = f" of module '{change.module}'" if change.module else ""
    return InputError(
        f"the model keeps a state in the attribute '{change.name}'{where} ({change.type_name}), which a program "
        "cannot keep from one inference to the next" + (f": {place}" if place else ""),
        _HINT.format(name=change.name),
    )


def _changing_line(kind: type, name: str, finder: SourceFinder) -> str | None:
    """The line outside of ``__init__`` that writes ``self.NAME`` or calls one of its methods."""
    try:
        lines, start = inspect.getsourcelines(kind)
        file = inspect.getsourcefile(kind) or ""
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or function.name == "__init__":
            continue
        found = sorted(
            node.lineno for node in ast.walk(function) if isinstance(node, _CHANGING) and _changes(node, name)
        )
        if found:
            text = lines[found[0] - 1].strip()
            return f"{finder.named(file)[1]}, line {start + found[0] - 1}: `{text}`"
    return None


_CHANGING = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Call)


def _changes(node: ast.AST, name: str) -> bool:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [node.target]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        targets = [node.func.value]
    return any(_is_attribute(part, name) for target in targets for part in ast.walk(target))


def _is_attribute(node: ast.AST, name: str) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )
