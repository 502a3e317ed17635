"""Replaces output classes that a `.pte` does not support, such as what ``torch.topk`` and ``x.max(1)`` return."""

from __future__ import annotations

from typing import Any


def flatten(program: Any) -> None:
    """Let `program`, an ``ExportedProgram``, return a tuple of tensors where ExecuTorch 1.5.1 cannot write down the
    classes that its outputs are in."""
    from torch.utils import _pytree

    signature = program.module_call_graph[0].signature
    try:
        _pytree.treespec_dumps(signature.out_spec)
    except NotImplementedError:
        count = signature.out_spec.num_leaves
        signature.out_spec = _pytree.tree_structure((0,) * count)
