"""The weights, biases and scales of operations, decoded once and kept."""

from __future__ import annotations

import contextlib
import hashlib
from collections import OrderedDict, deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ethosu_sdk.npu import errors, weight_stream
from ethosu_sdk.npu.config import NpuConfig, ceil_div
from ethosu_sdk.npu.errors import BusError, Channel, WeightOrderError, WeightStreamError
from ethosu_sdk.npu.memory import Memory
from ethosu_sdk.npu.operation import BlockOp, Bytes, DmaOp, Int64, Operation, ScaleFormat, Stream, Weights
from ethosu_sdk.npu.ops import largest_sum
from ethosu_sdk.npu.weight_order import OrderKey, arrange, order_key, share, stream_sizes
from ethosu_sdk.npu.weight_stream import Coded, Decoded

SCALE_BYTES = 10


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
        shift=rows[:, bias_bytes + scale_bytes_] & 0x3F,
    )


def _number(rows: Int64) -> Int64:
    """Little-endian unsigned numbers of at most seven bytes, one per row."""
    places = 1 << 8 * np.arange(rows.shape[1], dtype=np.int64)
    return np.asarray(rows @ places)


Key = tuple[bytes, OrderKey]

_KEPT = 1 << 26  # weights; each takes up to four bytes
_MOST_WEIGHTS = 1 << 25  # of one operation: a 3x3 convolution from 1024 to 3584 channels
_MOST_STREAM_BYTES = 1 << 26  # coded weights of one stream
_MOST_PLACES = 1 << 16  # of a kernel with weights
_AHEAD = 1 << 26  # weights and bytes of streams that are decoded ahead
_REMEMBERED = 32  # programs that were decoded ahead


@dataclass(frozen=True)
class Kernels:
    """Decoded weights as (OFM, height, width, IFM; 1 for depthwise), of a type that they are multiplied in, and what
    bounds the sums made with them."""

    weights: npt.NDArray[np.float32]
    largest_sum: int


@dataclass(frozen=True)
class _Request:
    """What an operation's weights are made of: the bytes of its streams, and how many weights each must hold."""

    key: Key
    offset: int  # of the operation
    streams: tuple[Coded, ...]


