"""Decoding weight streams: Vela's encoders say what is in them, damaged ones must not take this process along."""

import ctypes
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from ethosu import mlw_codec, regor
from numpy.typing import NDArray

from ethosu_sdk.npu import weight_stream
from ethosu_sdk.npu.weight_stream import Coded, Decoded
from tests.tables import each

LISTS = [[1, -2, 3], [0] * 300, [255, -255], list(range(-100, 100)), [7] * 5000]
WEIGHTS = [min(255, max(-255, round(value))) for value in np.random.default_rng(0).normal(0, 20, 3000)]
GOOD = bytes(mlw_codec.encode(WEIGHTS))
# A first slice without a palette: 32768 weights of no bits each, from a header of 23 bits. Eight of them.
SLICE = 6 | 0x7FFF << 3 | 7 << 18
EXPANDING = sum(SLICE << 23 * number for number in range(8)).to_bytes(23, "little")


def coded(values: Sequence[int]) -> Coded:
    return Coded(bytes(mlw_codec.encode(list(values))) if values else b"", len(values))


def decoded(streams: Sequence[Coded]) -> dict[int, Decoded]:
    return dict(weight_stream.decode(streams))


def leftovers() -> tuple[int, bool]:
    """Open file descriptors, and whether there is any child process, running or not."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        children = False
    else:
        children = True
    return len(list(Path("/proc/self/fd").iterdir())), children


@pytest.fixture(autouse=True)
def nothing_is_left() -> object:
    """No test leaves a file descriptor or a process behind."""
    before = leftovers()
    yield
    assert leftovers() == before


def test_every_stream_comes_back_and_those_to_come_can_be_given_up() -> None:
    found = decoded([coded(values) for values in LISTS])
    assert {
        index: result.weights.tolist() for index, result in found.items() if result.weights is not None
    } == (dict(enumerate(LISTS)))
    assert [found[index].count for index in range(len(LISTS))] == [len(values) for values in LISTS]
    assert decoded([]) == {}
    results = weight_stream.decode([coded(values) for values in LISTS])
    next(results)
    results.close()


def test_many_streams_are_shared_between_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight_stream, "_SHARE", 1000)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    lists = [[number - 100] * (100 + 10 * number) for number in range(60)]
    shares = weight_stream._shares([coded(values) for values in lists])
    assert len(shares) == 3
    assert sorted(index for share in shares for index in share) == list(range(60))
    found = decoded([coded(values) for values in lists])
    assert all((found[index].weights == values).all() for index, values in enumerate(lists))


def test_streams_that_are_empty_or_too_short() -> None:
    found = decoded([Coded(b"", 0), Coded(b"", 3)])
    assert found[0].weights is not None
    assert found[0].weights.size == 0
    assert found[1] == Decoded(0, None)
    stream = fast_stream(np.arange(100, dtype=np.int16))
    found = decoded(
        [Coded(stream[:31], 100, fast=True), Coded(stream[:-64], 100, fast=True), Coded(b"", 1, True)]
    )
    assert found == {0: Decoded(None, None), 1: Decoded(64, None), 2: Decoded(None, None)}


@pytest.mark.parametrize("wanted", [len(WEIGHTS) - 1, len(WEIGHTS) + 1, 0])
def test_a_count_that_is_not_the_wanted_one_is_told(wanted: int) -> None:
    assert decoded([Coded(GOOD, wanted)]) == {0: Decoded(len(WEIGHTS), None)}


DAMAGED = {
    "half": GOOD[: len(GOOD) // 2],
    "one_byte": GOOD[:1],
    "counting": bytes(range(1, 255)),
    "zeros": bytes(64),
}


@pytest.mark.parametrize("stream", DAMAGED.values(), ids=DAMAGED)
def test_damaged_streams_are_told_from_good_ones(stream: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    """Vela's decoder prints and ends its process on these: this process lives on, and nothing is printed."""
    found = decoded([Coded(GOOD, len(WEIGHTS)), Coded(stream, 1000), coded([1, 2, 3])])
    assert found[0].weights is not None
    assert found[0].weights.tolist() == WEIGHTS
    assert found[1] == Decoded(None, None)
    assert 2 not in found  # it was to be decoded after the damaged one
    assert capfd.readouterr() == ("", "")


