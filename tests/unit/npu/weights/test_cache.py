"""Weights of operations: found ahead, decoded once, kept as long as there is room."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from ethosu import mlw_codec
from numpy.typing import NDArray

from ethosu_sdk.npu import weight_cache, weight_stream
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import BusError, WeightOrderError, WeightStreamError
from ethosu_sdk.npu.memory import FixedRegions, Memory
from ethosu_sdk.npu.operation import BlockOp, DmaIndex, DmaOp, Kernel, Kind, Stream, WeightStreams
from ethosu_sdk.npu.weight_cache import WeightCache
from ethosu_sdk.npu.weight_order import order_key, stream_sizes
from tests.unit.npu.operations import dense, operation

U55 = NpuConfig.for_target("ethos-u55", 128)
U65 = NpuConfig.for_target("ethos-u65", 512)
U85 = NpuConfig.for_target("ethos-u85", 512)
CONSTANTS, SCRATCH, FAST = 0, 1, 2
REGION_BYTES = 1 << 16
FEATURE_MAP = dense(0, (1, 1, 8), region=SCRATCH)


def conv(
    streams: Sequence[Stream],
    config: NpuConfig = U55,
    offset: int = 72,
    kind: Kind = Kind.CONV,
    **weights: Any,
) -> BlockOp:
    """A 1x1 convolution of eight channels to eight, or a depthwise one of eight."""
    return operation(
        kind,
        (1, 1, 8),
        FEATURE_MAP,
        FEATURE_MAP,
        offset=offset,
        weights=WeightStreams(tuple(streams), **weights),
        block=(1, 1, 16),
        micro_block=(1, 1, 16) if config is U85 else config.micro_block,
    )


def stream_of_ones(op: BlockOp, config: NpuConfig, value: int = 1) -> list[bytes]:
    """Streams of `op` whose first weight is `value`, that of OFM channel 0 and IFM channel 0; the others are 0."""
    sizes = stream_sizes(order_key(op, config), 0)
    return [
        bytes(mlw_codec.encode([value if number == 0 else 0] + [0] * (size - 1)))
        for number, size in enumerate(sizes)
    ]


def memory_with(*parts: tuple[int, int, bytes]) -> Memory:
    """Regions 0 to 2 with bytes at (region, address)."""
    regions: dict[int, NDArray[np.uint8]] = {
        region: np.zeros(REGION_BYTES, np.uint8) for region in (CONSTANTS, SCRATCH, FAST)
    }
    for region, address, data in parts:
        regions[region][address : address + len(data)] = np.frombuffer(data, np.uint8)
    return Memory(FixedRegions(regions), 0)


def one_stream(value: int = 1, region: int = CONSTANTS, address: int = 32) -> tuple[BlockOp, bytes]:
    """A convolution for Ethos-U55 and its stream, to be put where the operation looks for it."""
    op = conv([Stream(region, address, 0)])
    (data,) = stream_of_ones(op, U55, value)
    return dataclasses.replace(op, weights=WeightStreams((Stream(region, address, len(data)),))), data


class Decoders:
    """Counts the trips to the decoder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[int] = []
        real = weight_stream.decode

        def decode(streams: Sequence[weight_stream.Coded]) -> Any:
            self.calls.append(len(streams))
            return real(streams)

        monkeypatch.setattr(weight_stream, "decode", decode)


@pytest.fixture
def decoders(monkeypatch: pytest.MonkeyPatch) -> Decoders:
    return Decoders(monkeypatch)


def test_weights_are_decoded_once(decoders: Decoders) -> None:
    op, data = one_stream(5)
    memory = memory_with((CONSTANTS, 32, data))
    cache = WeightCache()
    kernels = cache.get(op, memory, U55)
    assert kernels.weights.shape == (8, 1, 1, 8)
    assert kernels.weights[0, 0, 0, 0] == 5
    assert np.count_nonzero(kernels.weights) == 1
    assert kernels.largest_sum == 5
    assert cache.get(op, memory, U55) is kernels
    assert decoders.calls == [1]


def test_other_bytes_in_the_same_place_are_other_weights() -> None:
    first, second = one_stream(5), one_stream(6)
    cache = WeightCache()
    found = [cache.get(op, memory_with((CONSTANTS, 32, data)), U55).weights for op, data in (first, second)]
    assert [weights[0, 0, 0, 0] for weights in found] == [5, 6]


def test_depthwise_and_fast_weights() -> None:
    op = conv([Stream(CONSTANTS, 0, 64)], kind=Kind.DEPTHWISE)
    (data,) = stream_of_ones(op, U55)
    op = conv([Stream(CONSTANTS, 0, len(data))], kind=Kind.DEPTHWISE)
    kernels = WeightCache().get(op, memory_with((CONSTANTS, 0, data)), U55)
    assert kernels.weights.shape == (8, 1, 1, 1)
    # A raw header, then a byte per weight.
    op = conv([Stream(CONSTANTS, 0, 0)], U85, fast=True)
    (size,) = stream_sizes(order_key(op, U85), 0)
    data = b"\x01".ljust(32, b"\0") + bytes([0xFE]).ljust(size, b"\0")
    op = conv([Stream(CONSTANTS, 0, len(data))], U85, fast=True)
    kernels = WeightCache().get(op, memory_with((CONSTANTS, 0, data)), U85)
    assert (kernels.weights[0, 0, 0, 0], np.count_nonzero(kernels.weights)) == (-2, 1)


