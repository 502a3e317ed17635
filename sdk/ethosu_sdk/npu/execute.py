"""Carrying out operations: memory in, memory out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.npu import dma
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import Channel, UnsupportedCommand
from ethosu_sdk.npu.memory import Memory
from ethosu_sdk.npu.operation import (
    BlockOp,
    DmaOp,
    ElementwiseMode,
    FeatureMap,
    Kind,
    Operand,
    Operation,
    PoolMode,
    ResizeMode,
    ScaleStreams,
    Shape,
)
from ethosu_sdk.npu.ops import convolution, elementwise, pooling
from ethosu_sdk.npu.ops.resize import resize
from ethosu_sdk.npu.ops.window import padded, upscaled
from ethosu_sdk.npu.output import finish, rescale
from ethosu_sdk.npu.scales import Scales, scale_bytes, unpack_scales
from ethosu_sdk.npu.weight_cache import WeightCache

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]

_INT64_LARGEST = (1 << 63) - 1
_DOUBLE_ROUND_EXTRA = 1 << 30
_FLOAT64_EXACT = 1 << 53
_MOST_STEPS = (
    1 << 36
)  # multiply-accumulates or comparisons of one operation: ten times the largest of real models


class Executor:
    """Carries out operations on one memory. Weights are kept between runs in `cache`.

    `result_flag` is COND_STATUS: whether the last operation's only element was not 0; None after operations with
    more elements, where it is not known what the hardware does.
    """

    def __init__(self, config: NpuConfig, memory: Memory, cache: WeightCache) -> None:
        self._config = config
        self._memory = memory
        self._cache = cache
        self._chains: dict[int, Array] = {}
        self._sums: Int64 | None = None  # what a partial operation left in the accumulators
        self.result_flag: bool | None = None

    def run(self, op: Operation) -> None:
        """Carry out `op`. Raises BusError, WeightStreamError, WeightOrderError or UnsupportedCommand."""
        if isinstance(op, DmaOp):
            dma.copy(op, self._memory)
            return
        _check_work(op)
        accumulator = self._accumulate(op)
        if op.is_partial:
            self._keep(op, accumulator)
            return
        scale: Any = op.output.scale
        shift: Any = op.output.shift
        if op.scales is not None:
            per_channel = self._scales(op.scales, op.shape[2])
            accumulator = accumulator + per_channel.bias
            scale, shift = per_channel.scale, per_channel.shift
        _check_width(op, accumulator, scale, shift)
        values = finish(
            accumulator, op.output, scale, shift, op.ofm.zero_point, op.ofm.dtype, self._memory.own
        )
        self._store(op, np.broadcast_to(values, op.stored_shape))
        self._sums = None

    def _keep(self, op: BlockOp, sums: Int64) -> None:
        if op.scales is not None:
            raise UnsupportedCommand("SET_ACC_FORMAT", op.offset, 1, "sums with biases that are not written")
        _check_width(op, sums, 1, 0)
        self._sums = sums
        self.result_flag = None

    def _store(self, op: BlockOp, values: Array) -> None:
        if op.ofm.chain is None:
            self._memory.write(op.ofm, values)
        else:
            self._chains[op.ofm.chain] = values
        self.result_flag = bool(values.any()) if values.size == 1 else None

    def _load(self, op: BlockOp, feature_map: FeatureMap, shape: Shape) -> Array:
        if feature_map.chain is None:
            return self._memory.read(feature_map, shape)
        values = self._chains.get(feature_map.chain)
        if values is None or values.shape != shape or values.dtype != feature_map.dtype:
            raise UnsupportedCommand(
                "chaining buffer", op.offset, feature_map.chain, "it does not hold this feature map"
            )
        return values

    def _scales(self, scales: ScaleStreams, depth: int) -> Scales:
        lengths = scale_bytes(depth, len(scales.streams))
        data = [
            self._memory.span(stream.region, stream.address, length, Channel.SCALES)
            for stream, length in zip(scales.streams, lengths, strict=True)
        ]
        return unpack_scales(data, scales.format, depth)

    def _accumulate(self, op: BlockOp) -> Int64:
        if op.kind is Kind.ELEMENTWISE:
            return self._elementwise(op)
        if op.mode is PoolMode.NONE:
            return self._start(op)
        sums = self._products(op)
        return sums + self._start(op) if op.accumulates or op.continues else sums

    def _start(self, op: BlockOp) -> Int64:
        """What the accumulators start from."""
        if op.continues:
            if self._sums is None or self._sums.shape != op.shape:
                raise UnsupportedCommand("SET_ACC_FORMAT", op.offset, 1, "accumulators of another operation")
            return self._sums
        if op.ifm2 is None:
            raise UnsupportedCommand(
                "NPU_OP_POOL", op.offset, PoolMode.NONE.value, "accumulators start empty"
            )
        return self._load(op, op.ifm2, op.shape).astype(np.int64) - op.ifm2.zero_point

    def _products(self, op: BlockOp) -> Int64:
        if op.kind is Kind.RESIZE:
            assert op.resize is not None
            assert isinstance(op.mode, ResizeMode)
            values = self._input(op).astype(np.int64)
            return resize(values, op.mode, op.resize, op.shape[0], op.shape[1])
        values = self._input(op)
        if op.kind is Kind.POOL:
            _check_pool(op)
            return _pool(op, values.astype(np.int64))
        if op.kind is Kind.MATMUL:
            return self._matmul(op, values)
        largest = _largest_input(op.ifm)
        kernels = self._cache.get(op, self._memory, self._config)
        values = padded(values, op.padding, 0)
        if kernels.matrix is not None:
            _check_exact(op, kernels.matrix.largest_sum * largest)
            return convolution.convolve(values, kernels.matrix, op.kernel, largest)
        return convolution.convolve_depthwise(values, kernels.weights, op.kernel, largest)

    def _matmul(self, op: BlockOp, values: Array) -> Int64:
        assert op.ifm2 is not None
        rows, columns, depth = values.shape
        if (rows, columns) != op.shape[:2]:
            raise UnsupportedCommand("NPU_OP_CONV", op.offset, 1, "a window over the rows of a matrix")
        matrices = self._load(op, op.ifm2, (rows, op.shape[2], depth)).astype(np.int64)
        largest = _largest_input(op.ifm) * _largest_input(op.ifm2)
        _check_exact(op, depth * largest)
        return convolution.multiply_batches(values, matrices - op.ifm2.zero_point, largest)

    def _input(self, op: BlockOp) -> Array:
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
        values = self._load(op, op.ifm, stored)
        wide: Array = values.astype(np.int32 if op.ifm.dtype.itemsize < 4 else np.int64)
        wide -= op.ifm.zero_point
        return upscaled(wide, op.upscale, height, width)

    def _elementwise(self, op: BlockOp) -> Int64:
        assert isinstance(op.mode, ElementwiseMode)
        values = [self._operand(op, operand) for operand in op.operands]
        if op.mode is ElementwiseMode.SHR:
            return elementwise.shift_right(values[0], values[1], op.output.rounding)
        if op.mode is ElementwiseMode.LSR:
            bits = 8 * op.operands[0].feature_map.dtype.itemsize
            return elementwise.shift_right_logical(values[0], values[1], bits)
        if op.mode is ElementwiseMode.DIV and not values[1].all():
            raise UnsupportedCommand("NPU_OP_ELEMENTWISE", op.offset, op.mode.value, "division by 0")
        if op.mode in elementwise.BINARY:
            return elementwise.BINARY[op.mode](values[0], values[1])
        if op.mode not in elementwise.UNARY:
            raise UnsupportedCommand("NPU_OP_ELEMENTWISE", op.offset, op.mode.value, op.mode.name)
        return elementwise.UNARY[op.mode](values[0])

    def _operand(self, op: BlockOp, operand: Operand) -> Int64:
        source = operand.feature_map
        if operand.scalar is not None:
            values = np.full((1, 1, 1), operand.scalar, np.int64)
        else:
            height, width, depth = (
                1 if repeated else size for size, repeated in zip(op.shape, operand.broadcast, strict=True)
            )
            values = self._load(op, source, (height, width, depth)).astype(np.int64)
        values -= source.zero_point
        scaling = operand.scaling
        if scaling is None:
            return values
        _check_product(op, "SET_IFM_SCALE", _largest_input(source), scaling.scale, scaling.shift)
        return rescale(values, scaling.scale, scaling.shift, scaling.rounding)


def _check_work(op: BlockOp) -> None:
    """Refuse what no model needs and what would keep the host busy for minutes."""
    if op.kind in (Kind.ELEMENTWISE, Kind.RESIZE):
        return
    height, width, depth = op.shape
    sides = op.kernel.height + op.kernel.width if op.kind is Kind.POOL else op.kernel.height * op.kernel.width
    steps = height * width * depth * sides * (op.ifm_depth if op.takes_all_channels else 1)
    if steps > _MOST_STEPS:
        raise UnsupportedCommand("SET_KERNEL_HEIGHT_M1", op.offset, op.kernel.height - 1, f"{steps} steps")


def _check_exact(op: BlockOp, bound: int) -> None:
    """Refuse sums that float64 may round: 32-bit elements of an operation that is not emitted for them."""
    if bound >= _FLOAT64_EXACT:
        raise UnsupportedCommand("SET_IFM_PRECISION", op.offset, op.ifm.dtype.itemsize, "sums above 53 bits")


def _check_pool(op: BlockOp) -> None:
    """Refuse elements so wide that int64 cannot hold their sums, or their sums times a reciprocal."""
    widest = 2 if op.divides else 4
    if op.ifm.dtype.itemsize > widest:
        raise UnsupportedCommand("SET_IFM_PRECISION", op.offset, op.ifm.dtype.itemsize, "pooled elements")


def _check_width(op: BlockOp, accumulator: Int64, scale: Any, shift: Any) -> None:
    """Refuse sums that the accumulators do not hold and products that int64 does not: their result is not known."""
    if op.kind is Kind.ELEMENTWISE and not op.output.scaled:
        return
    high, low, limit = int(accumulator.max()), int(accumulator.min()), 1 << (op.accumulator_bits - 1)
    if op.kind is not Kind.ELEMENTWISE and not -limit <= low <= high < limit:
        raise UnsupportedCommand("SET_ACC_FORMAT", op.offset, op.accumulator_bits, "accumulator overflow")
    if op.output.scaled:
        _check_product(op, "SET_OFM_SCALE", max(high, -low), int(np.max(scale)), int(np.max(shift)))


def _check_product(op: BlockOp, register: str, largest: int, scale: int, shift: int) -> None:
    """Refuse a scaling whose product, with what rounding adds, may exceed int64."""
    if largest * scale + (1 << shift) + _DOUBLE_ROUND_EXTRA > _INT64_LARGEST:
        raise UnsupportedCommand(register, op.offset, scale, "product of more than 63 bits")


def _largest_input(feature_map: FeatureMap) -> int:
    """The largest absolute value that an element can have once the zero point is subtracted."""
    limits = np.iinfo(feature_map.dtype)
    return max(abs(limits.min - feature_map.zero_point), abs(limits.max - feature_map.zero_point))


def _pool(op: BlockOp, values: Int64) -> Int64:
    assert isinstance(op.mode, PoolMode)
    if op.mode is PoolMode.REDUCE_SUM:
        return _reduce_sum(op, values)
    if op.mode in (PoolMode.ARGMAX_X, PoolMode.ARGMAX_Y):
        across = op.kernel.height if op.mode is PoolMode.ARGMAX_X else op.kernel.width
        if across != 1:
            raise UnsupportedCommand("NPU_OP_POOL", op.offset, op.mode.value, "two-dimensional ARGMAX")
        return pooling.argmax(values, op.kernel, op.padding)
    if op.divides:
        # Any other scale is not emitted.
        if (op.output.scale, op.output.shift) != (1, 0):
            raise UnsupportedCommand("SET_OFM_SCALE", op.offset, op.output.scale or 0, "scaled average")
        return pooling.average_of_valid(values, op.kernel, op.padding)
    reduce = {PoolMode.MAX: pooling.maximum, PoolMode.MIN: pooling.minimum}.get(op.mode, pooling.total)
    return reduce(values, op.kernel, op.padding)


def _reduce_sum(op: BlockOp, values: Int64) -> Int64:
    kernel = op.kernel
    if (kernel.height, kernel.width, kernel.stride_y, kernel.stride_x, op.shape[2]) != (1, 1, 1, 1, 1):
        raise UnsupportedCommand(
            "NPU_OP_POOL", op.offset, PoolMode.REDUCE_SUM.value, "a sum over more than depth"
        )
    return pooling.reduce_depth(padded(values, op.padding, 0))
