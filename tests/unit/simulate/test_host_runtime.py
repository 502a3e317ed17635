"""Messages to and from the host runner, and memory layouts."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk.base.errors import InputError, SimulationError
from ethosu_sdk.simulate import host_runtime
from ethosu_sdk.simulate.host_runtime import Kind, TensorInfo, runner_argv

SOURCE = Path(host_runtime.__file__).with_name("host_runner") / "remote_ethosu.hpp"


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.settimeout(0.1)
    with ours, theirs:
        yield ours, theirs


def test_messages_and_their_numbers(ends: tuple[socket.socket, socket.socket]) -> None:
    host_runtime.send_message(ends[1], Kind.DONE, [b"", b"abc", host_runtime.u32(7)])
    kind, blobs = host_runtime.receive_message(ends[0])
    assert (kind, blobs) == (Kind.DONE, [b"", b"abc", host_runtime.u32(7)])
    assert host_runtime.parse_u32(blobs[2]) == 7
    rows = re.findall(r"^\s*k(\w+) = (\d+),", SOURCE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name.upper(): int(value) for name, value in rows} == {kind.name: int(kind) for kind in Kind}


def test_silence_the_end_and_nonsense(ends: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(TimeoutError):
        host_runtime.receive_message(ends[0])
    ends[1].sendall(b"\xff" * 8)
    with pytest.raises(SimulationError, match="unknown message"):
        host_runtime.receive_message(ends[0])
    host_runtime.send_message(ends[1], Kind.RUN, [b"abc"])
    ends[1].close()
    assert host_runtime.receive_message(ends[0]) == (Kind.RUN, [b"abc"])
    with pytest.raises(EOFError):
        host_runtime.receive_message(ends[0])


def test_descriptors_and_layouts() -> None:
    info = TensorInfo("int16", (1, 3, 2, 2), (0, 2, 3, 1))
    array = np.arange(12, dtype=np.int16).reshape(info.shape)
    data = info.to_memory(array)
    assert np.frombuffer(data, np.int16).tolist() == [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]
    assert (info.memory_shape, info.nbytes) == ((1, 2, 2, 3), 24)
    np.testing.assert_array_equal(info.from_memory(data), array, strict=True)
    words = [6, 2, 4, 10, 1, 0]
    info = host_runtime.parse_descriptor(b"".join(host_runtime.u32(word) for word in words))
    assert info == TensorInfo("float32", (4, 10), (1, 0))
    with pytest.raises(InputError, match="ScalarType 15"):
        host_runtime.parse_descriptor(host_runtime.u32(15) + host_runtime.u32(0))


@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3, 4)])
def test_every_rank_survives(shape: tuple[int, ...]) -> None:
    order = tuple(reversed(range(len(shape))))
    info = TensorInfo("float32", shape, order)
    array = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    np.testing.assert_array_equal(info.from_memory(info.to_memory(array)), np.asarray(array), strict=True)


def test_paths_with_spaces_stay_one_word() -> None:
    argv = runner_argv("g++", Path("/a place/executorch"), Path("/out put/runner"), Path("/made here"))
    assert "/made here" in argv
    assert "/out put/runner" in argv
    assert "/a place/executorch/lib/libexecutorch.so" in argv
    assert "-Wl,-rpath,/a place/executorch/lib" in argv
