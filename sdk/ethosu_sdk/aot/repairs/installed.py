"""Works around faults of ExecuTorch 1.5.1 and Vela 5.1.0 that crash or silently give wrong values.

Most repairs are passes that run before one of the Arm backend's own, and change a graph only where it would
come out wrong. ExecuTorch keeps such additions in a table of the process; it is left as it was found.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ethosu_sdk.aot.repairs import (
    crashing_slices,
    dropped_relu,
    lost_batches,
    lost_lookup_tables,
    merged_duplicates,
    merged_transposes,
    miscounted_channels,
    mistyped_results,
    mixed_up_shapes,
    passes,
    quantised_divisions,
    unscaled_negations,
    widened_convolutions,
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

    small = spec is not None and spec.target in lost_lookup_tables.TARGETS
    transposes_pool = spec is not None and not spec.target.startswith("ethos-u85")
    registered = manager._registered_pass_insertions
    before = {
        kind: replace(added, before_passes=list(added.before_passes), after_passes=list(added.after_passes))
        for kind, added in registered.items()
    }
    manager.register_pass_insertions_before(
        FuseQuantizedActivationPass,
        [
            passes.of_edge("SeparateActivationPass", dropped_relu.repair),
            passes.of_edge("RescaleNegationsPass", unscaled_negations.repair),
        ],
    )
    manager.register_pass_insertions_before(
        RewriteSlicePass, [passes.of_tosa("FlattenSlicesPass", crashing_slices.repair)]
    )
    manager.register_pass_insertions_before(
        EnsureUniqueOutputNodesPass,
        [
            passes.of_tosa("RerootTransposesPass", merged_transposes.repair),
            passes.of_tosa("HoistActivationsPass", miscounted_channels.repair),
            *(
                [passes.of_tosa("HoistTablesPass", lost_lookup_tables.repair_transposed)]
                if transposes_pool
                else []
            ),
            *([passes.of_tosa("KeepTablesPass", lost_lookup_tables.repair_reused)] if small else []),
            passes.of_tosa("SeparateShapesPass", mixed_up_shapes.repair),
            passes.of_tosa("HoistBatchesPass", lost_batches.hoist),
            lost_batches.joining_pass(),
        ],
    )
    try:
        with (
            merged_duplicates.repaired(),
            quantised_divisions.repaired(),
            mistyped_results.repaired(),
            widened_convolutions.repaired(),
        ):
            yield
    finally:
        registered.clear()
        registered.update(before)
