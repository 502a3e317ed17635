"""Cycles to read and decode the weights of an operation."""

from __future__ import annotations

import numpy as np

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.cycles_transfer import Channel, bandwidth
from ethosu_sdk.npu.errors import WeightOrderError
from ethosu_sdk.npu.operation import BlockOp
from ethosu_sdk.npu.system_config import SystemConfig
from ethosu_sdk.npu.weights import order_key, stream_sizes

# Weights per cycle of Ethos-U85's decoders (ethos-u-vela 5.1.0): of the fast format with at most 15 different weights
# or more, and of one core for the other format, which grows with the share of zeros.
_FAST_FEW, _FAST_MANY, _FEW = 64, 32, 16
_LEAST, _MOST = 8, 32
# 0.9 in single precision is a little less, so that 32 is never reached.
_LEAST_ZEROS, _MOST_ZEROS, _TOP_ZEROS = 0.5, float(np.float32(0.9)), 0.9


def decode_cycles(
    op: BlockOp, system: SystemConfig, config: NpuConfig, zeros: float = 0.0, distinct: int = 256
) -> int:
    """Cycles until all weights of `op` have been read once and decoded; 0 without weights.

    `zeros` (share of weights that are 0) and `distinct` (different weights) are facts of the data: without them the
    figure is that of the slowest data. Ethos-U55 and Ethos-U65 decode as they read.
    """
    if op.weights is None or not op.weights.streams:
        return 0
    memory = system.memory(op.weights.streams[0].region)
    channel = Channel.FAST_WEIGHTS if op.weights.fast else Channel.WEIGHTS
    size = sum(stream.length for stream in op.weights.streams)
    read = int(size / bandwidth(memory, channel, config)) + memory.read_latency_cycles
    return read if config.generation == "u55" else max(read, _decoded(op, config, zeros, distinct))


def _decoded(op: BlockOp, config: NpuConfig, zeros: float, distinct: int) -> int:
    assert op.weights is not None
    try:
        weights = sum(stream_sizes(order_key(op, config), op.offset))
    except WeightOrderError:
        return 0  # executing the operation will tell
    if op.weights.fast:
        return weights // (_FAST_FEW if distinct < _FEW else _FAST_MANY)
    share = min(max(zeros, _LEAST_ZEROS), _MOST_ZEROS) - _LEAST_ZEROS
    per_core = _LEAST + int(share * (_MOST - _LEAST) / (_TOP_ZEROS - _LEAST_ZEROS))
    return weights // (per_core * config.cores)
