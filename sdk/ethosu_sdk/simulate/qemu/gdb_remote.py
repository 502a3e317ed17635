"""A client of the gdb remote serial protocol over a connected socket, as far as QEMU's stub speaks it.

Source: GDB manual, appendix "gdb Remote Serial Protocol". QEMU's stub takes the ``$`` of the next request as
the acknowledgement of its last answer, so this client sends none and skips those it receives. A byte that is
sent while the guest runs stops the guest: nothing but :meth:`GdbRemote.interrupt` may be sent then.
"""

from __future__ import annotations

import itertools
import re
import select
import socket
import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np

REGISTER_PC = 15
REGISTER_XPSR = 25  # its number in packets `p` and `P`; in the answer to `g` it stands 17th

_GENERAL_REGISTERS = 17  # r0 to r12, sp, lr, pc, xPSR: the M-profile feature's order
_READ_BYTES = 2032  # QEMU's packets end at 4096 bytes: this many in hexadecimal fit with room for the request
_PIPELINE = 16  # requests under way: 64 KiB, so that neither side's socket buffer fills up
_ANSWER_TIMEOUT_S = 30.0
_MAX_PACKET_BYTES = 1 << 16  # sixteen times QEMU's
_EXITED = re.compile(rb"W([0-9a-fA-F]{2})(?:;process:[0-9a-fA-F]+)?")
_STOPPED = re.compile(rb"[ST]([0-9a-fA-F]{2})")


class GdbError(Exception):
    """The stub refused a request or broke the protocol."""


class GdbClosedError(GdbError):
    """The stub closed the connection: the simulator has ended."""


class GdbTimeoutError(GdbError):
    """The stub gave no answer in time."""


def exit_code(packet: bytes) -> int | None:
    """The code of an exit packet (``W00``); None for another packet. GdbError when it is malformed."""
    return _number(_EXITED.fullmatch(packet), packet, b"W")


def stop_signal(packet: bytes) -> int | None:
    """The signal of a stop reply (``T05…``, ``S05``); None for another packet. GdbError when it is malformed."""
    return _number(_STOPPED.match(packet), packet, b"ST")


def _number(match: re.Match[bytes] | None, packet: bytes, kinds: bytes) -> int | None:
    if match is None and packet[:1] and packet[:1] in kinds:
        raise GdbError(f"the stop reply {packet[:20]!r} is malformed")
    return None if match is None else int(match[1], 16)


def frame(payload: bytes) -> bytes:
    """`payload` as one packet, with its checksum."""
    return b"$%s#%02x" % (payload, checksum(payload))


def checksum(payload: bytes) -> int:
    """The sum of all bytes modulo 256."""
    if len(payload) < 256:  # NumPy's overhead pays off for memory contents only
        return sum(payload) & 0xFF
    return int(np.frombuffer(payload, np.uint8).sum(dtype=np.uint64)) & 0xFF


def expand(payload: bytes) -> bytes:
    """Undo the protocol's escapes (``}x``) and run lengths (``x*n``). GdbError when one is cut off."""
    if b"}" not in payload and b"*" not in payload:
        return payload
    out = bytearray()
    stream = iter(payload)
    for byte in stream:
        if byte not in b"}*":
            out.append(byte)
            continue
        argument = next(stream, None)
        if argument is None or (byte == ord("*") and (not out or argument < 29)):
            raise GdbError(f"malformed packet {payload[:20]!r}")
        if byte == ord("}"):
            out.append(argument ^ 0x20)
        else:
            out += out[-1:] * (argument - 29)
    return bytes(out)


class PacketParser:
    """Packets out of a byte stream, checksums verified; acknowledgements between them are skipped."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def next_packet(self) -> bytes | None:
        """The next complete packet's payload; None while it is incomplete. GdbError when it is damaged."""
        buffer = self._buffer
        start = buffer.find(b"$")
        junk = buffer[: start if start >= 0 else len(buffer)]
        if junk.strip(b"+"):
            raise GdbError(f"unexpected bytes between packets: {bytes(junk[:20])!r}")
        del buffer[: len(junk)]
        end = buffer.find(b"#", 1)
        if max(end, len(buffer) if end < 0 else 0) > _MAX_PACKET_BYTES:
            raise GdbError(f"a packet has more than {_MAX_PACKET_BYTES:,} bytes: {bytes(buffer[:20])!r}")
        if end < 0 or len(buffer) < end + 3:
            return None
        payload, digits = bytes(buffer[1:end]), bytes(buffer[end + 1 : end + 3])
        del buffer[: end + 3]
        if digits.lower() != b"%02x" % checksum(payload):
            raise GdbError(f"checksum of packet {payload[:20]!r} is wrong")
        return expand(payload)


def _wait_readable(file_descriptor: int, timeout_s: float) -> bool:
    return bool(select.select([file_descriptor], [], [], timeout_s)[0])


