"""Decoding of compressed weight streams, isolated from the process.

Vela's decoder ends the whole process when a stream is damaged. It therefore runs in a forked child: all streams of
a program go there and back in one trip, and a child that dies is an error of the stream, not ours.
"""

from __future__ import annotations

import os
import resource
import signal
import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ethosu_sdk.npu.errors import WeightStreamError

Weights = npt.NDArray[np.int16]
_TIME_LIMIT_S = 60


def decode(streams: Sequence[bytes]) -> list[Weights]:
    """The weights of each stream, in stream order. WeightStreamError when one cannot be decoded."""
    if not streams:
        return []
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 warns of threads that hold locks: this child takes none of them and ends by os._exit.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _decode_and_exit(streams, writer)
    os.close(writer)
    finished = False
    try:
        with os.fdopen(reader, "rb") as pipe:
            data = pipe.read()
        finished = True
    finally:
        if not finished:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    return _split(data, len(streams), whole=status == 0)


def _decode_and_exit(streams: Sequence[bytes], writer: int) -> None:
    """The child: decode, write each result behind its count, leave without any clean-up."""
    try:
        from ethosu import mlw_codec

        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
        signal.alarm(_TIME_LIMIT_S)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        with os.fdopen(writer, "wb") as pipe:
            for stream in streams:
                weights = np.array(mlw_codec.decode(bytearray(stream)) if stream else [], np.int16)
                pipe.write(np.int64(weights.size).tobytes())
                pipe.write(weights.tobytes())
                pipe.flush()  # what is here when the decoder ends the process shows which stream it was
    except BaseException:
        os._exit(1)
    os._exit(0)


def _split(data: bytes, count: int, *, whole: bool) -> list[Weights]:
    found: list[Weights] = []
    position = 0
    while len(found) < count and position + 8 <= len(data):
        size = int(np.frombuffer(data, np.int64, 1, position)[0])
        position += 8
        if position + 2 * size > len(data):
            break
        found.append(np.frombuffer(data, np.int16, size, position))
        position += 2 * size
    if len(found) != count or not whole:
        raise WeightStreamError(f"weight stream {len(found)} of {count} is damaged and cannot be decoded")
    return found
