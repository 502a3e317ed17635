"""Builds architectures, runs them in eager PyTorch and exports them: no lowering, so that it takes seconds.

Usage: python -m tests.corpus.dry [NAME...]. Exit code 1 when one fails.
"""

from __future__ import annotations

import sys
import time
import traceback

import torch

from tests.corpus import catalogue, recipe


def check(entry: recipe.Architecture) -> str:
    """What is known of an architecture without lowering it."""
    start = time.monotonic()
    module, make = recipe.made(entry.build)
    with torch.no_grad():
        first, second = (torch.utils._pytree.tree_leaves(module(*make(seed, 1))) for seed in (0, 1))
    differ = [float((a - b).float().std() / (a.float().std() + 1e-12)) for a, b in zip(first, second, strict=True)]
    finite = all(bool(torch.isfinite(a.float()).all()) for a in first)
    built = time.monotonic() - start
    program = torch.export.export(module, make(0, 1))
    calls = sum(node.op == "call_function" for node in program.graph.nodes)
    size = sum(parameter.numel() for parameter in module.parameters())
    return (
        f"{size / 1e6:.2f} M, {calls} calls, built {built:.1f} s, exported {time.monotonic() - start - built:.1f} s, "
        f"shapes {[tuple(a.shape) for a in first]} finite {finite} inputs matter {[round(d, 3) for d in differ]}"
    )


def main() -> int:
    """Check every architecture, or those named; the exit code."""
    torch.set_num_threads(1)
    wanted = sys.argv[1:]
    failed = 0
    for name, entry in catalogue.ARCHITECTURES.items():
        if wanted and name not in wanted:
            continue
        try:
            print(f"{name}: {check(entry)}", flush=True)
        except Exception:
            failed += 1
            print(f"{name}: FAILED\n{traceback.format_exc(limit=-3)}", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
