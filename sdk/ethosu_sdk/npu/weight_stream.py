"""Decoding of compressed weight streams, isolated from the process.

Vela's decoder ends the whole process when a stream is damaged, and what a few bytes expand to has no bound. It
therefore runs in forked children with limits on memory and time: a child that dies is an error of the stream.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import math
import mmap
import os
import resource
import select
import signal
import struct
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ethosu_sdk.npu import errors
from ethosu_sdk.npu.operation import Weights

_TIME_LIMIT_S = 5
_WEIGHTS_PER_S = 1 << 20  # that the time limit allows for; an idle machine decodes forty times as many
_SPARE_BYTES = 1 << 26  # of memory for a child, beside the weights that it must decode
_SHARE = 1 << 16  # weights that are worth another child
_MOST_CHILDREN = 4
_PR_SET_PDEATHSIG = 1
_ENDING_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_REPORT = struct.Struct("=qq")  # index of a stream, and how many weights it holds


@dataclass(frozen=True)
class Coded:
    """A compressed stream and how many weights it must hold. `fast` is Ethos-U85's fixed-width format."""

    data: bytes
    size: int
    fast: bool = False


@dataclass(frozen=True)
class Decoded:
    """How many weights a stream holds (None: it is damaged), and the weights if they are as many as expected."""

    count: int | None
    weights: Weights | None


def decode(streams: Sequence[Coded]) -> Iterator[tuple[int, Decoded]]:
    """Each stream's index and weights, in the order in which they get ready.

    Streams that a child was yet to decode when it met a damaged one are left out.
    """
    shares = _shares(streams)
    first = np.cumsum([0, *(stream.size for stream in streams)]).tolist()
    memory = mmap.mmap(-1, max(2 * first[-1], 1))
    weights = np.frombuffer(memory, np.int16, first[-1])
    children = _Children()
    try:
        for share in shares:
            children.add(streams, share, [weights.ctypes.data + 2 * first[index] for index in share])
        yield from _decoded_here(streams)
        for index, count in children.reports():
            next(share for share in shares if index in share).remove(index)
            fits = count == streams[index].size
            yield index, Decoded(count, weights[first[index] : first[index + 1]] if fits else None)
    finally:
        children.end()
    for share in shares:
        yield from ((index, Decoded(None, None)) for index in share[:1])


def _decoded_here(streams: Sequence[Coded]) -> Iterator[tuple[int, Decoded]]:
    """The streams that need no child: those of the fast format, and those without a byte."""
    for index, stream in enumerate(streams):
        if stream.fast or not stream.data:
            found = _decode_fast(stream.data) if stream.fast else np.empty(0, np.int16)
            if found is None:
                yield index, Decoded(None, None)
            else:
                yield index, Decoded(found.size, found[: stream.size] if found.size >= stream.size else None)


