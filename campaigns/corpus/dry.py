"""Builds architectures, runs them in eager PyTorch and exports them: no lowering, so that it takes seconds."""

import time
import traceback
from collections.abc import Iterable

import torch

from campaigns.corpus import catalogue, recipe


def check(entry: recipe.Architecture) -> str:
    """What is known of an architecture without lowering it."""
    start = time.monotonic()
    module, make = recipe.made(entry.build)
    with torch.no_grad():
        first, second = (torch.utils._pytree.tree_leaves(module(*make(seed, 1))) for seed in (0, 1))
    finite = all(bool(torch.isfinite(array).all()) for array in first)
    moved = [float((a - b).std() / (a.std() + 1e-12)) for a, b in zip(first, second, strict=True)]
    program = torch.export.export(module, make(0, 1))
    calls = sum(node.op == "call_function" for node in program.graph.nodes)
    size = sum(parameter.numel() for parameter in module.parameters()) / 1e6
    told = f"{size:.2f} M parameters, {calls} operators, {time.monotonic() - start:.1f} s"
    return (
        f"{told}, outputs {[tuple(array.shape) for array in first]}, finite {finite}, change {min(moved):.2f}"
    )


def check_all(names: Iterable[str]) -> int:
    """Check the architectures of these names; 1 when one fails."""
    torch.set_num_threads(1)
    failed = False
    for name in names:
        try:
            print(f"{name}: {check(catalogue.ARCHITECTURES[name])}", flush=True)
        except Exception:
            failed = True
            print(f"{name}: FAILED\n{traceback.format_exc(limit=-3)}", flush=True)
    return failed