@pytest.mark.parametrize("config", [U65, U85], ids=["u65", "u85"])
def test_two_streams(config: NpuConfig) -> None:
    first, second = stream_of_ones(conv([Stream(0, 0, 0)] * 2, config), config)
    op = conv([Stream(CONSTANTS, 16, len(first)), Stream(CONSTANTS, 4096, len(second))], config)
    kernels = WeightCache().get(op, memory_with((CONSTANTS, 16, first), (CONSTANTS, 4096, second)), config)
    assert (kernels.weights[0, 0, 0, 0], np.count_nonzero(kernels.weights)) == (1, 1)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"address": REGION_BYTES}, BusError, "WEIGHTS access"),
        ({"length": 3}, WeightStreamError, "weight stream 1 of 1 of the operation at byte 72 is damaged"),
        ({"length": 0}, WeightOrderError, r"byte 72 needs \d+ weights, but its stream holds 0"),
    ],
    ids=["no_memory", "damaged", "empty"],
)
def test_streams_that_are_wrong(change: dict[str, int], error: type[Exception], message: str) -> None:
    op, data = one_stream()
    assert op.weights is not None
    stream = dataclasses.replace(op.weights.streams[0], **change)
    broken = dataclasses.replace(op, weights=WeightStreams((stream,)))
    cache = WeightCache()
    for _ in range(2):
        with pytest.raises(error, match=message):
            cache.get(broken, memory_with((CONSTANTS, 32, data)), U55)


def test_the_damaged_or_missing_stream_is_named() -> None:
    first, second = stream_of_ones(conv([Stream(0, 0, 0)] * 2, U65), U65)
    op = conv([Stream(CONSTANTS, 0, len(first)), Stream(CONSTANTS, 4096, 3)], U65)
    with pytest.raises(
        WeightStreamError, match="weight stream 2 of 2 of the operation at byte 72 is damaged"
    ):
        WeightCache().get(op, memory_with((CONSTANTS, 0, first), (CONSTANTS, 4096, second[:3])), U65)
    with pytest.raises(WeightOrderError, match="byte 72 needs 2 weight streams, but it has 1"):
        WeightCache().get(conv([Stream(CONSTANTS, 0, 16)], U85), memory_with(), U85)


def test_sizes_beyond_any_model_are_refused_before_anything_is_decoded(decoders: Decoders) -> None:
    op, data = one_stream()
    huge = dataclasses.replace(op, shape=(1, 1, 65536), ifm_depth=65536)
    cache = WeightCache()
    cache.prepare([huge], memory_with((CONSTANTS, 32, data)), U55)
    with pytest.raises(WeightOrderError, match="byte 72 needs 4294967296 weights, too many to hold"):
        cache.get(huge, memory_with((CONSTANTS, 32, data)), U55)
    assert sum(decoders.calls) == 0


def test_all_weights_of_a_program_are_decoded_in_one_trip(decoders: Decoders) -> None:
    pairs = [one_stream(value, address=1024 * value) for value in (1, 2, 3)]
    memory = memory_with(*((CONSTANTS, 1024 * value, data) for value, (_, data) in enumerate(pairs, 1)))
    ops = [op for op, _ in pairs]
    cache = WeightCache()
    cache.prepare(ops, memory, U55)
    assert [cache.get(op, memory, U55).weights[0, 0, 0, 0] for op in ops] == [1, 2, 3]
    cache.prepare(ops, memory, U55)
    assert decoders.calls == [3]


def test_a_damaged_stream_does_not_keep_others_from_being_decoded(decoders: Decoders) -> None:
    good, data = one_stream(4)
    bad = conv([Stream(CONSTANTS, 4096, 3)], offset=99)
    memory = memory_with((CONSTANTS, 32, data), (CONSTANTS, 4096, data[:3]))
    cache = WeightCache()
    cache.prepare([good, bad], memory, U55)
    assert cache.get(good, memory, U55).weights[0, 0, 0, 0] == 4
    assert decoders.calls == [2]
    with pytest.raises(WeightStreamError, match="byte 99"):
        cache.get(bad, memory, U55)


def copy_of(data: bytes, source: int, target: int) -> DmaOp:
    return DmaOp(0, CONSTANTS, source, FAST, target, len(data))