def _shares(streams: Sequence[Coded]) -> list[list[int]]:
    """Indices of the streams that need a child, so divided that all children have about as much to do."""
    indices = [index for index, stream in enumerate(streams) if stream.data and not stream.fast]
    total = sum(streams[index].size for index in indices)
    count = min(_MOST_CHILDREN, len(os.sched_getaffinity(0)), 1 + total // _SHARE)
    shares: list[list[int]] = [[] for _ in range(count)]
    work = [0] * count
    for index in sorted(indices, key=lambda index: -streams[index].size):
        least = work.index(min(work))
        shares[least].append(index)
        work[least] += streams[index].size
    return shares


class _Children:
    """Child processes that decode streams to shared memory and report on one pipe."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self._alive: list[int] = []

    def add(self, streams: Sequence[Coded], share: Sequence[int], addresses: Sequence[int]) -> None:
        """Start a child that decodes the streams of `share`, each to its address."""
        if not share:
            return
        libraries = _decoder(), _c_library()  # loaded before the fork
        parent = os.getpid()
        # A signal must not run the parent's clean-up in the child, nor come before the child is noted here.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING_SIGNALS)
        try:
            with warnings.catch_warnings():
                # Python 3.12 warns of threads that hold locks: this child takes none of them and ends by os._exit.
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if child == 0:
                libraries[1].prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != parent:
                    os._exit(1)
                work = [(index, streams[index]) for index in share]
                _decode_and_exit(work, addresses, self._writer, libraries)
            self._alive.append(child)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def reports(self) -> Iterator[tuple[int, int]]:
        """(stream, count of its weights) of each decoded stream, until all children have ended."""
        os.close(self._writer)
        self._writer = -1
        while len(report := self._report()) == _REPORT.size:
            yield _REPORT.unpack(report)

    def _report(self) -> bytes:
        """The next report, which a child writes in one piece; nothing when all children have ended."""
        left_s = errors.left_s()
        ready, _, _ = select.select([self._reader], [], [], None if left_s == math.inf else max(0.0, left_s))
        if not ready:
            raise errors.over()
        return os.read(self._reader, _REPORT.size)

    def end(self) -> None:
        """End every process that still runs."""
        for child in self._alive:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):  # where SIGCHLD is ignored
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        for descriptor in (self._reader, self._writer):
            if descriptor >= 0:
                os.close(descriptor)


def _decode_and_exit(
    share: Sequence[tuple[int, Coded]], addresses: Sequence[int], writer: int, libraries: tuple[Any, Any]
) -> NoReturn:
    """The child: decode, report, leave without any clean-up."""
    try:
        gc.disable()  # what is garbage here is the parent's
        _limit([stream for _, stream in share])
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        decoder, libc = libraries
        # The decoder's exit() must not do what the parent's libraries do at its end: the last handler comes first.
        libc.on_exit(libc._exit, None)
        for (index, stream), address in zip(share, addresses, strict=True):
            found = ctypes.c_void_p()
            count = decoder.mlw_decode(stream.data, len(stream.data), ctypes.byref(found), 0)
            if not found:
                os._exit(1)  # there was not enough memory
            if count == stream.size:
                ctypes.memmove(address, found, 2 * count)
            decoder.mlw_free_outbuf(found)
            os.write(writer, _REPORT.pack(index, count))
    except BaseException:
        os._exit(1)
    os._exit(0)


def _limit(streams: Sequence[Coded]) -> None:
    """Limits on this process, a child: time, memory, no core dump."""
    seconds = _TIME_LIMIT_S + sum(stream.size for stream in streams) // _WEIGHTS_PER_S
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    signal.alarm(seconds)
    with open("/proc/self/statm", "rb") as file:
        present = int(file.read().split()[0]) * resource.getpagesize()
    needed = 2 * max(stream.size for stream in streams)
    for limit, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, present + needed + _SPARE_BYTES),
    ):
        _, most = resource.getrlimit(limit)
        resource.setrlimit(limit, (value if most == resource.RLIM_INFINITY else min(value, most), most))


@functools.cache
def _decoder() -> Any:
    """Vela's decoder as a library: its Python interface makes an object of each weight, for thrice the time."""
    from ethosu import mlw_codec

    library = ctypes.CDLL(mlw_codec.__file__)
    library.mlw_decode.argtypes = (
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.POINTER(ctypes.c_void_p),
        ctypes.c_int,
    )
    library.mlw_decode.restype = ctypes.c_int
    library.mlw_free_outbuf.argtypes = (ctypes.c_void_p,)
    library.mlw_free_outbuf.restype = None
    return library


@functools.cache
def _c_library() -> Any:
    """The C library, with the functions that a child needs looked up."""
    library = ctypes.CDLL(None)
    library.on_exit.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    library.on_exit.restype = ctypes.c_int
    library._exit.restype = None
    return library


_FAST_HEADER = 32
_FAST_TABLE = 16  # entries, nine bits each, from bit 112 on


def _decode_fast(data: bytes) -> Weights | None:
    """The weights of a stream in Ethos-U85's fixed-width format, and those that fill its last 32 bytes.

    None for a stream without a whole header. Header: bit 0 raw weights, bit 1 two-bit instead of four-bit indices,
    byte 13 what raw weights are off by, then the table of weights, sign in bit 0 (ethos-u-vela 5.1.0, mlw_codec).
    """
    if len(data) < _FAST_HEADER:
        return None
    header = int.from_bytes(data[:_FAST_HEADER], "little")
    body = np.frombuffer(data, np.uint8, offset=_FAST_HEADER)
    if header & 1:
        return body.view(np.int8).astype(np.int16) - np.frombuffer(data, np.int8, 1, 13)
    codes = [header >> 112 + 9 * entry & 0x1FF for entry in range(_FAST_TABLE)]
    table = np.array([-(code >> 1) if code & 1 else code >> 1 for code in codes], np.int16)
    bits = 2 if header & 2 else 4
    # All weights of a byte at once.
    indices = np.arange(256)[:, np.newaxis] >> np.arange(0, 8, bits) & (1 << bits) - 1
    return np.asarray(table[indices][body].reshape(-1))
