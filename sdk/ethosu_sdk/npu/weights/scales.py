"""Biases and scales of OFM channels: ten bytes per channel, in one stream or in one stream per core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ethosu_sdk.npu.arrays import Bytes, Int64
from ethosu_sdk.npu.geometry import ceil_div
from ethosu_sdk.npu.operation import ScaleFormat
from ethosu_sdk.npu.weights.order import share

SCALE_BYTES = 10
_SHIFT_BITS = 6


@dataclass(frozen=True)
class Scales:
    """Bias, scale and shift of every OFM channel; int64 arrays."""

    bias: Int64
    scale: Int64
    shift: Int64


def channel_counts(depth: int, streams: int) -> tuple[int, ...]:
    """How many of `depth` OFM channels are in each of `streams` streams that take turns."""
    return tuple(share(depth, stream, streams) for stream in range(streams))


def scale_bytes(depth: int, streams: int) -> tuple[int, ...]:
    """How many bytes of each of `streams` scale streams an operation with `depth` OFM channels reads."""
    return tuple(SCALE_BYTES * count for count in channel_counts(depth, streams))


def unpack_scales(data: Sequence[Bytes], form: ScaleFormat, depth: int) -> Scales:
    """The scales of `depth` channels from their streams; stream s of n has channels s, s + n, ...

    Of an entry's bytes, the first hold the signed bias, the next ones the unsigned scale in their low bits, and
    the one after that a shift of six bits; Ethos-U85 leaves the last byte unused (ethos-u-vela 5.1.0, weight
    encoders). `data` may be longer than `scale_bytes` says: Vela pads it.
    """
    rows = np.empty((depth, SCALE_BYTES), np.int64)
    for stream, count in enumerate(channel_counts(depth, len(data))):
        rows[stream :: len(data)] = data[stream][: SCALE_BYTES * count].reshape(count, SCALE_BYTES)
    bias_bits, scale_bits = form.value
    bias_bytes, scale_bytes_ = bias_bits // 8, ceil_div(scale_bits, 8)
    bias = _number(rows[:, :bias_bytes])
    scale = _number(rows[:, bias_bytes : bias_bytes + scale_bytes_])
    return Scales(
        bias=np.where(bias >> (bias_bits - 1), bias - (1 << bias_bits), bias),
        scale=scale & ((1 << scale_bits) - 1),
        shift=rows[:, bias_bytes + scale_bytes_] & ((1 << _SHIFT_BITS) - 1),
    )


def _number(rows: Int64) -> Int64:
    """Little-endian unsigned numbers of at most seven bytes, one per row."""
    places = 1 << 8 * np.arange(rows.shape[1], dtype=np.int64)
    return np.asarray(rows @ places)
