"""Faults of ExecuTorch 1.5.1 and Vela 5.1.0 that give wrong values without a word, or crash, undone while a program
is lowered.

Most repairs are passes that run before one of the Arm backend's own, and change a graph only where it would
come out wrong. ExecuTorch keeps such additions in a table of the process; it is left as it was found.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ethosu_sdk.aot.repairs import (
    flat_slices,
    kept_activations,
    kept_batches,
    kept_duplicates,
    kept_integers,
    kept_outputs,
    kept_scales,
    kept_shapes,
    kept_tables,
    kept_types,
    kept_weights,
    passes,
)


@contextlib.contextmanager
def repaired(spec: Any = None) -> Iterator[None]:
    """While the block runs, programs that are lowered for Ethos-U in this process keep every activation that counts,
    every output, all weights, batches, the scales of negations, the quantisation of each result, the shapes of all
    parts and the types at a delegate's border, and Vela does not crash at slices of many axes. For the target of
    `spec`, ExecuTorch's description of it, they keep their look-up tables as well."""
    from executorch.backends.arm._passes import (
        EnsureUniqueOutputNodesPass,
        FuseQuantizedActivationPass,
        RewriteSlicePass,
        arm_pass_manager as manager,
    )

    small = spec is not None and spec.target in kept_tables.TARGETS
    transposes_pool = spec is not None and not spec.target.startswith("ethos-u85")
    registered = manager._registered_pass_insertions
    before = {
        kind: replace(added, before_passes=list(added.before_passes), after_passes=list(added.after_passes))
        for kind, added in registered.items()
    }
    manager.register_pass_insertions_before(
        FuseQuantizedActivationPass,
        [
            passes.of_quantised("SeparateActivationPass", kept_activations.separate),
            passes.of_quantised("RescaleNegationsPass", kept_scales.rescale),
        ],
    )
    manager.register_pass_insertions_before(
        RewriteSlicePass, [passes.of_tosa("FlattenSlicesPass", flat_slices.flatten)]
    )
    manager.register_pass_insertions_before(
        EnsureUniqueOutputNodesPass,
        [
            passes.of_tosa("RerootTransposesPass", kept_outputs.reroot),
            passes.of_tosa("HoistActivationsPass", kept_weights.hoist),
            *([passes.of_tosa("HoistTablesPass", kept_tables.hoist_all)] if transposes_pool else []),
            *([passes.of_tosa("KeepTablesPass", kept_tables.separate_all)] if small else []),
            passes.of_tosa("SeparateShapesPass", kept_shapes.separate),
            kept_batches.joining_pass(),
        ],
    )
    try:
        with kept_duplicates.told_apart(), kept_integers.whole(), kept_types.taken_back():
            yield
    finally:
        registered.clear()
        registered.update(before)
