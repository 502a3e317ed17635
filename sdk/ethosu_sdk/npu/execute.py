"""Carrying out operations: memory in, memory out.

What is computed has eight bytes for each element and exists several times over; what is stored has one to four. So an
operation is computed in stripes of rows, which are stored together when the last one is done.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.npu import errors, ops
from ethosu_sdk.npu.config import NpuConfig, ceil_div, volume
from ethosu_sdk.npu.errors import Channel, UnsupportedCommand
from ethosu_sdk.npu.memory import Memory, Observer, Written, copy
from ethosu_sdk.npu.operation import (
    Array,
    BlockOp,
    DmaOp,
    ElementwiseMode,
    FeatureMap,
    Int64,
    Kind,
    Operand,
    Operation,
    Padding,
    PoolMode,
    ResizeMode,
    Rounding,
    ScaleFormat,
    ScaleStreams,
    Scaling,
    Shape,
)
from ethosu_sdk.npu.ops import ChannelScaling, arranged, finish, padded, rescale, resize, upscaled
from ethosu_sdk.npu.weight_cache import Scales, WeightCache, scale_bytes, unpack_scales

_STRIPE_ELEMENTS = 1 << 21  # some tens of milliseconds
# The model refuses work that no real model needs, and sums that it could not compute exactly.
_MOST_ROW_ELEMENTS = 1 << 24  # of one OFM row, or of the IFM rows under the kernel: 128 MiB for each copy
_MOST_STEPS = (
    1 << 36
)  # multiply-accumulates or comparisons of an operation: ten times the largest of real models
_MOST_SUMS = 1 << 24  # that stay in the accumulators, eight bytes each; hardware has room for far fewer
_FLOAT64_EXACT = 1 << 53
_INT64_LARGEST = (1 << 63) - 1
_DOUBLE_ROUND_EXTRA = 1 << 30
_QUICK_BITS = 32  # accumulators that hold what ChannelScaling holds
_KEPT_SCALES = 256  # operations whose scales are kept

Accumulate = Callable[
    [slice], Int64
]  # some rows → their accumulators, (rows, width, depth) or broadcast to that


@functools.lru_cache(_KEPT_SCALES)
def _unpacked(data: tuple[bytes, ...], form: ScaleFormat, depth: int) -> Scales:
    return unpack_scales([np.frombuffer(part, np.uint8) for part in data], form, depth)


@functools.lru_cache(_KEPT_SCALES)
def _channel_scaling(
    data: tuple[bytes, ...], form: ScaleFormat, depth: int, rounding: Rounding, zero_point: int
) -> ChannelScaling:
    found = _unpacked(data, form, depth)
    return ChannelScaling.of_scales(found.bias, found.scale, found.shift, rounding, zero_point)


class Executor:
    """Carries out operations on one memory. Weights are kept between runs in `cache`; `observer` is told of OFMs.

    `result_flag` is COND_STATUS: whether the last operation's only element was not 0; None after operations with
    more elements, where it is not known what the hardware does.
    """

    def __init__(
        self, config: NpuConfig, memory: Memory, cache: WeightCache, observer: Observer | None = None
    ) -> None:
        self._config = config
        self._memory = memory
        self._cache = cache
        self._observer = observer
        self._chains: dict[int, Array] = {}
        self._sums: Int64 | None = None  # what a partial operation left in the accumulators
        self.result_flag: bool | None = None

    def run(self, op: Operation) -> None:
        """Carry out `op`. Raises BusError, WeightStreamError, WeightOrderError or UnsupportedCommand.

        SimulationError when the deadline passes meanwhile; memory then holds nothing of the operation, or of a DMA
        a part.
        """
        errors.check()
        if isinstance(op, DmaOp):
            copy(op, self._memory)
            return
        _check_work(op)
        accumulate, largest_sum = self._prepare(op)
        if op.is_partial:
            self._keep(op, accumulate)
            return
        if op.ofm.chain is None:
            self._memory.check_map(op.ofm, op.stored_shape, Channel.OFM)
        scale: Any = op.output.scale
        shift: Any = op.output.shift
        bias: Any = 0
        channels = None
        if op.scales is not None:
            per_channel, channels = self._scales(op, op.scales)
            scale, shift, bias = per_channel.scale, per_channel.shift, per_channel.bias
            if channels is None or largest_sum is None or not channels.holds(largest_sum):
                channels = None
        result = np.empty(op.shape, op.ofm.dtype)
        for rows in _stripes(op):
            errors.check()
            if channels is not None:
                channels.finish(accumulate(rows), op.output.clamp, result[rows])
                continue
            sums = accumulate(rows).astype(np.int64, copy=False) + bias
            _check_width(op, sums, scale, shift)
            result[rows] = finish(
                sums, op.output, scale, shift, op.ofm.zero_point, op.ofm.dtype, self._memory.own
            )
        self._store(op, arranged(result, op.output))
        self._sums = None

    def _keep(self, op: BlockOp, accumulate: Accumulate) -> None:
        """Leave sums in the accumulators. Biases and scales belong to the output: they are those of what is written.

        Vela gives every part of a convolution with a stride above 3 the whole bias, and writes only the last part.
        """
        if volume(op.shape) > _MOST_SUMS:
            reason = f"{volume(op.shape):,} sums that stay in the accumulators"
            raise UnsupportedCommand("SET_ACC_FORMAT", op.offset, 1, reason)
        sums = np.empty(op.shape, np.int64)
        for rows in _stripes(op):
            errors.check()
            sums[rows] = accumulate(rows)
            _check_width(op, sums[rows], 1, 0)
        self._sums = sums
        self.result_flag = None

    def _store(self, op: BlockOp, values: Array) -> None:
        if op.ofm.chain is None:
            self._memory.write(op.ofm, values)
        else:
            self._chains[op.ofm.chain] = values
        if self._observer is not None:
            self._observer(Written(op, values[np.newaxis]))
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

    def _scales(self, op: BlockOp, scales: ScaleStreams) -> tuple[Scales, ChannelScaling | None]:
        """The scales of the OFM's channels, and the whole output stage where it is a usual one."""
        depth = op.shape[2]
        lengths = scale_bytes(depth, len(scales.streams))
        data = tuple(
            self._memory.span(stream.region, stream.address, length, Channel.SCALES).tobytes()
            for stream, length in zip(scales.streams, lengths, strict=True)
        )
        found = _unpacked(data, scales.format, depth)
        output = op.output
        is_usual = (
            output.scaled and output.rounding in (Rounding.NATURAL, Rounding.DOUBLE) and not output.early
        )
        if not is_usual or output.lut is not None or op.accumulator_bits < _QUICK_BITS:
            return found, None
        return found, _channel_scaling(data, scales.format, depth, output.rounding, op.ofm.zero_point)

    def _prepare(self, op: BlockOp) -> tuple[Accumulate, int | None]:
        """Read what `op` takes from memory; what gives the accumulators of some rows, and the largest of them if that
        is known."""
        if op.kind is Kind.ELEMENTWISE:
            stored = [self._operand(op, operand) for operand in op.operands]
            return (
                lambda rows: _elementwise(op, [row if len(row) == 1 else row[rows] for row in stored])
            ), None
        if op.mode is PoolMode.NONE:
            return self._start(op), None
        products, largest = self._products(op)
        if not (op.accumulates or op.continues):
            return products, largest
        start = self._start(op)
        return lambda rows: products(rows) + start(rows), None

    def _start(self, op: BlockOp) -> Accumulate:
        """What the accumulators start from."""
        if op.continues:
            sums = self._sums
            if sums is None or sums.shape != op.shape:
                raise UnsupportedCommand("SET_ACC_FORMAT", op.offset, 1, "accumulators of another operation")
            return lambda rows: sums[rows]
        if op.ifm2 is None:
            raise UnsupportedCommand(
                "NPU_OP_POOL", op.offset, PoolMode.NONE.value, "accumulators start empty"
            )
        zero_point, values = op.ifm2.zero_point, self._load(op, op.ifm2, op.shape)
        return lambda rows: values[rows].astype(np.int64) - zero_point

    def _products(self, op: BlockOp) -> tuple[Accumulate, int | None]:
        if op.kind is Kind.RESIZE:
            return self._resize(op), None
        if op.kind is Kind.MATMUL:
            return self._matmul(op), None
        stored = self._input(op)
        if op.kind is Kind.POOL:
            # int64 does not hold the sums of wider elements, or their sums times a reciprocal.
            if op.ifm.dtype.itemsize > (2 if op.divides else 4):
                raise UnsupportedCommand(
                    "SET_IFM_PRECISION", op.offset, op.ifm.dtype.itemsize, "pooled elements"
                )
            return lambda rows: _pool(op, *_window(op, stored, rows)), None
        largest = _largest_input(op.ifm)
        kernels = self._cache.get(op, self._memory, self._config)
        bound = kernels.largest_sum * largest
        _check_exact(op, bound)
        kind = ops.exact_float(bound)

        def convolved(rows: slice) -> Array:
            values = padded(*_window(op, stored, rows, kind), 0)
            convolve = ops.convolve_depthwise if op.kind is Kind.DEPTHWISE else ops.convolve
            return convolve(values, kernels.weights, op.kernel)

        return convolved, bound

    def _resize(self, op: BlockOp) -> Accumulate:
        assert op.resize is not None
        assert isinstance(op.mode, ResizeMode)
        mode, (down, across) = op.mode, op.resize
        values = self._whole_input(op)

        def resized(rows: slice) -> Int64:
            part = replace(down, offset=down.offset + rows.start * down.step)
            return resize(values, mode, (part, across), rows.stop - rows.start, op.shape[1])

        return resized

    def _matmul(self, op: BlockOp) -> Accumulate:
        assert op.ifm2 is not None
        ifm2, values = op.ifm2, self._whole_input(op)
        rows, columns, depth = values.shape
        if (rows, columns) != op.shape[:2]:
            raise UnsupportedCommand("NPU_OP_CONV", op.offset, 1, "a window over the rows of a matrix")
        matrices = self._load(op, ifm2, (rows, op.shape[2], depth))
        largest = _largest_input(op.ifm) * _largest_input(ifm2)
        _check_exact(op, depth * largest)

        def multiplied(rows: slice) -> Int64:
            pairs = (
                (values[row], matrices[row].astype(np.int64) - ifm2.zero_point)
                for row in range(rows.start, rows.stop)
            )
            return ops.multiply_batches(pairs, largest)

        return multiplied

    def _input(self, op: BlockOp) -> Array:
        """The IFM as it is in memory."""
        height, width, depth = op.ifm_shape
        if op.kind is Kind.DEPTHWISE:
            depth = op.ifm_depth
            if depth not in (1, op.shape[2]):
                raise UnsupportedCommand("SET_IFM_DEPTH_M1", op.offset, depth - 1, "depth multiplier")
        if op.upscale > 2:
            raise UnsupportedCommand("SET_IFM_UPSCALE", op.offset, op.upscale)
        factor = 2 if op.upscale else 1
        return self._load(op, op.ifm, (ceil_div(height, factor), ceil_div(width, factor), depth))

    def _whole_input(self, op: BlockOp) -> Array:
        """The IFM, upscaled, zero point subtracted."""
        height, width, _ = op.ifm_shape
        return upscaled(_widened(op, self._input(op)), op.upscale, height, width)

    def _operand(self, op: BlockOp, operand: Operand) -> Array:
        """An operand of an elementwise operation as it is in memory."""
        largest = _largest_input(operand.feature_map)
        for scaling in (operand.scaling, operand.negative):
            if scaling is not None:
                _check_product(op, "SET_IFM_SCALE", largest, scaling.scale, scaling.shift)
        if operand.scalar is not None:
            return np.full((1, 1, 1), operand.scalar, np.int64)
        height, width, depth = (
            1 if repeated else size for size, repeated in zip(op.shape, operand.broadcast, strict=True)
        )
        return self._load(op, operand.feature_map, (height, width, depth))