def test_streams_that_expand_too_far_are_not_kept() -> None:
    (result,) = decoded([Coded(EXPANDING + b"\xff" * 16, 100)]).values()
    assert result == Decoded(8 * 32768, None)
    # Two megabytes that would be 50 GB of weights.
    start = time.process_time()
    found = decoded([Coded(EXPANDING * 100_000 + b"\xff" * 16, 100), coded([1, 2])])
    assert found == {0: Decoded(None, None)}
    assert time.process_time() - start < 5


def stuck(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """A decoder that does not come back from a stream of three bytes."""
    real = weight_stream._decoder()

    class Stuck:
        mlw_free_outbuf = real.mlw_free_outbuf

        @staticmethod
        def mlw_decode(data: bytes, length: int, found: object, verbose: int) -> int:
            if length == 3 and how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            while length == 3 and how == "busy":
                pass
            if length == 3:
                time.sleep(60)
            count: int = real.mlw_decode(data, length, found, verbose)
            return count

    monkeypatch.setattr(weight_stream, "_decoder", lambda: Stuck)


@pytest.mark.parametrize("how", ["killed", "busy", "asleep"])
def test_a_child_that_dies_or_hangs_is_ended(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    stuck(monkeypatch, how)
    monkeypatch.setattr(weight_stream, "_TIME_LIMIT_S", 1)
    start = time.process_time()
    found = decoded([Coded(GOOD, len(WEIGHTS)), Coded(b"abc", 3)])
    assert found[0].count == len(WEIGHTS)
    assert found[1] == Decoded(None, None)
    assert time.process_time() - start < 3


def test_any_damage_is_contained() -> None:
    """Flipped bits, cut ends, inserted and random bytes."""
    generator = np.random.default_rng(0)
    start = time.process_time()
    outcomes = {"damaged": 0, "other count": 0, "other weights": 0}
    for _ in range(50):
        stream = bytearray(GOOD)
        kind = generator.integers(4)
        place = int(generator.integers(len(stream)))
        if kind == 0:
            for _ in range(generator.integers(1, 4)):
                stream[generator.integers(len(stream))] ^= 1 << generator.integers(8)
        elif kind == 1:
            del stream[place:]
        elif kind == 2:
            stream[place:place] = generator.bytes(generator.integers(1, 40))
        else:
            stream = bytearray(generator.bytes(generator.integers(1, 200)))
        (result,) = decoded([Coded(bytes(stream), len(WEIGHTS))]).values()
        if result.weights is not None:
            outcomes["other weights"] += 1
        else:
            outcomes["damaged" if result.count is None else "other count"] += 1
    assert outcomes["damaged"] > 16
    assert time.process_time() - start < 30


def fast_stream(values: NDArray[np.int16], flags: int = 0) -> bytes:
    """`values` in Ethos-U85's fast format, by Vela's encoder (mlw_encode.h of ethos-u-vela 5.1.0)."""

    class Result(ctypes.Structure):
        _fields_ = (
            ("encoded_data", ctypes.POINTER(ctypes.c_uint8)),
            ("encoded_length", ctypes.c_int32),
            ("source_length", ctypes.c_int32),
            ("section_info", ctypes.c_void_p),
            ("section_count", ctypes.c_int32),
        )

    library = ctypes.CDLL(regor.__file__)
    library.mle_create_context.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.mle_create_context(2))
    result = Result()
    length = library.mle_encode(
        context, ctypes.byref(result), values.ctypes.data_as(ctypes.c_void_p), values.size, flags
    )
    assert length > 0
    data = bytes(result.encoded_data[:length])
    library.mle_free(ctypes.byref(result))
    library.mle_destroy_context(context)
    return data


@each(
    ("values", "bits"),
    [
        ([3, -3, 0, 255], 2),
        (list(range(-8, 8)), 4),
        ([-255, 255, *range(14)], 4),
        (list(range(-128, 128)), 8),
        (list(range(-200, 56)), 8),
        (list(range(-5, 250)), 8),
    ],
    ids=["four", "sixteen", "nine_bits", "raw", "raw_low", "raw_high"],
)
def test_fast_streams_of_velas_encoder_come_back(values: list[int], bits: int) -> None:
    weights = np.random.default_rng(0).permutation(np.array(values * 9, np.int16))
    stream = fast_stream(weights)
    assert len(stream) == 32 + -(-weights.size * bits // 256) * 32
    (result,) = decoded([Coded(stream, weights.size, fast=True)]).values()
    assert result.weights is not None
    assert result.weights.dtype == np.int16
    np.testing.assert_array_equal(result.weights, weights)
