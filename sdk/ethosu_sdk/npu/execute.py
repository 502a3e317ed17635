"""Carrying out operations: memory in, memory out."""

from __future__ import annotations

import contextlib
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.npu import weight_stream
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import BusError, Channel, UnsupportedCommand, WeightOrderError, WeightStreamError
from ethosu_sdk.npu.memory import Memory
from ethosu_sdk.npu.operation import (
    UNARY,
    BlockOp,
    DmaOp,
    ElementwiseMode,
    FeatureMap,
    Kind,
    Operation,
    PoolMode,
    Stream,
)
from ethosu_sdk.npu.ops import convolution, elementwise, pooling
from ethosu_sdk.npu.ops.convolution import ConvWeights
from ethosu_sdk.npu.ops.window import padded, upscaled
from ethosu_sdk.npu.output import finish
from ethosu_sdk.npu.weights import SCALE_BYTES, OrderKey, arrange, order_key, unpack_scales

Int64 = npt.NDArray[np.int64]
Weights = npt.NDArray[np.int16]
_CACHED_WEIGHTS = 512


class WeightCache:
    """Decoded weights, by the digest of their stream and their order; the oldest leave first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[bytes, OrderKey], tuple[Weights, ConvWeights | None]] = OrderedDict()

    def prepare(self, ops: Sequence[Operation], memory: Memory, config: NpuConfig) -> None:
        """Decode, in one go, the operations' weights that can be found before the first one runs."""
        wanted: dict[tuple[bytes, OrderKey], tuple[bytes, BlockOp]] = {}
        copies: list[DmaOp] = []
        written = {op.ofm.region for op in ops if isinstance(op, BlockOp)}
        for op in ops:
            if isinstance(op, DmaOp):
                copies.append(op)
            elif op.weights is not None:
                data = _bytes_before(op.weights, copies, written, memory)
                if data is not None and (key := (_digest(data), order_key(op, config))) not in self._kept:
                    wanted[key] = (data, op)
        # What is damaged is reported by the operation that uses it, if it ever runs.
        with contextlib.suppress(WeightStreamError, WeightOrderError):
            self._decode(wanted)

    def _decode(self, wanted: dict[tuple[bytes, OrderKey], tuple[bytes, BlockOp]]) -> None:
        streams = list(dict.fromkeys(data for data, _ in wanted.values()))
        decoded = dict(zip(streams, weight_stream.decode(streams), strict=True))
        for key, (data, op) in wanted.items():
            weights = arrange(decoded[data], key[1], op.offset)
            self._kept[key] = (weights, ConvWeights.of(weights) if op.kind is Kind.CONV else None)
        while len(self._kept) > _CACHED_WEIGHTS:
            self._kept.popitem(last=False)

    def get(self, op: BlockOp, stream: Stream, memory: Memory, config: NpuConfig) -> tuple[Weights, Any]:
        """The weights of `op`, decoded now if need be: they may have been copied only just before."""
        data = memory.span(stream.region, stream.address, stream.length, Channel.WEIGHTS).tobytes()
        key = (_digest(data), order_key(op, config))
        if key not in self._kept:
            self._decode({key: (data, op)})
        self._kept.move_to_end(key)
        return self._kept[key]


def _bytes_before(stream: Stream, copies: Sequence[DmaOp], written: set[int], memory: Memory) -> bytes | None:
    """What a weight stream will hold when it is used: where the last copy to its place took it from.

    None for a place that operations compute, and for one that does not exist: the operation reports that.
    """
    region, address = stream.region, stream.address
    for copy in reversed(copies):
        inside = copy.target <= address and address + stream.length <= copy.target + copy.length
        if copy.target_region == region and inside:
            if copy.source_region is None:
                return None
            region, address = copy.source_region, copy.source + address - copy.target
            break
    if region in written:
        return None
    try:
        return memory.span(region, address, stream.length, Channel.WEIGHTS).tobytes()
    except BusError:
        return None


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