def _stripes(op: BlockOp) -> Iterator[slice]:
    """The rows of `op`'s OFM in parts. UnsupportedCommand when a single row is more than a host should hold."""
    height, width, depth = op.shape
    rows, columns, channels = op.ifm_shape
    by_rows = op.kind in (Kind.ELEMENTWISE, Kind.RESIZE, Kind.MATMUL)
    under_kernel = columns * channels * (1 if by_rows else min(op.kernel.dilated_height, rows))
    largest = max(width * depth, under_kernel)
    if largest > _MOST_ROW_ELEMENTS:
        raise UnsupportedCommand(
            "SET_OFM_WIDTH_M1", op.offset, width - 1, f"a row that takes {largest:,} elements at once"
        )
    step = max(1, _STRIPE_ELEMENTS // max(1, width * depth, columns * channels * op.kernel.stride_y))
    for start in range(0, height, step):
        yield slice(start, min(start + step, height))


def _window(op: BlockOp, stored: Array, rows: slice, kind: npt.DTypeLike = None) -> tuple[Array, Padding]:
    """What of the IFM is under the kernel at `rows`: its elements, upscaled, zero point subtracted, and the padding.

    `stored` is the IFM as it is in memory; `kind` a type that holds its elements, if not that of `_widened`.
    """
    height, width, _ = op.ifm_shape
    top = rows.start * op.kernel.stride_y - op.padding.top
    bottom = (rows.stop - 1) * op.kernel.stride_y + op.kernel.dilated_height - op.padding.top
    first, last = (min(max(row, 0), height) for row in (top, bottom))
    above = min(max(0, -top), bottom - top)
    padding = Padding(above, op.padding.left, bottom - top - above - (last - first), op.padding.right)
    factor = 2 if op.upscale else 1
    start = first // factor
    wide = _widened(op, stored[start : ceil_div(last, factor)], kind)
    wide = upscaled(wide, op.upscale, factor * wide.shape[0], width)
    skipped = first - start * factor
    return wide[skipped : skipped + last - first], padding


def _widened(op: BlockOp, stored: Array, kind: npt.DTypeLike = None) -> Array:
    """Elements of the IFM without their zero point, in a type that holds them."""
    wide: Array = stored.astype(kind or (np.int32 if op.ifm.dtype.itemsize < 4 else np.int64))
    wide -= op.ifm.zero_point
    return wide


def _elementwise(op: BlockOp, stored: list[Array]) -> Int64:
    assert isinstance(op.mode, ElementwiseMode)
    values = []
    for operand, elements in zip(op.operands, stored, strict=True):
        part = elements.astype(np.int64)
        part -= operand.feature_map.zero_point
        scaled = _scaled(part, operand.scaling)
        if op.mode is ElementwiseMode.LRELU:
            scaled = np.where(part < 0, _scaled(part, operand.negative), scaled)
        values.append(scaled)
    if op.mode is ElementwiseMode.LRELU:
        return values[0]
    if op.mode is ElementwiseMode.SHR:
        return ops.shift_right(values[0], values[1], op.output.rounding)
    if op.mode is ElementwiseMode.LSR:
        bits = 8 * op.operands[0].feature_map.dtype.itemsize
        return ops.shift_right_logical(values[0], values[1], bits)
    if op.mode is ElementwiseMode.DIV and not values[1].all():
        raise UnsupportedCommand("NPU_OP_ELEMENTWISE", op.offset, op.mode.value, "division by 0")
    if op.mode in ops.BINARY:
        return ops.BINARY[op.mode](values[0], values[1])
    if op.mode not in ops.UNARY:
        raise UnsupportedCommand("NPU_OP_ELEMENTWISE", op.offset, op.mode.value, op.mode.name)
    return ops.UNARY[op.mode](values[0])


def _scaled(values: Int64, scaling: Scaling | None) -> Int64:
    if scaling is None:
        return values
    return rescale(values, scaling.scale, scaling.shift, scaling.rounding, scaling.early)


def _pool(op: BlockOp, ifm: Array, padding: Padding) -> Int64:
    assert isinstance(op.mode, PoolMode)
    values: Int64 = ifm.astype(np.int64)
    kernel, place = op.kernel, ("NPU_OP_POOL", op.offset, op.mode.value)
    if op.mode is PoolMode.REDUCE_SUM:
        if (kernel.height, kernel.width, kernel.stride_y, kernel.stride_x, op.shape[2]) != (1, 1, 1, 1, 1):
            raise UnsupportedCommand(*place, "a sum over more than depth")
        return np.asarray(padded(values, padding, 0).sum(axis=2, keepdims=True))
    if op.mode in (PoolMode.ARGMAX_X, PoolMode.ARGMAX_Y):
        if (kernel.height if op.mode is PoolMode.ARGMAX_X else kernel.width) != 1:
            raise UnsupportedCommand(*place, "two-dimensional ARGMAX")
        return ops.argmax(values, kernel, padding)
    if op.divides:
        # No scale but 1 is emitted.
        if op.output.scaled and op.output.scale != 1 << op.output.shift:
            raise UnsupportedCommand("SET_OFM_SCALE", op.offset, op.output.scale or 0, "scaled average")
        return ops.average_of_valid(values, kernel, padding)
    reduce = {PoolMode.MAX: ops.maximum, PoolMode.MIN: ops.minimum}.get(op.mode, ops.total)
    return reduce(values, kernel, padding)


def _check_work(op: BlockOp) -> None:
    """Refuse what no model needs and what would keep the host busy for minutes."""
    if op.kind in (Kind.ELEMENTWISE, Kind.RESIZE):
        return
    sides = op.kernel.height + op.kernel.width if op.kind is Kind.POOL else op.kernel.height * op.kernel.width
    steps = volume(op.shape) * sides * (op.ifm_depth if op.takes_all_channels else 1)
    if steps > _MOST_STEPS:
        raise UnsupportedCommand("SET_KERNEL_HEIGHT_M1", op.offset, op.kernel.height - 1, f"{steps} steps")


def _check_exact(op: BlockOp, bound: int) -> None:
    """Refuse sums that float64 may round: 32-bit elements of an operation that is not emitted for them."""
    if bound >= _FLOAT64_EXACT:
        raise UnsupportedCommand("SET_IFM_PRECISION", op.offset, op.ifm.dtype.itemsize, "sums above 53 bits")


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
