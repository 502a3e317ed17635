"""Messages between this process and the runner (runner.cpp), over a Unix stream socket.

A message is u32 kind, u32 number of blobs, then for each blob u64 size and its bytes, in the machine's byte
order: both ends run on one machine. A descriptor blob is u32 ScalarType, u32 rank, u32 sizes[rank],
u32 dim_order[rank]. Which blobs each kind carries is stated at `Kind`.
"""

from __future__ import annotations

import enum
import math
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk.errors import InputError, SimulationError
from ethosu_sdk.pte.scalar_types import NUMPY_TYPES

Array = NDArray[Any]
_HEAD = struct.Struct("=II")
_SIZE = struct.Struct("=Q")
_MAX_BLOBS = 1 << 16

_DTYPES = {row.number: row.dtype for row in NUMPY_TYPES}


class Kind(enum.IntEnum):
    """What a message says; the replies of the parent carry the kind that they answer."""

    DELEGATE = 1  # from the runner: index, payload; reply: u32 number of the delegate's inputs
    READY = 2  # from the runner, for each method: u32 number of inputs, a descriptor for each input and each output
    EXECUTE = 3  # from the runner: index, descriptor and data of each input, descriptor of each output;
    #              reply: the data of each output
    DONE = 4  # from the runner: descriptor and data of each output
    ERROR = 5  # from the runner: text
    RUN = 6  # to the runner: u32 number of the method, the data of each input
    READ = 7  # to the runner: u32 arena, offset and bytes of planned memory, nothing; reply: its content
    WRITE = 8  # to the runner: u32 arena, offset and bytes, the content; the reply is empty


@dataclass(frozen=True)
class TensorInfo:
    """A tensor's NumPy dtype name, logical shape, and dim_order: its axes from the outermost in memory to the
    innermost."""

    dtype: str
    shape: tuple[int, ...]
    dim_order: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(np.dtype(self.dtype).itemsize * math.prod(self.shape))

    @property
    def memory_shape(self) -> tuple[int, ...]:
        """The sizes in the order of memory."""
        return tuple(self.shape[axis] for axis in self.dim_order)

    def to_memory(self, array: Array) -> bytes:
        """The bytes of `array`, which has the logical shape, in the order of memory."""
        return array.transpose(self.dim_order).tobytes()

    def from_memory(self, data: bytes) -> Array:
        """The array with the logical shape whose bytes in the order of memory are `data`."""
        stored = np.frombuffer(data, self.dtype).reshape(self.memory_shape)
        axes = tuple(self.dim_order.index(axis) for axis in range(len(self.shape)))
        return stored.transpose(axes).copy(order="C")


def parse_descriptor(blob: bytes) -> TensorInfo:
    """Decode a descriptor blob; InputError for a type that NumPy lacks."""
    code, rank = _HEAD.unpack_from(blob)
    if code not in _DTYPES:
        raise InputError(f"the program uses tensors of ScalarType {code}, which NumPy does not have")
    words = struct.unpack_from(f"={2 * rank}I", blob, _HEAD.size)
    return TensorInfo(_DTYPES[code], words[:rank], words[rank:])


def u32(value: int) -> bytes:
    """`value` as a blob."""
    return struct.pack("=I", value)


def parse_u32(blob: bytes) -> int:
    """The value of a blob made by :func:`u32`."""
    value: int = struct.unpack("=I", blob)[0]
    return value


def send(connection: socket.socket, kind: Kind, blobs: Sequence[bytes]) -> None:
    """Send one message. OSError when the runner is gone or the socket's time-out passes."""
    parts = [_HEAD.pack(kind, len(blobs))]
    for blob in blobs:
        parts += [_SIZE.pack(len(blob)), blob]
    connection.sendall(b"".join(parts))


def receive(connection: socket.socket) -> tuple[Kind, list[bytes]]:
    """Wait for one message. EOFError when the runner is gone, TimeoutError when it stays silent."""
    kind, count = _HEAD.unpack(_exactly(connection, _HEAD.size))
    if kind not in Kind.__members__.values() or count > _MAX_BLOBS:
        raise SimulationError(f"the host runtime sent an unknown message ({kind}, {count} parts)")
    blobs = []
    for _ in range(count):
        (size,) = _SIZE.unpack(_exactly(connection, _SIZE.size))
        blobs.append(_exactly(connection, size))
    return Kind(kind), blobs


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray(size)
    view = memoryview(data)
    at = 0
    while at < size:
        count = connection.recv_into(view[at:])
        if count == 0:
            raise EOFError
        at += count
    return bytes(data)
