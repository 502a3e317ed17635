"""Buffers that share memory, or that are bound to a tensor that somebody else has: what torch.export 2.13 loses of
them.

Of two names of one tensor it keeps the last and leaves the first without a use, on which functionalisation fails. It
forgets assignments to buffers of submodules, and those of a value that is no result of an operator, such as
``self.last = x`` and ``self.a, self.b = self.b, self.a``.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ethosu_sdk.errors import InputError


@contextlib.contextmanager
def assignments_kept(module: Any) -> Iterator[None]:
    """While the block runs, torch.export makes a write of every assignment to a buffer of `module`.

    Each assigned value is copied at once, because later lines may write to where it came from; the buffer itself gets
    it at the end, because later lines may still read the old one.
    """
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

    torch.nn.Module.__setattr__ = assign
    hook = module.register_forward_hook(write)
    try:
        yield
    finally:
        hook.remove()
        torch.nn.Module.__setattr__ = original


def settled(module: Any, written: Sequence[str], execute: Callable[[Any], Any]) -> list[str]:
    """The names of the buffers in `written` that a program will have: of one tensor with several names the last.

    Names that an inference parts, by assigning one of them, get a tensor each. `execute` runs a module once.
    InputError for buffers that overlap without being the same.
    """
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
    """`program`, an ``ExportedProgram``, without placeholders for buffers that nothing reads although another one
    has their tensor."""
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
    """The addresses of its first byte and behind its last one."""
    last = sum((size - 1) * stride for size, stride in zip(buffer.shape, buffer.stride(), strict=True))
    return buffer.data_ptr(), buffer.data_ptr() + (last + 1) * buffer.element_size()


def _place(tensor: Any) -> tuple[Any, ...]:
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride()