class WeightCache:
    """Decoded weights, by the digest of their streams and their order; the oldest leave first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Key, Kernels] = OrderedDict()
        self._size = 0  # weights in all
        self._prepared: deque[Sequence[Operation]] = deque(maxlen=_REMEMBERED)

    def prepare(self, ops: Sequence[Operation], memory: Memory, config: NpuConfig) -> None:
        """Decode, in one go, the operations' weights that can be found before the first one runs.

        This is done once for the same `ops`. What is damaged is reported by the operation that uses it, if it
        ever runs.
        """
        if any(ops is known for known in self._prepared):
            return
        self._prepared.append(ops)
        requests: dict[Key, _Request] = {}
        room = _AHEAD
        for op, data in _found_ahead(ops, memory):
            with contextlib.suppress(WeightOrderError):
                found = _request(op, data, config)
                room -= sum(stream.size + len(stream.data) for stream in found.streams)
                if room < 0:
                    break
                if found.key not in self._kept:
                    requests[found.key] = found
        for key, result in _decoded(list(requests.values())):
            if isinstance(result, Kernels):
                self._keep(key, result)

    def get(self, op: BlockOp, memory: Memory, config: NpuConfig) -> Kernels:
        """The weights of `op`, decoded now if need be: they may have been copied only just before.

        Raises BusError, WeightStreamError or WeightOrderError.
        """
        assert op.weights is not None
        found = _request(op, [_bytes(stream, memory) for stream in op.weights.streams], config)
        if found.key in self._kept:
            self._kept.move_to_end(found.key)
            return self._kept[found.key]
        with contextlib.closing(_decoded([found])) as results:
            _, result = next(results)
        if not isinstance(result, Kernels):
            raise result
        self._keep(found.key, result)
        return result

    def _keep(self, key: Key, kernels: Kernels) -> None:
        self._kept[key] = kernels
        self._size += kernels.weights.size
        while self._size > _KEPT and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._size -= oldest.weights.size


def _request(op: BlockOp, data: Sequence[bytes], config: NpuConfig) -> _Request:
    order = order_key(op, config)
    if order.height * order.width > _MOST_PLACES:
        raise WeightOrderError(
            f"the operation at byte {op.offset} has a kernel of {order.height} x {order.width}, too large to hold"
        )
    sizes = stream_sizes(order, op.offset)
    if len(data) != len(sizes):
        raise WeightOrderError(
            f"the operation at byte {op.offset} needs {len(sizes)} weight streams, but it has {len(data)}"
        )
    if sum(sizes) > _MOST_WEIGHTS:
        raise WeightOrderError(
            f"the operation at byte {op.offset} needs {sum(sizes)} weights, too many to hold"
        )
    digest = hashlib.sha256()
    for part in data:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    streams = tuple(Coded(part, size, order.fast) for part, size in zip(data, sizes, strict=True))
    return _Request((digest.digest(), order), op.offset, streams)


def _decoded(
    requests: Sequence[_Request],
) -> Generator[tuple[Key, Kernels | WeightStreamError | WeightOrderError]]:
    """Each operation's kernels, or what is wrong with them, as they get ready.

    Operations whose streams were to be decoded after a damaged one may be left out.
    """
    owners = [(number, part) for number, one in enumerate(requests) for part in range(len(one.streams))]
    missing = [len(one.streams) for one in requests]
    parts: list[list[Weights]] = [[np.empty(0, np.int16)] * count for count in missing]
    for index, result in weight_stream.decode([requests[number].streams[part] for number, part in owners]):
        number, part = owners[index]
        one = requests[number]
        try:
            parts[number][part] = _checked(result, one, part)
            missing[number] -= 1
            if not missing[number]:
                order = one.key[1]
                weights = arrange(parts[number], order, one.offset)
                yield one.key, Kernels(weights.astype(np.float32), largest_sum(weights))
                parts[number] = []
        except (WeightStreamError, WeightOrderError) as error:
            yield one.key, error


def _checked(result: Decoded, request: _Request, part: int) -> Weights:
    if result.weights is not None:
        return result.weights
    where = f"the operation at byte {request.offset}"
    if result.count is None:
        name = f"weight stream {part + 1} of {len(request.streams)}"
        raise WeightStreamError(f"{name} of {where} is damaged and cannot be decoded")
    raise WeightOrderError(
        f"{where} needs {request.streams[part].size} weights, but its stream holds {result.count}"
    )


def _bytes(stream: Stream, memory: Memory) -> bytes:
    data = memory.span(stream.region, stream.address, stream.length, Channel.WEIGHTS)
    if data.size > _MOST_STREAM_BYTES:
        raise WeightOrderError(f"a weight stream of {data.size:,} bytes is too large to hold")
    return data.tobytes()


def _found_ahead(ops: Sequence[Operation], memory: Memory) -> Iterator[tuple[BlockOp, list[bytes]]]:
    """The operations with weights whose streams are known before the first operation runs."""
    copies: list[DmaOp] = []
    written = {op.ofm.region for op in ops if isinstance(op, BlockOp) and op.ofm.chain is None}
    for op in ops:
        if isinstance(op, DmaOp):
            copies.append(op)
        elif op.weights is not None:
            data = [_bytes_before(stream, copies, written, memory) for stream in op.weights.streams]
            known = [part for part in data if part is not None]
            if len(known) == len(data):
                yield op, known


def _bytes_before(stream: Stream, copies: Sequence[DmaOp], written: set[int], memory: Memory) -> bytes | None:
    """What a weight stream will hold when it is used: where the last copy to its place took it from.

    None for a place that operations compute or that is copied in parts, and for one that does not exist: the
    operation reports that.
    """
    region, address, end = stream.region, stream.address, stream.address + stream.length
    for copy in reversed(copies):
        errors.check()
        if copy.target_region != region:
            continue
        whole = copy.counts == (1, 1) and copy.index is None
        if whole and (copy.target >= end or copy.target + copy.length <= address):
            continue
        if (
            not whole
            or copy.target > address
            or copy.target + copy.length < end
            or copy.source_region is None
        ):
            return None
        region, address = copy.source_region, copy.source + address - copy.target
        break
    if region in written:
        return None
    try:
        return _bytes(Stream(region, address, stream.length), memory)
    except (BusError, WeightOrderError):
        return None