class GdbRemote:
    """One connection to a stub. Every method may raise GdbError, GdbClosedError or GdbTimeoutError.

    `wait(fd, timeout_s)` blocks until `fd` is readable (True) or the time is over (False); a caller that has
    other streams to drain meanwhile hands in its own.
    """

    def __init__(
        self, connection: socket.socket, wait: Callable[[int, float], bool] = _wait_readable
    ) -> None:
        self._socket = connection
        self._socket.settimeout(_ANSWER_TIMEOUT_S)
        self._descriptor = connection.fileno()
        self._wait = wait
        self._parser = PacketParser()

    def send(self, *payloads: bytes) -> None:
        """Send requests without waiting for their answers."""
        self._send_raw(b"".join(map(frame, payloads)))

    def interrupt(self) -> None:
        """Stop the running guest; its stop reply follows."""
        self._send_raw(b"\x03")

    def _send_raw(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except TimeoutError as error:
            raise GdbTimeoutError("the gdb stub takes no request") from error
        except OSError as error:
            raise GdbClosedError(f"the gdb stub is gone: {error.strerror}") from error

    def receive(self, timeout_s: float) -> bytes | None:
        """The next packet; None when none is complete within `timeout_s` seconds."""
        deadline = time.monotonic() + timeout_s
        remaining_s = timeout_s
        while (packet := self._parser.next_packet()) is None:
            # A stream without a packet would be readable for ever.
            if remaining_s < 0 or not self._wait(self._descriptor, remaining_s):
                return None
            remaining_s = deadline - time.monotonic()
            try:
                data = self._socket.recv(1 << 16)
            except OSError as error:
                raise GdbClosedError(f"the gdb stub is gone: {error.strerror}") from error
            if not data:
                raise GdbClosedError("the gdb stub closed the connection")
            self._parser.feed(data)
        return packet

    def answer(self) -> bytes:
        """The answer to the oldest request under way."""
        packet = self.receive(_ANSWER_TIMEOUT_S)
        if packet is None:
            raise GdbTimeoutError(f"the gdb stub gave no answer within {_ANSWER_TIMEOUT_S:g} s")
        return packet

    def request(self, payload: bytes) -> bytes:
        self.send(payload)
        return self.answer()

    def expect_ok(self, what: str) -> None:
        """Take one answer, which must be ``OK``; GdbError that names `what` otherwise."""
        answer = self.answer()
        if answer != b"OK":
            raise GdbError(f"the gdb stub refused {what}: {answer[:40]!r}")

    def handshake(self) -> None:
        """Ask for the stop reason and the target description.

        QEMU answers `p` and `P` only once it was asked for the description.
        """
        self.request(b"?")
        description = self.request(b"qXfer:features:read:target.xml:0,ffb")
        if b"<architecture>arm" not in description:
            raise GdbError("the gdb stub does not describe an Arm processor")

    def registers(self) -> tuple[int, ...]:
        """r0 to r12, sp, lr, pc and xPSR, in this order."""
        raw = _from_hex(self.request(b"g"))
        if len(raw) < 4 * _GENERAL_REGISTERS:
            raise GdbError(f"the register packet is too short: {len(raw)} bytes")
        return tuple(int.from_bytes(raw[at : at + 4], "little") for at in range(0, 4 * _GENERAL_REGISTERS, 4))

    def watch(self, address: int, size_bytes: int) -> None:
        """Stop the guest at every load and store in the given range, before the access is made."""
        self.send(b"Z4,%x,%x" % (address, size_bytes))
        self.expect_ok(f"an access watchpoint at {address:#x}")

    def resume(self, writes: Iterable[tuple[int, int]]) -> None:
        """Set registers, given as (number, value), and let the guest run: one round trip for all."""
        packets = [
            b"P%x=%s" % (number, value.to_bytes(4, "little").hex().encode()) for number, value in writes
        ]
        self.send(*packets, b"c")
        for _ in packets:
            self.expect_ok("to set a register")

    def read_memory(self, address: int, size_bytes: int) -> bytes:
        """`size_bytes` bytes of guest memory as the processor sees it. GdbError where there is none."""
        requests = (b"m%x,%x" % piece for piece in _pieces(address, size_bytes))
        return b"".join(_from_hex(answer) for answer in self._pipelined(requests))

    def write_memory(self, address: int, data: bytes | memoryview) -> None:
        """Write guest memory as the processor sees it. GdbError where there is none."""
        view = memoryview(data).cast("B")
        requests = (
            b"M%x,%x:%s" % (at, size, view[at - address : at - address + size].hex().encode())
            for at, size in _pieces(address, len(view))
        )
        for answer in self._pipelined(requests):
            if answer != b"OK":
                raise GdbError(f"guest memory at {address:#x} was not written: {answer[:40]!r}")

    def _pipelined(self, requests: Iterator[bytes]) -> Iterator[bytes]:
        """The answers, in order, with some requests under way all the time."""
        under_way = len(first := list(itertools.islice(requests, _PIPELINE)))
        self.send(*first)
        for request in requests:
            yield self.answer()
            self.send(request)
        for _ in range(under_way):
            yield self.answer()


def _pieces(address: int, size_bytes: int) -> Iterator[tuple[int, int]]:
    for at in range(address, address + size_bytes, _READ_BYTES):
        yield at, min(_READ_BYTES, address + size_bytes - at)


def _from_hex(answer: bytes) -> bytes:
    try:
        return bytes.fromhex(answer.decode("ascii"))
    except ValueError as error:  # "E14" and the like
        raise GdbError(f"the gdb stub refused to read: {answer[:40]!r}") from error
