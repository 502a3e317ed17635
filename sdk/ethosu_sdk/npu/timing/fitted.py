"""Constants of the performance model that are fitted to published runs, and errors of networks left out.

`scripts/fit-timing --write` makes this file; do not edit it.
"""

from __future__ import annotations

from ethosu_sdk.npu.timing.constants import Fitted

FITTED: dict[str, Fitted] = {
    "u55": Fitted(
        block_cycles=48.0,
        operation_cycles=110.0,
        operation_trips=0.82,
        first_weights_bytes=24600.0,
        read_pipeline_cycles=42.0,
    ),
    "u85": Fitted(
        block_cycles=0.09,
        operation_cycles=80.6,
        operation_trips=0.82,
        first_weights_bytes=30600.0,
        read_pipeline_cycles=46.4,
    ),
}
"""By :attr:`NpuConfig.generation`."""

BANDS: dict[str, dict[int, int]] = {
    "ethos-u55": {0: 8, 128: 8, 256: 5},
    "ethos-u65": {0: 9, 256: 9, 512: 9},
    "ethos-u85": {0: 9, 128: 9, 256: 9, 512: 9, 1024: 7, 2048: 9},
}
"""Percent by family and MACs per cycle; 0 stands for sizes without a published run."""
