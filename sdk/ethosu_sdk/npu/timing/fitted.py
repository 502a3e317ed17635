"""Constants of the performance model that are fitted to published runs, and errors of networks left out.

`scripts/fit-timing --write` makes this file; do not edit it.
"""

from __future__ import annotations

from ethosu_sdk.npu.timing.fitting import Fitted

FITTED: dict[str, Fitted] = {
    "u55": Fitted(
        block_cycles=48.0,
        operation_cycles=32.6,
        operation_trips=1.16,
        first_weights_bytes=24600.0,
        read_pipeline_cycles=42.0,
    ),
    "u85": Fitted(
        block_cycles=0.02,
        operation_cycles=18.7,
        operation_trips=1.16,
        first_weights_bytes=31600.0,
        read_pipeline_cycles=21.9,
    ),
}
"""By :attr:`NpuConfig.generation`."""

BANDS: dict[str, dict[int, int]] = {
    "ethos-u55": {0: 10, 128: 10, 256: 10},
    "ethos-u65": {0: 7, 256: 7, 512: 7},
    "ethos-u85": {0: 14, 128: 8, 256: 8, 512: 8, 1024: 8, 2048: 14},
}
"""Percent by family and MACs per cycle; 0 stands for sizes without a published run."""
