"""Checks the program itself, a JSON object of torch's export schema (``torch/_export/serde/schema.py``).

Whatever torch turns into source code, looks up or evaluates must be of the plain form that a network has: by the key
it stands under, every text is a name, an operator, an expression or a tree of inputs. A text under an unknown key
must be plain too, so that what a later schema adds is not let through by accident.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from ethosu_sdk.aot.model.saved_program import expressions
from ethosu_sdk.aot.model.saved_program.finding import UnsafeError, plain, shown

_MAX_PLAIN = 4096
# Nothing that ends a literal, a line or a statement of Python.
_PLAIN = re.compile(r"[\w.:+/@<>=,\- ()\[\]|*~%$&!?]*")
_OPERATOR = re.compile(r"torch\.ops\.([a-z][a-z0-9_]*)\.([A-Za-z0-9_]+)(?:\.([A-Za-z0-9]\w*))?", re.ASCII)


def check(name: str, program: dict[str, Any]) -> None:
    """UnsafeError that names the member `name` and the first text in `program` that torch could run as code."""
    pending: list[tuple[str, Any, bool]] = [("", program, False)]
    while pending:  # no recursion: JSON may be deeper than Python's stack
        key, value, in_node = pending.pop()
        if isinstance(value, dict):
            for inner, part in value.items():
                if inner == "metadata" and key in ("nodes", "graph_module"):
                    continue  # texts about where a node comes from: torch keeps them, and shows them
                check_plain(name, inner)
                _refuse_objects(inner, part, name)
                pending.append((inner, part, in_node or (key, inner) == ("graph", "nodes")))
        elif isinstance(value, list):
            pending += ((key, part, in_node) for part in value)
        elif isinstance(value, str):
            _check_text(key, value, in_node, name)


def check_plain(name: str, text: str) -> None:
    """UnsafeError unless `text`, in the member `name`, could stand in a Python string of any kind."""
    if len(text) > _MAX_PLAIN or not _PLAIN.fullmatch(text):
        raise UnsafeError(f"{name}: the text {shown(text)} has characters that are not allowed in names")


def _check_text(key: str, text: str, in_node: bool, name: str) -> None:
    if in_node and key in ("as_string", "as_strings"):
        return  # an operator's argument, which torch puts into source code with repr()
    known = _CHECKS.get(key)
    if known is None:
        check_plain(name, text)
        return
    try:
        known(text)
    except UnsafeError as finding:
        raise UnsafeError(f"{name}: {finding}") from finding


def _refuse_objects(key: str, value: Any, name: str) -> None:
    if key in ("as_custom_obj", "custom_obj") or (key == "custom_obj_values" and value):
        raise UnsafeError(f"{name}: the program takes an object of a custom class ({key})")


def _check_name(text: str) -> None:
    if text and not (text.isascii() and text.isidentifier()):
        raise UnsafeError(
            f"the name {shown(text)} is not a Python identifier, and torch would insert it into source code"
        )


def _check_operator(text: str) -> None:
    match = _OPERATOR.fullmatch(text)
    namespace, operator, overload = match.groups() if match else ("", "", None)
    if namespace == "higher_order":
        good = operator in plain("operators", "higher_order") and overload is None
    else:
        hidden = operator.startswith("__") and operator not in plain("operators", "with_underscores")
        refused = operator in plain("operators", "refused") or overload in plain(
            "operators", "refused_overloads"
        )
        good = namespace in plain("operators", "namespaces") and not hidden and not refused
    if not good and text not in plain("operators", "arithmetic"):
        raise UnsafeError(
            f"the program calls {shown(text)}, which is not one of the allowed operators on tensors; if another "
            "package defines it, give a FILE.py that imports that package"
        )


def _check_tree(text: str) -> None:
    try:
        _, tree = json.loads(text)
        nodes = [tree]
        for node in nodes:  # grows while it is walked
            if node["type"] is not None and node["type"] not in plain("trees", "types"):
                raise UnsafeError(
                    f"the inputs' tree has the type {shown(node['type'])}, which is not a plain container"
                )
            _check_context(node["context"])
            nodes += node["children_spec"]
        _check_keywords(tree)
    except (ValueError, TypeError, KeyError, RecursionError, IndexError) as error:
        raise UnsafeError(
            f"the inputs' tree {shown(text)} cannot be read ({type(error).__name__})"
        ) from error


def _check_context(context: Any) -> None:
    """Keys of a dict and the like: torch imports what an ``__enum__`` names, and writes keys into guards."""
    pending = [json.loads(context) if isinstance(context, str) and context[:1] in '[{"' else context]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            raise UnsafeError(f"the inputs' tree names an object to import: {shown(value)}")
        if isinstance(value, list):
            pending += value
        elif isinstance(value, str):
            check_plain("the inputs' tree", value)


def _check_keywords(tree: dict[str, Any]) -> None:
    """The names of keyword inputs, which become those of a function's parameters."""
    children = tree["children_spec"]
    if tree["type"] == "builtins.tuple" and len(children) == 2 and children[1]["type"] == "builtins.dict":
        for key in json.loads(children[1]["context"]):
            if isinstance(key, str):
                _check_name(key)


# The key of a text → its check; a text under another key must be plain.
_CHECKS: dict[str, Callable[[str], None]] = {
    "name": _check_name,
    "as_name": _check_name,
    "forward_arg_names": _check_name,
    "target": _check_operator,
    "as_operator": _check_operator,
    "expr_str": expressions.check_symbolic,
    "guards_code": expressions.check_guard,
    "in_spec": _check_tree,
    "out_spec": _check_tree,
}
