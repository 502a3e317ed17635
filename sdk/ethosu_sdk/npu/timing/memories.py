"""How fast an operation's streams reach a memory."""

from __future__ import annotations

from enum import Enum

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.timing import constants, fitted
from ethosu_sdk.npu.timing.system_config import Memory
from ethosu_sdk.npu.timing.tables import READ_BUFFERS

_BUFFER_BYTES = 16


class Stream(Enum):
    """What the bytes are for."""

    COPY = "copy"
    COPY_WRITE = "copy_write"
    IFM = "ifm"
    IFM_STREAM = "ifm_stream"
    WEIGHTS = "weights"
    FAST_WEIGHTS = "fast_weights"
    SCALES = "scales"
    OFM = "ofm"

    @property
    def is_write(self) -> bool:
        """Whether these bytes are written."""
        return self in (Stream.OFM, Stream.COPY_WRITE)


def read_rate(memory: Memory, stream: Stream, config: NpuConfig) -> float:
    """Bytes per cycle that `stream` reads.

    On Ethos-U85 the read buffers that may be under way limit it: each waits for the memory's latency.
    """
    if config.generation == "u55":
        return memory.bytes_per_cycle
    buffers = READ_BUFFERS[config.macs]
    words = buffers.fast_weights if stream is Stream.FAST_WEIGHTS else buffers.weights
    waited = memory.read_latency_cycles + fitted.FITTED["u85"].read_pipeline_cycles
    return min(
        memory.bytes_per_cycle,
        constants.READ_EFFICIENCY * memory.ports * config.beat_bytes,
        constants.READ_EFFICIENCY * words * _BUFFER_BYTES / waited,
    )
