"""The connection to a device: a serial port, or a socket on this machine."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import select
import socket
import time
from collections.abc import Iterator
from typing import IO, Any, Protocol

from msgspec import Struct

from ethosu_sdk.base.errors import SimulationError, ToolError, UsageError
from ethosu_sdk.program import protocol
from ethosu_sdk.program.record_lines import UartRecord, parse_record
from ethosu_sdk.simulate.device import transfer

SERIAL, SOCKET = "serial", "socket"
FORMS = "serial:PORT or socket:HOST:PORT"
_CHUNK_BYTES = 1 << 16
_LONGEST_LINE = 1 << 20
_WRITE_S = 10.0


class DeviceGoneError(SimulationError):
    """The connection to a device broke."""


class Port(Protocol):
    """An open connection. DeviceGoneError when it breaks."""

    @property
    def adapter(self) -> str:
        """The hardware that this machine sees behind it; empty where it sees none."""
        ...

    def send(self, data: bytes) -> None: ...

    def receive(self, timeout_s: float) -> bytes:
        """What has arrived, or arrives first; nothing when the time is over."""
        ...


class Place(Struct, frozen=True):
    """Where a device is: `name` is a serial port, or HOST of a socket on `number`."""

    kind: str
    name: str
    number: int = 0


def parse_place(text: str) -> Place:
    """UsageError for what is no place, or a socket on another machine."""
    kind, _, name = text.partition(":")
    if kind == SERIAL and name:
        return Place(SERIAL, name)
    host, _, number = name.rpartition(":")
    if (
        kind != SOCKET
        or not host
        or not (number.isascii() and number.isdecimal() and 0 < int(number) < 65_536)
    ):
        raise UsageError(f"'{text}' is no device", f"give {FORMS}")
    host = host.strip("[]")
    try:
        is_own = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_own = False
    if not is_own:
        raise UsageError(
            f"'{text}' is on another machine", "a socket must be on this one: forward its port over ssh"
        )
    return Place(SOCKET, host, int(number))


@contextlib.contextmanager
def open_port(place: Place) -> Iterator[Port]:
    """The connection for the time of a `with` block; nobody else may open a serial port meanwhile.

    SimulationError when it cannot be opened, ToolError without pyserial.
    """
    if place.kind == SOCKET:
        with _connected(place) as connection:
            yield _SocketPort(connection, f"socket:{place.name}:{place.number}")
        return
    try:
        import serial
        from serial.tools import list_ports
    except ImportError as error:
        raise ToolError(
            "--device serial:… needs the package pyserial", "pip install 'ethosu-sdk[serial]'"
        ) from error
    try:
        opened = serial.Serial(
            place.name, protocol.WIRE_BAUD, timeout=0, write_timeout=_WRITE_S, exclusive=True
        )
    except (OSError, ValueError) as error:  # of which SerialException is one
        reason = getattr(error, "strerror", None) or str(error)
        if "lock" in str(error).lower():
            reason = "another program has it open"
        raise SimulationError(
            f"cannot open the serial port {place.name}: {reason}",
            "close what else uses it; `python -m serial.tools.list_ports -v` lists the ports",
        ) from error
    with contextlib.closing(opened):
        opened.reset_input_buffer()
        yield _SerialPort(opened, _adapter(list_ports, place.name))


def _adapter(list_ports: Any, name: str) -> str:
    """What pyserial knows of the hardware of a port: nothing of a pseudo-terminal."""
    real = os.path.realpath(name)
    rows = [row for row in list_ports.comports() if os.path.realpath(row.device) == real]
    return str(rows[0].hwid) if rows and rows[0].hwid not in (None, "n/a") else ""


@contextlib.contextmanager
def _connected(place: Place) -> Iterator[socket.socket]:
    try:
        connection = socket.create_connection((place.name, place.number), timeout=_WRITE_S)
    except OSError as error:
        raise SimulationError(
            f"cannot connect to {place.name}:{place.number}: {error.strerror or error}",
            "start what listens there first",
        ) from error
    with connection:
        yield connection


class _SocketPort:
    adapter = ""

    def __init__(self, connection: socket.socket, name: str) -> None:
        self._connection = connection
        self._name = name

    def send(self, data: bytes) -> None:
        try:
            self._connection.sendall(data)
        except OSError as error:
            raise _gone(self._name, error) from error

    def receive(self, timeout_s: float) -> bytes:
        try:
            if not select.select([self._connection], [], [], timeout_s)[0]:
                return b""
            data = self._connection.recv(_CHUNK_BYTES)
        except OSError as error:
            raise _gone(self._name, error) from error
        if not data:
            raise DeviceGoneError(f"the connection to {self._name} was closed by the other side")
        return data


class _SerialPort:
    def __init__(self, opened: Any, adapter: str) -> None:
        self._serial = opened
        self.adapter = adapter

    def send(self, data: bytes) -> None:
        try:
            self._serial.write(data)
        except OSError as error:
            raise _gone(self._serial.name, error) from error

    def receive(self, timeout_s: float) -> bytes:
        self._serial.timeout = timeout_s
        try:
            first = self._serial.read(1)
            return bytes(first + self._serial.read(self._serial.in_waiting)) if first else b""
        except (OSError, TypeError) as error:  # TypeError: of pyserial, for a port that was closed under it
            raise _gone(self._serial.name, error) from error


def _gone(name: str, error: Exception) -> DeviceGoneError:
    return DeviceGoneError(
        f"the connection to {name} broke: {error}", "the cable was pulled, or the device is off: run it again"
    )


class Wire:
    """A port that is read line by line: a :class:`ethosu_sdk.simulate.device.transfer.Link`."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._rest = bytearray()
        self._arrived = 0
        self._read = 0  # records without damage

    def send(self, data: bytes) -> None:
        self._port.send(data)

    def line(self, timeout_s: float) -> bytes | None:
        """The next line with its end; None when the time is over."""
        deadline = time.monotonic() + timeout_s
        while (end := self._rest.find(b"\n")) < 0:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return None
            data = self._port.receive(remaining)
            self._arrived += len(data)
            self._rest += data
            if len(self._rest) > _LONGEST_LINE and b"\n" not in data:
                self._rest.clear()  # no line of ours
        found = bytes(self._rest[: end + 1])
        del self._rest[: end + 1]
        return found

    def answer(self, timeout_s: float) -> UartRecord | None:
        deadline = time.monotonic() + timeout_s
        while (found := self.line(max(0.0, deadline - time.monotonic()))) is not None:
            record = record_of(found)
            if record is not None:
                self._read += 1
                return record
        return None

    def silence(self) -> str:
        if not self._arrived:
            return (
                "nothing arrived from it. Is it on, is the cable in, does it run the SDK's device firmware?"
            )
        if not self._read:
            return (
                f"{self._arrived:,} bytes arrived, but no record. Does it run the SDK's device firmware, with "
                f"{protocol.WIRE_BAUD:,} baud?"
            )
        return "frames or answers are lost or damaged"

    def copy_until_end(
        self, session: int, outputs: tuple[IO[bytes], ...], limits: Limits
    ) -> tuple[bytes, int]:
        """What the device prints until it says that the run has ended, also to `outputs`, and the exit code."""
        printed = bytearray()
        begun = last = time.monotonic()
        while True:
            due = min(begun + limits.whole_s, last + limits.idle_s)
            found = self.line(max(0.0, due - time.monotonic()))
            if found is None:
                raise SimulationError(_late(limits, time.monotonic() - begun, bytes(printed)))
            last = time.monotonic()
            record = record_of(found)
            if record is not None and transfer.is_reset(record):
                raise SimulationError("the device was reset in the middle of the run", "run it again")
            if record is not None and is_end(record, session):
                return bytes(printed), int(record.payload["value"])
            printed += found
            for output in outputs:
                output.write(found)
            if len(printed) > limits.most_bytes:
                raise SimulationError(f"the device printed more than {limits.most_bytes:,} bytes")


def is_end(record: UartRecord, session: int) -> bool:
    """Whether the device says that the run of `session` has ended."""
    row = record.payload
    return record.type == "transfer" and (row["session"], row["state"]) == (session, protocol.WIRE_ENDED)


class Limits(Struct, frozen=True):
    """Of a run: the time for all of it, the time without a line, and what may be printed."""

    whole_s: float
    idle_s: float
    most_bytes: int


def _late(limits: Limits, taken_s: float, printed: bytes) -> str:
    text = (
        f"the device did not end the run within {limits.whole_s:g} s"
        if taken_s >= limits.whole_s
        else f"the device is silent: it printed nothing for {limits.idle_s:g} s"
    )
    lines = [row.decode("ascii", "replace")[:160] for row in printed.splitlines()[-5:]]
    return "\n  ".join(
        [text, "last lines on the UART:" if lines else "nothing was printed on the UART", *lines]
    )


def record_of(line: bytes) -> UartRecord | None:
    """The record in a line; None for another line, or a damaged one."""
    try:
        return parse_record(line.rstrip(b"\r\n").decode("ascii"))
    except ValueError:
        return None
