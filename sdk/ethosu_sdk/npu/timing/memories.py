"""How fast an operation's streams reach a memory."""

from __future__ import annotations

import math
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


def bus_rate(memory: Memory, config: NpuConfig) -> float:
    """Bytes per cycle that all reads of `memory` reach together."""
    if config.generation == "u55":
        return memory.bytes_per_cycle
    return min(memory.bytes_per_cycle, constants.READ_EFFICIENCY * memory.ports * config.beat_bytes)


def read_rate(memory: Memory, stream: Stream, config: NpuConfig, run_bytes: int = 0) -> float:
    """Bytes per cycle that `stream` reads, in pieces of `run_bytes` that lie one behind the other (0: in one piece).

    On Ethos-U85 the stream's read buffers limit it: each waits for the memory's latency.
    """
    if config.generation == "u55":
        waited = float(memory.read_latency_cycles)
        return min(memory.bytes_per_cycle, _run_rate(memory, run_bytes, memory.max_reads, waited))
    waited = memory.read_latency_cycles + fitted.FITTED["u85"].read_pipeline_cycles
    return min(
        bus_rate(memory, config),
        _run_rate(memory, run_bytes, memory.max_reads, waited),
        constants.READ_EFFICIENCY * _words(stream, config) * _BUFFER_BYTES / waited,
    )


def write_rate(memory: Memory, run_bytes: int = 0) -> float:
    """Bytes per cycle that are written, in pieces of `run_bytes`."""
    waited = float(memory.write_latency_cycles)
    return min(memory.bytes_per_cycle, _run_rate(memory, run_bytes, memory.max_writes, waited))


def _run_rate(memory: Memory, run_bytes: int, most: int, waited: float) -> float:
    """Bytes per cycle of transactions that are shorter than a burst: each is under way for `waited` cycles.

    There are `most` of them per port, and at least as many as the memory needs to reach its rate with whole bursts.
    """
    if not waited or not 0 < run_bytes < memory.burst_bytes:
        return math.inf
    under_way = max(most * memory.ports, memory.bytes_per_cycle * waited / memory.burst_bytes)
    return under_way * run_bytes / waited


def _words(stream: Stream, config: NpuConfig) -> int:
    buffers = READ_BUFFERS[config.macs]
    own = {
        Stream.IFM: buffers.ifm,
        Stream.IFM_STREAM: buffers.ifm_stream,
        Stream.FAST_WEIGHTS: buffers.fast_weights,
        Stream.SCALES: buffers.scales,
    }
    return own.get(stream, buffers.weights)
