"""The rows of an OFM in parts, and what of the IFM each part needs.

What is computed has eight bytes for each element and exists several times over; what is stored has one to four.
So an
operation is computed in stripes of rows, which are stored together when the last one is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ethosu_sdk.npu import errors, ops
from ethosu_sdk.npu.config import (
    NpuConfig,
    ceil_div,
    check_exact,
    check_pool,
    check_product,
    check_sums,
    check_width,
    check_work,
    largest_input,
)
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
    ScaleStreams,
    Shape,
)
from ethosu_sdk.npu.ops import arranged, finish, padded, rescale, resize, upscaled
from ethosu_sdk.npu.weight_cache import Scales, WeightCache, scale_bytes, unpack_scales

# ---- npu.stripes
# The rows of an OFM in parts, and what of the IFM each part needs.
#
# What is computed has eight bytes for each element and exists several times over; what is stored has one to four.
# So an
# operation is computed in stripes of rows, which are stored together when the last one is done.

_STRIPE_ELEMENTS = 1 << 21  # some tens of milliseconds
_MOST_ROW_ELEMENTS = 1 << 24  # of one OFM row, or of the IFM rows under the kernel: 128 MiB for each copy


@dataclass(frozen=True)
class Rows:
    """Rows `start` to `stop` of an OFM, the last one not included."""

    start: int
    stop: int

    @property
    def part(self) -> slice:
        """The same, to index an array with."""
        return slice(self.start, self.stop)


def stripes(op: BlockOp) -> Iterator[Rows]:
    """The rows of `op`'s OFM in parts. UnsupportedCommand when a single row is more than a host should hold."""
    height, width, depth = op.shape
    _, columns, channels = op.ifm_shape
    under_kernel = (
        columns * channels * (1 if _by_rows(op) else min(op.kernel.dilated_height, op.ifm_shape[0]))
    )
    largest = max(width * depth, under_kernel)
    if largest > _MOST_ROW_ELEMENTS:
        raise UnsupportedCommand(
            "SET_OFM_WIDTH_M1", op.offset, width - 1, f"a row that takes {largest:,} elements at once"
        )
    step = max(1, _STRIPE_ELEMENTS // max(1, width * depth, columns * channels * op.kernel.stride_y))
    for start in range(0, height, step):
        yield Rows(start, min(start + step, height))


def _by_rows(op: BlockOp) -> bool:
    return op.kind in (Kind.ELEMENTWISE, Kind.RESIZE, Kind.MATMUL)


def window(op: BlockOp, stored: Array, rows: Rows) -> tuple[Array, Padding]:
    """What of the IFM is under the kernel at `rows`: its elements, upscaled, zero point subtracted, and the padding.

    `stored` is the IFM as it is in memory.
    """
    height, width, _ = op.ifm_shape
    top = rows.start * op.kernel.stride_y - op.padding.top
    bottom = (rows.stop - 1) * op.kernel.stride_y + op.kernel.dilated_height - op.padding.top
    first, last = (min(max(row, 0), height) for row in (top, bottom))
    above = min(max(0, -top), bottom - top)
    padding = Padding(above, op.padding.left, bottom - top - above - (last - first), op.padding.right)
    factor = 2 if op.upscale else 1
    start = first // factor
    wide = widened(op, stored[start : ceil_div(last, factor)])
    wide = upscaled(wide, op.upscale, factor * wide.shape[0], width)
    skipped = first - start * factor
    return wide[skipped : skipped + last - first], padding


def widened(op: BlockOp, stored: Array) -> Array:
    """Elements of the IFM without their zero point, in a type that holds them."""
    wide: Array = stored.astype(np.int32 if op.ifm.dtype.itemsize < 4 else np.int64)
    wide -= op.ifm.zero_point
    return wide


# ---- npu.execute
# Carrying out operations: memory in, memory out.

Accumulate = Callable[
    [Rows], Int64
]  # the accumulators of some rows: (rows, width, depth), or what broadcasts to it


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
        check_work(op)
        accumulate = self._prepare(op)
        if op.ofm.chain is None and not op.is_partial:
            self._memory.check_map(op.ofm, op.stored_shape, Channel.OFM)
        if op.is_partial:
            self._keep(op, accumulate)
            return
        scale: Any = op.output.scale
        shift: Any = op.output.shift
        bias: Any = 0
        if op.scales is not None:
            per_channel = self._scales(op.scales, op.shape[2])
            scale, shift, bias = per_channel.scale, per_channel.shift, per_channel.bias
        result = np.empty(op.shape, op.ofm.dtype)
        for rows in stripes(op):
            errors.check()
            sums = accumulate(rows) + bias if op.scales is not None else accumulate(rows)
            check_width(op, sums, scale, shift)
            result[rows.part] = finish(
                sums, op.output, scale, shift, op.ofm.zero_point, op.ofm.dtype, self._memory.own
            )
        self._store(op, arranged(result, op.output))
        self._sums = None

    def _keep(self, op: BlockOp, accumulate: Accumulate) -> None:
        """Leave sums in the accumulators. Biases and scales belong to the output: they are those of what is written.

        Vela gives every part of a convolution with a stride above 3 the whole bias, and writes only the last part.
        """
        check_sums(op)
        sums = np.empty(op.shape, np.int64)
        for rows in stripes(op):
            errors.check()
            sums[rows.part] = accumulate(rows)
            check_width(op, sums[rows.part], 1, 0)
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

    def _scales(self, scales: ScaleStreams, depth: int) -> Scales:
        lengths = scale_bytes(depth, len(scales.streams))
        data = [
            self._memory.span(stream.region, stream.address, length, Channel.SCALES)
            for stream, length in zip(scales.streams, lengths, strict=True)
        ]
        return unpack_scales(data, scales.format, depth)

    def _prepare(self, op: BlockOp) -> Accumulate:
        """Read what `op` takes from memory; what gives the accumulators of some rows."""
        if op.kind is Kind.ELEMENTWISE:
            return self._elementwise(op)
        if op.mode is PoolMode.NONE:
            return self._start(op)
        products = self._products(op)
        if not (op.accumulates or op.continues):
            return products
        start = self._start(op)
        return lambda rows: products(rows) + start(rows)

    def _start(self, op: BlockOp) -> Accumulate:
        """What the accumulators start from."""
        if op.continues:
            sums = self._sums
            if sums is None or sums.shape != op.shape:
                raise UnsupportedCommand("SET_ACC_FORMAT", op.offset, 1, "accumulators of another operation")
            return lambda rows: sums[rows.part]
        if op.ifm2 is None:
            raise UnsupportedCommand(
                "NPU_OP_POOL", op.offset, PoolMode.NONE.value, "accumulators start empty"
            )
        zero_point, values = op.ifm2.zero_point, self._load(op, op.ifm2, op.shape)
        return lambda rows: values[rows.part].astype(np.int64) - zero_point

    def _products(self, op: BlockOp) -> Accumulate:
        if op.kind is Kind.RESIZE:
            return self._resize(op)
        if op.kind is Kind.MATMUL:
            return self._matmul(op)
        stored = self._input(op)
        if op.kind is Kind.POOL:
            check_pool(op)
            return lambda rows: _pool(op, *window(op, stored, rows))
        largest = largest_input(op.ifm)
        kernels = self._cache.get(op, self._memory, self._config)
        if kernels.matrix is not None:
            check_exact(op, kernels.matrix.largest_sum * largest)

        def convolved(rows: Rows) -> Int64:
            values = padded(*window(op, stored, rows), 0)
            if kernels.matrix is not None:
                return ops.convolve(values, kernels.matrix, op.kernel, largest)
            return ops.convolve_depthwise(values, kernels.weights, op.kernel, largest)

        return convolved

    def _resize(self, op: BlockOp) -> Accumulate:
        assert op.resize is not None
        assert isinstance(op.mode, ResizeMode)
        mode, (down, across) = op.mode, op.resize
        values = self._whole_input(op)

        def resized(rows: Rows) -> Int64:
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
        largest = largest_input(op.ifm) * largest_input(ifm2)
        check_exact(op, depth * largest)

        def multiplied(rows: Rows) -> Int64:
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
        return upscaled(widened(op, self._input(op)), op.upscale, height, width)

    def _elementwise(self, op: BlockOp) -> Accumulate:
        stored = [self._operand(op, operand) for operand in op.operands]

        def combined(rows: Rows) -> Int64:
            return _elementwise(op, [values if len(values) == 1 else values[rows.part] for values in stored])

        return combined

    def _operand(self, op: BlockOp, operand: Operand) -> Array:
        """An operand as it is in memory."""
        if operand.scaling is not None:
            check_product(
                op,
                "SET_IFM_SCALE",
                largest_input(operand.feature_map),
                operand.scaling.scale,
                operand.scaling.shift,
            )
        if operand.scalar is not None:
            return np.full((1, 1, 1), operand.scalar, np.int64)
        height, width, depth = (
            1 if repeated else size for size, repeated in zip(op.shape, operand.broadcast, strict=True)
        )
        return self._load(op, operand.feature_map, (height, width, depth))


def _elementwise(op: BlockOp, stored: list[Array]) -> Int64:
    assert isinstance(op.mode, ElementwiseMode)
    values = [_scaled(operand, part) for operand, part in zip(op.operands, stored, strict=True)]
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


def _scaled(operand: Operand, stored: Array) -> Int64:
    values = stored.astype(np.int64)
    values -= operand.feature_map.zero_point
    scaling = operand.scaling
    if scaling is None:
        return values
    return rescale(values, scaling.scale, scaling.shift, scaling.rounding)


def _pool(op: BlockOp, ifm: Array, padding: Padding) -> Int64:
    assert isinstance(op.mode, PoolMode)
    values: Int64 = ifm.astype(np.int64)
    if op.mode is PoolMode.REDUCE_SUM:
        return _reduce_sum(op, values, padding)
    if op.mode in (PoolMode.ARGMAX_X, PoolMode.ARGMAX_Y):
        across = op.kernel.height if op.mode is PoolMode.ARGMAX_X else op.kernel.width
        if across != 1:
            raise UnsupportedCommand("NPU_OP_POOL", op.offset, op.mode.value, "two-dimensional ARGMAX")
        return ops.argmax(values, op.kernel, padding)
    if op.divides:
        # Any other scale is not emitted.
        if (op.output.scale, op.output.shift) != (1, 0):
            raise UnsupportedCommand("SET_OFM_SCALE", op.offset, op.output.scale or 0, "scaled average")
        return ops.average_of_valid(values, op.kernel, padding)
    reduce = {PoolMode.MAX: ops.maximum, PoolMode.MIN: ops.minimum}.get(op.mode, ops.total)
    return reduce(values, op.kernel, padding)


def _reduce_sum(op: BlockOp, values: Int64, padding: Padding) -> Int64:
    kernel = op.kernel
    if (kernel.height, kernel.width, kernel.stride_y, kernel.stride_x, op.shape[2]) != (1, 1, 1, 1, 1):
        raise UnsupportedCommand(
            "NPU_OP_POOL", op.offset, PoolMode.REDUCE_SUM.value, "a sum over more than depth"
        )
    return ops.reduce_depth(padded(values, padding, 0))
