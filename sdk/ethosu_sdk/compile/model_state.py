"""State that a model changes itself: initial values, shared buffers, and changes that are kept or refused by line."""

from __future__ import annotations

import ast
import contextlib
import copy
import inspect
import textwrap
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ethosu_sdk.base.errors import InputError, SdkError
from ethosu_sdk.compile.graphs.source_lines import SourceFinder
from ethosu_sdk.compile.tool_hooks import patched


class InitialState:
    """The buffers of a module as they are now, such as the state of a recurrent network. Every execution in PyTorch
    changes those that the model writes itself, calibration included, and ExecuTorch 1.5.1 leaves their values out of
    a `.pte` unless it is told otherwise. The program must begin where the model began."""

    def __init__(self, module: Any) -> None:
        named = module.named_buffers(remove_duplicate=False)
        self._values = {name: buffer.detach().clone() for name, buffer in named}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._values)

    def restore(self, module: Any) -> None:
        """Give the buffers of `module`, which is the same one or was made of it, these values again."""
        import torch

        with torch.no_grad():
            for name, buffer in module.named_buffers():
                value = self._values.get(name)
                if value is not None and (value.shape, value.dtype) == (buffer.shape, buffer.dtype):
                    buffer.copy_(value)

    @contextlib.contextmanager
    def restored(self, module: Any) -> Iterator[None]:
        """Run the block from this state, and leave `module` in it."""
        self.restore(module)
        try:
            yield
        finally:
            self.restore(module)


@contextlib.contextmanager
def one_state(modules: Sequence[Any], names: Collection[str]) -> Iterator[None]:
    """While the block runs, each buffer of `names` is one tensor in all `modules`; then each has its own again."""
    import torch

    first: dict[str, Any] = {}
    shared = []
    for module in modules:
        for name, buffer in [row for row in module.named_buffers() if row[0] in names]:
            one = first.setdefault(name, buffer)
            if one is not buffer and (one.shape, one.dtype) == (buffer.shape, buffer.dtype):
                shared.append((module, name, buffer))
                _set_buffer(module, name, one)
    try:
        yield
    finally:
        with torch.no_grad():
            for module, name, buffer in shared:
                buffer.copy_(first[name])
                _set_buffer(module, name, buffer)


def _set_buffer(module: Any, name: str, value: Any) -> None:
    path, _, member = name.rpartition(".")
    module.get_submodule(path)._buffers[member] = value


def initialising_passes(program: Any) -> list[Any]:
    """The passes that write the values of the buffers that `program`, an edge program, changes into the `.pte`."""
    from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass

    signature = program.graph_signature
    written = set(signature.buffers_to_mutate.values())
    names = [name for name, buffer in signature.inputs_to_buffers.items() if buffer in written]
    return [InitializedMutableBufferPass(names)] if names else []


def keep_shared_state(program: Any, names: Sequence[str]) -> list[str]:
    """Make state of the buffers `names` that the ``ExportedProgram``, a method, reads and another one writes; which
    of them it reads. torch.export and the Arm backend take a buffer that a method never writes for a constant, and
    its value when the model was exported would be in the program for good. So the method also returns it as its new
    value: ExecuTorch then plans it as state, and writes nothing, because the value is the buffer itself."""
    from torch.export.graph_signature import OutputKind, OutputSpec, TensorArgument

    signature = program.graph_signature
    flat = {name.replace(".", "_"): name for name in names}  # as quantised programs may have them
    found = [
        (node, signature.inputs_to_buffers[node.name])
        for node in program.graph.find_nodes(op="placeholder")
        if signature.inputs_to_buffers.get(node.name, "").replace(".", "_") in flat
        and node.users
        and signature.inputs_to_buffers[node.name] not in signature.buffers_to_mutate.values()
    ]
    if not found:
        return []
    output = program.graph.output_node()
    output.args = ((*(node for node, _ in found), *output.args[0]),)
    signature.output_specs[:0] = [
        OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument(name=node.name), buffer)
        for node, buffer in found
    ]
    program.graph_module.recompile()
    return [flat[buffer.replace(".", "_")] for _, buffer in found]


# Buffers that share memory, or that are bound to a tensor that somebody else has. Of two names of one tensor,
# torch.export 2.13 keeps the last and leaves the first without a use, on which functionalisation fails. It forgets
# assignments to buffers of submodules, and those of a value that is no result of an operator, such as ``self.last =
# x`` and ``self.a, self.b = self.b, self.a``.