def test_weights_that_will_be_copied_are_found_at_their_source(decoders: Decoders) -> None:
    """Two copies to the same place, one after the other: each operation gets what is there in its turn."""
    ops: list[Any] = []
    parts = []
    for value in (1, 2):
        op, data = one_stream(value, FAST, 64)
        parts.append((CONSTANTS, 1024 * value, data))
        ops += [copy_of(b"\0" * 16 + data, 1024 * value - 16, 48), op]
    memory = memory_with(*parts)
    cache = WeightCache()
    cache.prepare(ops, memory, U55)
    for value, (_, _, data) in enumerate(parts, 1):
        kernels = cache.get(ops[2 * value - 1], memory_with((FAST, 64, data)), U55)
        assert kernels.weights[0, 0, 0, 0] == value
    assert decoders.calls == [2]


INDEX = DmaIndex(CONSTANTS, 0, 1, 0, True)


@pytest.mark.parametrize(
    "changes",
    [
        {"counts": (1, 2), "source_strides": (0, 16), "target_strides": (0, 16)},
        {"index": INDEX},
        {"source_region": None},
        {"target": 72},
        {"length": 8},
        {"source_region": SCRATCH},
        {"source": REGION_BYTES},
    ],
    ids=["rows", "scattered", "own_memory", "end", "start", "computed", "no_memory"],
)
def test_weights_that_only_running_shows_are_left_for_then(
    changes: dict[str, Any], decoders: Decoders
) -> None:
    op, data = one_stream(1, FAST, 64)
    cache = WeightCache()
    copy = dataclasses.replace(copy_of(data, 0, 64), **changes)
    cache.prepare([copy, op], memory_with((CONSTANTS, 0, data)), U55)
    assert sum(decoders.calls) == 0
    memory = memory_with((FAST, 64, data))
    assert cache.get(op, memory, U55).weights[0, 0, 0, 0] == 1


def test_a_copy_beside_the_weights_does_not_matter(decoders: Decoders) -> None:
    op, data = one_stream(1, FAST, 64)
    memory = memory_with((FAST, 64, data))
    cache = WeightCache()
    cache.prepare([copy_of(data, 0, 64 + len(data)), copy_of(bytes(32), 0, 32), op], memory, U55)
    cache.get(op, memory, U55)
    assert decoders.calls == [1]


def test_the_oldest_weights_leave_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch, decoders: Decoders
) -> None:
    monkeypatch.setattr(weight_cache, "_KEPT", 2 * 64)
    pairs = [one_stream(value) for value in (1, 2, 3)]
    cache = WeightCache()

    def get(number: int) -> None:
        op, data = pairs[number]
        assert cache.get(op, memory_with((CONSTANTS, 32, data)), U55).weights[0, 0, 0, 0] == number + 1

    for number in (0, 1, 0, 2, 0):
        get(number)
    assert len(decoders.calls) == 3
    get(1)
    assert len(decoders.calls) == 4


def test_what_is_decoded_ahead_is_bounded(monkeypatch: pytest.MonkeyPatch, decoders: Decoders) -> None:
    pairs = [one_stream(value, address=1024 * value) for value in (1, 2, 3)]
    one = sum(stream_sizes(order_key(pairs[0][0], U55), 0)) + len(pairs[0][1])
    monkeypatch.setattr(weight_cache, "_AHEAD", 2 * one)
    memory = memory_with(*((CONSTANTS, 1024 * value, data) for value, (_, data) in enumerate(pairs, 1)))
    WeightCache().prepare([op for op, _ in pairs], memory, U55)
    assert decoders.calls == [2]


def test_what_the_order_depends_on() -> None:
    """Strides matter to part-kernel-first and depthwise streams of Ethos-U85, a second core to two streams."""
    kernel = Kernel(3, 3, 2, 3, 1, 2, part_kernel_first=True)
    stream = Stream(CONSTANTS, 0, 16)
    u55, u65, u65_alone, u85, u85_deep, u85_depthwise = (
        order_key(dataclasses.replace(conv(streams, config, kind=kind), kernel=kernel), config)
        for streams, config, kind, kernel in (
            ([stream], U55, Kind.CONV, kernel),
            ([stream] * 2, U65, Kind.CONV, kernel),
            ([stream], U65, Kind.CONV, kernel),
            ([stream], U85, Kind.CONV, kernel),
            ([stream], U85, Kind.CONV, dataclasses.replace(kernel, part_kernel_first=False)),
            ([stream], U85, Kind.DEPTHWISE, kernel),
        )
    )
    assert [key.cores for key in (u55, u65, u65_alone, u85)] == [1, 2, 1, 2]
    assert [(key.stride_y, key.stride_x) for key in (u55, u85, u85_deep, u85_depthwise)] == [
        (1, 1),
        (2, 3),
        (1, 1),
        (2, 3),
    ]
    assert (u55.dilation_y, u55.dilation_x, u55.ifm_bits) == (1, 2, 8)
    assert (u85_depthwise.ifm_depth, u85_depthwise.part_kernel_first) == (1, False)
    assert (u55.macs, u85.macs) == (0, 512)
