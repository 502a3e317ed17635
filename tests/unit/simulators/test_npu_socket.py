"""The SDK's end of the NPU device's connection: every request is looked at before it is carried out."""

import os
import socket
import struct
from collections.abc import Iterator

import numpy as np
import pytest

from ethosu_sdk.errors import SimulationError
from ethosu_sdk.simulators.qemu.bank_access import BankAccess
from ethosu_sdk.simulators.qemu.console import Console
from ethosu_sdk.simulators.qemu.memory import NpuMemory
from ethosu_sdk.simulators.qemu.npu_bridge import NpuBridge
from ethosu_sdk.simulators.qemu.npu_socket import NpuSocket
from tests.integration.qemu.firmware.doubles import MemoryLikeDevice

WINDOW = 0x1000
READ, WRITE = 1, 2


class Ends:
    """A transport, the device behind it, and the socket that plays QEMU."""

    def __init__(self, ours: socket.socket, theirs: socket.socket, console: Console) -> None:
        self.device = MemoryLikeDevice()
        memory = NpuMemory({"DDR": np.zeros(16, np.uint8)}, BankAccess(None))  # type: ignore[arg-type]
        self.bridge = NpuBridge(self.device, memory, WINDOW)
        self.transport = NpuSocket(ours, console, self.bridge)
        self.qemu = theirs

    def ask(self, *fields: int) -> tuple[int, ...]:
        self.qemu.sendall(struct.pack("<BBHII", *fields))
        assert self.transport.service()
        return struct.unpack("<BBHI", self.qemu.recv(8))


@pytest.fixture
def ends() -> Iterator[Ends]:
    ours, theirs = socket.socketpair()
    uart, writer = os.pipe()
    with ours, theirs:
        yield Ends(ours, theirs, Console(uart, writer, ()))
    os.close(uart)
    os.close(writer)


def test_reads_and_writes_reach_the_device(ends: Ends) -> None:
    assert ends.ask(WRITE, 4, 0, 8, 0xFFFF_FFFE) == (0, 0, 0, 0)
    assert ends.ask(READ, 4, 0, 8, 0) == (0, 0, 0, 0xFFFF_FFFE)
    assert ends.ask(WRITE, 1, 0, 9, 0x12) == (0, 0, 0, 0)
    assert ends.ask(READ, 2, 0, 8, 0) == (0, 0, 0, 0x12FE)
    ends.device.irq = True
    assert ends.ask(READ, 1, 0, 11, 0) == (0, 1, 0, 0xFF)
    assert ends.bridge.accesses == 5


@pytest.mark.parametrize(
    "fields",
    [
        (0, 4, 0, 0, 0),
        (3, 4, 0, 0, 0),
        (READ, 0, 0, 0, 0),
        (READ, 3, 0, 0, 0),
        (READ, 8, 0, 0, 0),
        (READ, 4, 1, 0, 0),
        (READ, 4, 0, 2, 0),
        (READ, 2, 0, 1, 0),
        (READ, 4, 0, WINDOW, 0),
        (READ, 4, 0, 0xFFFF_FFFC, 0),
        (READ, 4, 0, 0, 1),
        (WRITE, 1, 0, 0, 0x100),
    ],
)
def test_what_is_no_access_is_refused_and_stops_the_guest(ends: Ends, fields: tuple[int, ...]) -> None:
    ends.qemu.sendall(struct.pack("<BBHII", *fields))
    with pytest.raises(SimulationError, match="sent an invalid access"):
        ends.transport.service()
    assert struct.unpack("<BBHI", ends.qemu.recv(8)) == (1, 0, 0, 0)
    assert (ends.device.words, ends.bridge.accesses) == ({}, 0)


def test_a_request_may_come_in_pieces(ends: Ends) -> None:
    request = struct.pack("<BBHII", READ, 4, 0, 4, 0)
    for piece in (request[:1], request[1:7]):
        ends.qemu.sendall(piece)
        assert ends.transport.service()
    ends.qemu.sendall(request[7:])
    assert ends.transport.service()
    assert len(ends.qemu.recv(64)) == 8


def test_the_end_of_the_connection_is_no_error(ends: Ends) -> None:
    ends.qemu.sendall(b"\x01")
    ends.qemu.shutdown(socket.SHUT_RDWR)
    assert ends.transport.service()
    assert not ends.transport.service()
