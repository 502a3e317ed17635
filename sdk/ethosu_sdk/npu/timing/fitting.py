"""What is fitted to published runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fitted:
    """Constants of a generation that `scripts/fit-timing` fits to published runs, all of a generation together.

    Nothing in them depends on a network or a run. Ethos-U55 and Ethos-U65 are one generation.
    """

    block_cycles: float
    """The hand-over from one OFM block to the next."""
    operation_cycles: float
    """The hand-over from one operation to the next."""
    operation_trips: float
    """Latencies of the commands' memory from one operation to the next."""
    first_weights_bytes: float
    """Encoded weights that are there before the MAC unit begins, or those of an OFM block if that is less."""
    read_pipeline_cycles: float
    """What a read takes besides the memory's latency."""