class Executor:
    """Carries out operations on one memory. Weights are kept between runs in `cache`."""

    def __init__(self, config: NpuConfig, memory: Memory, cache: WeightCache) -> None:
        self._config = config
        self._memory = memory
        self._cache = cache

    def run(self, op: Operation) -> None:
        """Carry out `op`. Raises BusError, WeightStreamError or UnsupportedCommand."""
        if isinstance(op, DmaOp):
            self._copy(op)
            return
        accumulator = self._accumulate(op)
        scale, shift = op.output.scale, op.output.shift
        scales: tuple[Any, Any] = (scale, shift)
        if op.scales is not None:
            depth = op.shape[2]
            stream = self._memory.span(
                op.scales.region, op.scales.address, SCALE_BYTES * depth, Channel.SCALES
            )
            per_channel = unpack_scales(stream, depth)
            accumulator = accumulator + per_channel.bias
            scales = (per_channel.scale, per_channel.shift)
        if op.kind is not Kind.ELEMENTWISE:
            _check_width(op, accumulator)
        lut = self._memory.shram[self._config.lut_address :]
        values = finish(accumulator, op.output, *scales, op.ofm.zero_point, op.ofm.dtype, lut)
        self._memory.write(op.ofm, np.broadcast_to(values, op.shape))

    def _copy(self, op: DmaOp) -> None:
        data = self._memory.span(op.source_region, op.source, op.length, Channel.COPY_READ).copy()
        self._memory.span(op.target_region, op.target, op.length, Channel.COPY_WRITE)[:] = data

    def _accumulate(self, op: BlockOp) -> Int64:
        if op.kind is Kind.ELEMENTWISE:
            return self._elementwise(op)
        values = self._input(op)
        if op.kind is Kind.POOL:
            return _pool(op, values.astype(np.int64))
        assert op.weights is not None
        largest = _largest_input(op.ifm)
        weights, matrix = self._cache.get(op, op.weights, self._memory, self._config)
        values = padded(values, op.padding, 0)
        if op.kind is Kind.CONV:
            return convolution.convolve(values, matrix, op.kernel, largest)
        return convolution.convolve_depthwise(values, weights, op.kernel, largest)

    def _input(self, op: BlockOp) -> npt.NDArray[Any]:
        """The IFM, upscaled, zero point subtracted, not padded."""
        height, width, depth = op.ifm_shape
        if op.kind is Kind.DEPTHWISE:
            depth = op.ifm_depth
            if depth not in (1, op.shape[2]):
                raise UnsupportedCommand("SET_IFM_DEPTH_M1", op.offset, depth - 1, "depth multiplier")
        if op.upscale > 2:
            raise UnsupportedCommand("SET_IFM_UPSCALE", op.offset, op.upscale)
        factor = 2 if op.upscale else 1
        stored = (-(-height // factor), -(-width // factor), depth)
        values = self._memory.read(op.ifm, stored)
        wide: npt.NDArray[Any] = values.astype(np.int32 if op.ifm.dtype.itemsize < 4 else np.int64)
        wide -= op.ifm.zero_point
        return upscaled(wide, op.upscale, height, width)

    def _elementwise(self, op: BlockOp) -> Int64:
        assert isinstance(op.mode, ElementwiseMode)
        values = self._memory.read(op.ifm, op.shape).astype(np.int64) - op.ifm.zero_point
        if op.mode in UNARY:
            if op.mode not in elementwise.UNARY:
                raise UnsupportedCommand("NPU_OP_ELEMENTWISE", op.offset, op.mode.value, op.mode.name)
            return elementwise.UNARY[op.mode](values)
        assert op.ifm2 is not None
        second = self._second(op)
        left, right = (second, values) if op.ifm2.is_operand_a else (values, second)
        if op.operands is not None:
            left, right = elementwise.scale_operands(left, right, op.operands)
        return elementwise.BINARY[op.mode](left, right)

    def _second(self, op: BlockOp) -> Int64:
        assert op.ifm2 is not None
        source = op.ifm2.feature_map
        if op.ifm2.scalar is not None:
            return np.full((1, 1, 1), op.ifm2.scalar, np.int64) - source.zero_point
        height, width, depth = (
            1 if repeated else size for size, repeated in zip(op.shape, op.ifm2.broadcast, strict=True)
        )
        return self._memory.read(source, (height, width, depth)).astype(np.int64) - source.zero_point


def _check_width(op: BlockOp, accumulator: Int64) -> None:
    """Refuse sums that the accumulators do not hold: what the hardware makes of them is not known."""
    limit = 1 << (op.accumulator_bits - 1)
    if accumulator.max() >= limit or accumulator.min() < -limit:
        raise UnsupportedCommand("SET_ACC_FORMAT", op.offset, op.accumulator_bits, "accumulator overflow")


def _largest_input(feature_map: FeatureMap) -> int:
    """The largest absolute value that an element can have once the zero point is subtracted."""
    limits = np.iinfo(feature_map.dtype)
    return max(abs(limits.min - feature_map.zero_point), abs(limits.max - feature_map.zero_point))


def _pool(op: BlockOp, values: Int64) -> Int64:
    if op.mode is PoolMode.REDUCE_SUM:
        kernel = op.kernel
        if (kernel.height, kernel.width, kernel.stride_y, kernel.stride_x, op.shape[2]) != (1, 1, 1, 1, 1):
            raise UnsupportedCommand(
                "NPU_OP_POOL", op.offset, op.mode.value, "a sum over more than the depth"
            )
        return pooling.reduce_depth(values)
    if op.mode is PoolMode.MAX:
        return pooling.maximum(values, op.kernel, op.padding)
    if op.padding.any:
        # The hardware divides by the number of elements inside the IFM; any other scale is not emitted.
        if (op.output.scale, op.output.shift) != (1, 0):
            raise UnsupportedCommand("SET_OFM_SCALE", op.offset, op.output.scale or 0, "padded average")
        return pooling.average_of_valid(values, op.kernel, op.padding)
    return pooling.total(values, op.kernel, op.padding)
