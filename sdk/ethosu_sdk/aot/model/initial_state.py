"""Buffers that a model writes itself, such as the state of a recurrent network: their values at the beginning.

Every execution in PyTorch changes them, calibration included, and ExecuTorch 1.5.1 leaves their values out of a
`.pte` unless it is told otherwise. The program must begin where the model began.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class InitialState:
    """The buffers of a module as they are now."""

    def __init__(self, module: Any) -> None:
        named = module.named_buffers(remove_duplicate=False)
        self._values = {name: buffer.detach().clone() for name, buffer in named}

    @property
    def names(self) -> frozenset[str]:
        """The names of the buffers."""
        return frozenset(self._values)

    def restore(self, module: Any) -> None:
        """Give the buffers of `module`, which is the same one or was made of it, these values again."""
        import torch

        with torch.no_grad():
            for name, buffer in module.named_buffers():
                value = self._values.get(name)
                if value is not None and (value.shape, value.dtype) == (buffer.shape, buffer.dtype):
                    buffer.copy_(value)

    @contextmanager
    def restored(self, module: Any) -> Iterator[None]:
        """Run the block from this state, and leave `module` in it."""
        self.restore(module)
        try:
            yield
        finally:
            self.restore(module)


@contextmanager
def one_state(modules: Sequence[Any], names: Collection[str]) -> Iterator[None]:
    """While the block runs, each of the buffers `names` is one tensor in all `modules`; then each has its own
    again."""
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