@contextlib.contextmanager
def assignments_kept(module: Any) -> Iterator[None]:
    """While the block runs, torch.export makes a write of every assignment to a buffer of `module`. Each assigned
    value is copied at once, because later lines may write to where it came from; the buffer itself gets it at the
    end, because later lines may still read the old one."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    assigned: dict[tuple[Any, str], Any] = {}  # the buffers themselves
    original = torch.nn.Module.__setattr__

    def assign(owner: Any, name: str, value: Any) -> None:
        buffers = owner.__dict__.get("_buffers", {})
        if name in buffers and isinstance(value, FakeTensor):
            assigned.setdefault((owner, name), buffers[name])
            buffers[name] = value.clone()
        else:
            original(owner, name, value)

    def write(*_: Any) -> None:
        for (owner, name), buffer in assigned.items():
            buffer.copy_(owner._buffers[name])
            owner._buffers[name] = buffer
        assigned.clear()

    with patched(torch.nn.Module, __setattr__=assign), module.register_forward_hook(write):
        yield


def settled(module: Any, written: Sequence[str], execute: Callable[[Any], Any]) -> list[str]:
    """The names of the buffers in `written` that a program will have: of one tensor with several names the last.
    Names that an inference parts, by assigning one of them, get a tensor each. `execute` runs a module once.
    InputError for buffers that overlap without being the same."""
    names = list(written)
    for group in _groups(module):
        if not set(group) & set(written):
            continue
        if len({_place(module.get_buffer(name)) for name in group}) > 1:
            raise InputError(
                f"the buffers {' and '.join(map(repr, group))} share memory, and an inference changes it: a program "
                "cannot keep one buffer as a part of another",
                f"register '{group[0]}' alone, and take the part of it in forward: self.{group[0]}[…]",
            )
        trial = copy.deepcopy(module)
        execute(trial)
        if len({_place(trial.get_buffer(name)) for name in group}) > 1:
            for name in group[1:]:
                owner, _, last = name.rpartition(".")
                module.get_submodule(owner)._buffers[last] = module.get_buffer(name).clone()
        else:
            names = [name for name in names if name not in group[:-1]]
    return names


def without_unused_names(program: Any) -> Any:
    """`program` without placeholders for buffers that nothing reads although another has their tensor."""
    signature = program.graph_signature
    placeholders = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
    buffers = {row.target: row for row in signature.input_specs if row.target in program.state_dict}
    places = {name: _place(program.state_dict[name]) for name in buffers}
    for name, row in buffers.items():
        node = placeholders[row.arg.name]
        if not node.users and list(places.values()).count(places[name]) > 1:
            del places[name]
            program.graph.erase_node(node)
            signature.input_specs.remove(row)
            del program.state_dict[name]
    program.graph_module.recompile()
    return program


def _groups(module: Any) -> list[list[str]]:
    """The names of buffers whose tensors have memory in common: spans of bytes that overlap."""
    spans = sorted(
        (*_span(buffer), name)
        for name, buffer in module.named_buffers(remove_duplicate=False)
        if buffer.numel()
    )
    found: list[list[str]] = []
    end = 0
    for first, last, name in spans:
        if first < end:
            found[-1].append(name)
        else:
            found.append([name])
        end = max(end, last)
    order = {name: number for number, (name, _) in enumerate(module.named_buffers(remove_duplicate=False))}
    return [sorted(names, key=order.__getitem__) for names in found if len(names) > 1]


def _span(buffer: Any) -> tuple[int, int]:
    last = sum((size - 1) * stride for size, stride in zip(buffer.shape, buffer.stride(), strict=True))
    return buffer.data_ptr(), buffer.data_ptr() + (last + 1) * buffer.element_size()


def _place(tensor: Any) -> tuple[Any, ...]:
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride()


_CHANGING = ("append", "appendleft", "extend", "pop", "update", "setdefault")


def hidden_state_refusal(module: Any, finder: SourceFinder) -> InputError:
    """The error for a `module` of which two copies, one after the other, give different outputs."""
    kinds = [type(part) for part in module.modules()]
    own = [kind for kind in kinds if kind.__module__.partition(".")[0] != "torch"]
    place = next(filter(None, (_first_line(kind, _hidden_changes, finder) for kind in own)), "")
    return InputError(
        "the model keeps a state outside of its modules, which a program cannot keep from one inference to the next"
        + (f": {place}" if place else ", or its outputs are random"),
        "keep it in a buffer of the module: self.register_buffer('state', torch.zeros(…)) in __init__, written in "
        "forward; or make it an input and an output of the model",
    )


def _first_line(kind: type, lines_of: Callable[[ast.FunctionDef], list[int]], finder: SourceFinder) -> str:
    try:
        lines, start = inspect.getsourcelines(kind)
        file = inspect.getsourcefile(kind) or ""
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return ""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    found = [line for function in functions if function.name != "__init__" for line in lines_of(function)]
    if not found:
        return ""
    return f"{finder.named(file)[1]}, line {start + min(found) - 1}: `{lines[min(found) - 1].strip()}`"


def _hidden_changes(function: ast.FunctionDef) -> list[int]:
    """The lines that change what is neither the instance's nor the function's own."""
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
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return _assigned(node)
    name = node.func.attr
    in_place = name in _CHANGING or (name.endswith("_") and not name.endswith("__"))
    return [node.func] if in_place else []


def _root(node: ast.expr) -> str:
    while not isinstance(node, ast.Name):
        inner = getattr(node, "value", None) or getattr(node, "func", None)
        if not isinstance(inner, ast.expr):
            return ""
        node = inner
    return node.id


# An exported program carries the buffers of a module. What else a model changes, it carries as the constant that it
# was when it was traced: attributes that hold a tensor, parameters, numbers, lists. So a copy of the model is
# executed and compared with the one that never was; tensors become buffers, and the rest is refused.

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
        return f"{self.module}.{self.name}" if self.module else self.name


def state_changes(before: Any, after: Any) -> list[Change]:
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
    import torch

    if id(one) in seen or depth > _DEEPEST:
        return True
    if type(one) is not type(other):
        return False
    same = True
    if isinstance(one, torch.Tensor):
        same = _same_tensors(one, other)
    elif isinstance(one, (bool, int, float, complex, str, bytes)):
        same = repr(one) == repr(other)
    elif isinstance(one, dict):
        same = _same_dicts(one, other, depth, seen)
    elif isinstance(one, (list, tuple, deque)):
        same = _same_items(one, other, depth, seen)
    elif isinstance(one, (set, frozenset)):
        same = len(one) == len(other)
    elif isinstance(one, np.ndarray):
        same = one.tobytes() == other.tobytes()
    elif hasattr(one, "__dict__") and not inspect.isroutine(one) and not inspect.isclass(one):
        same = _same_dicts(vars(one), vars(other), depth, seen | {id(one)})
    return same


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


def carried_state(
    module: Any, found: Sequence[Change], execute: Callable[[Any], None], finder: SourceFinder
) -> list[str]:
    """Make buffers of the tensors in `module` that an execution changes and later ones read; the names of all buffers
    that change. `execute` runs a module once. InputError for what no program can carry, with the line that changes
    it."""
    names = []
    for change in found:
        if change.kind in (TENSOR, OTHER) and not _is_read_first(module, change, execute):
            continue  # written anew each time: nothing is carried from one inference to the next
        if change.kind == OTHER:
            raise _refusal(module, change, finder)
        if change.kind != BUFFER:
            owner = module.get_submodule(change.module)
            registry = owner._parameters if change.kind == PARAMETER else vars(owner)
            owner.register_buffer(change.name, registry.pop(change.name).detach().clone())
        names.append(change.path)
    return names


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
    place = _first_line(type(owner), partial(_changes_attribute, change.name), finder)
    where = f" of module '{change.module}'" if change.module else ""
    return InputError(
        f"the model keeps a state in the attribute '{change.name}'{where} ({change.type_name}), which a program "
        "cannot keep from one inference to the next" + (f": {place}" if place else ""),
        _HINT.format(name=change.name),
    )


def _changes_attribute(name: str, function: ast.FunctionDef) -> list[int]:
    """The lines that write ``self.NAME`` or call one of its methods."""

    def is_attribute(node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Attribute)
            and node.attr == name
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        )

    found = []
    for node in ast.walk(function):
        called = node.func if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        targets = _assigned(node) if called is None else [called.value]
        if any(is_attribute(part) for target in targets for part in ast.walk(target)):
            found.append(getattr(node, "lineno", 0))
    return found


def _assigned(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, (ast.AugAssign, ast.AnnAssign)) else []
