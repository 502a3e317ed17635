"""A state that a model keeps outside of its modules: in a global variable, an attribute of a class, a closure."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

from ethosu_sdk.aot.graph.source_lines import SourceFinder
from ethosu_sdk.errors import InputError

_CHANGING = ("append", "appendleft", "extend", "pop", "update", "setdefault")


def refusal(module: Any, finder: SourceFinder) -> InputError:
    """The error for a `module` of which two copies, one after the other, give different outputs."""
    place = next(filter(None, (_changing_line(type(part), finder) for part in module.modules())), "")
    return InputError(
        "the model keeps a state outside of its modules, which a program cannot keep from one inference to the next"
        + (f": {place}" if place else ", or its outputs are random"),
        "keep it in a buffer of the module: self.register_buffer('state', torch.zeros(…)) in __init__, written in "
        "forward; or make it an input and an output of the model",
    )


def _changing_line(kind: type, finder: SourceFinder) -> str:
    """The first line of a class that changes what is neither its instance's nor the function's own."""
    if kind.__module__.partition(".")[0] == "torch":
        return ""
    try:
        lines, start = inspect.getsourcelines(kind)
        file = inspect.getsourcefile(kind) or ""
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return ""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    found = sorted(line for function in functions if function.name != "__init__" for line in _lines(function))
    if not found:
        return ""
    return f"{finder.named(file)[1]}, line {start + found[0] - 1}: `{lines[found[0] - 1].strip()}`"


def _lines(function: ast.FunctionDef) -> list[int]:
    nodes = list(ast.walk(function))
    shared = {name for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    own = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own = (own | {node.arg for node in nodes if isinstance(node, ast.arg)}) - shared
    return [
        target.lineno
        for node in nodes
        for target in _changed(node)
        if (name := _root(target))
        and name not in own
        and (name in shared or not isinstance(target, ast.Name))
    ]


def _changed(node: ast.AST) -> list[ast.expr]:
    """What a statement or a call changes."""
    if isinstance(node, ast.Assign):
        return node.targets
    if isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        return [node.target]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        return [node.func] if name in _CHANGING or (name.endswith("_") and not name.endswith("__")) else []
    return []


def _root(node: ast.expr) -> str:
    """The variable that an attribute, a part of it or what a method of it gives belongs to."""
    while not isinstance(node, ast.Name):
        inner = getattr(node, "value", None) or getattr(node, "func", None)
        if not isinstance(inner, ast.expr):
            return ""
        node = inner
    return node.id
