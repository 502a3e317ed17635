"""The gdb remote protocol: packets by the letter of the GDB manual, and a stub that misbehaves."""

import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, strategies as st

from ethosu_sdk.simulate.qemu import gdb_remote
from ethosu_sdk.simulate.qemu.gdb_remote import (
    GdbClosedError,
    GdbError,
    GdbRemote,
    GdbTimeoutError,
    PacketParser,
    expand,
    frame,
)
from tests.tables import each


def test_frames_have_the_manuals_checksum() -> None:
    assert frame(b"") == b"$#00"
    assert frame(b"OK") == b"$OK#9a"
    assert frame(b"c") == b"$c#63"
    assert frame(b"\xff" * 1000) == b"$" + b"\xff" * 1000 + b"#18"


@given(st.lists(st.binary(max_size=600)), st.integers(1, 50))
def test_packets_survive_any_segmentation(payloads: list[bytes], step: int) -> None:
    plain = [payload.translate(bytes.maketrans(b"$#}*", b"abcd")) for payload in payloads]
    stream = b"".join(b"+" + frame(payload) for payload in plain)
    parser = PacketParser()
    found = []
    for at in range(0, len(stream), step):
        parser.feed(stream[at : at + step])
        while (packet := parser.next_packet()) is not None:
            found.append(packet)
    assert found == plain


@each("stream", [b"$OK#9b", b"$OK#zz", b"$PK#9a", b"hello$OK#9a", b"-$OK#9a", b"junk"])
def test_damage_is_noticed(stream: bytes) -> None:
    parser = PacketParser()
    parser.feed(stream)
    with pytest.raises(GdbError):
        parser.next_packet()


@given(st.binary(max_size=200))
def test_any_bytes_give_packets_or_the_named_error(stream: bytes) -> None:
    parser = PacketParser()
    parser.feed(stream)
    try:
        while parser.next_packet() is not None:
            pass
    except GdbError:
        pass


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"0* ", b"0000"),  # the manual's own example: ASCII 32 - 29 = 3 further copies
        (b'1*"2', b"1111112"),
        (b"}\x03}\x04}]}\x0a", b"#$}*"),
        (b"a}\x0a* b", b"a****b"),  # an escaped asterisk, repeated
    ],
)
def test_escapes_and_run_lengths_expand(payload: bytes, expected: bytes) -> None:
    assert expand(payload) == expected


@pytest.mark.parametrize("payload", [b"a}", b"a*", b"* ", b"a*\x10"])
def test_cut_escapes_are_errors(payload: bytes) -> None:
    with pytest.raises(GdbError, match="malformed"):
        expand(payload)


class Stub:
    """A scripted stub: answers requests from a table, or by a function."""

    def __init__(self, answer: Callable[[bytes], bytes | None]) -> None:
        ours, theirs = socket.socketpair()
        self.client = GdbRemote(ours)
        self._ours, self._theirs = ours, theirs
        self.requests: list[bytes] = []
        self._answer = answer
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        parser = PacketParser()
        while data := self._theirs.recv(1 << 16):
            parser.feed(data)
            while (request := parser.next_packet()) is not None:
                self.requests.append(request)
                if (reply := self._answer(request)) is None:
                    self._theirs.shutdown(socket.SHUT_RDWR)
                    return
                if reply:
                    self._theirs.sendall(b"+" + frame(reply))

    def close(self) -> None:
        self._ours.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._ours.close()
        self._theirs.close()


@pytest.fixture
def stub() -> Iterator[Callable[[Callable[[bytes], bytes | None]], Stub]]:
    made: list[Stub] = []

    def make(answer: Callable[[bytes], bytes | None]) -> Stub:
        made.append(Stub(answer))
        return made[-1]

    yield make
    for one in made:
        one.close()


Make = Callable[[Callable[[bytes], bytes | None]], Stub]


def test_memory_is_read_and_written_in_pieces(stub: Make) -> None:
    memory = bytearray(i * 31 % 251 for i in range(100_000))

    def answer(request: bytes) -> bytes:
        head, _, body = request[1:].partition(b":")
        start, size = (int(word, 16) for word in head.split(b","))
        if request[:1] == b"m":
            return memory[start : start + size].hex().encode()
        data = bytes.fromhex(body.decode())
        assert len(data) == size
        memory[start : start + size] = data
        return b"OK"

    client = stub(answer).client
    assert client.read_memory(3, 90_001) == memory[3:90_004]
    assert client.read_memory(5, 0) == b""
    data = bytes(range(256)) * 200
    client.write_memory(7, data)
    assert memory[7 : 7 + len(data)] == data
    assert memory[6] == 6 * 31 % 251


def test_the_guest_resumes_and_requests_fit_into_packets(stub: Make) -> None:
    one = stub(lambda request: b"OK")
    one.client.write_memory(0xFFFF_0000, bytes(10_000))
    assert max(len(frame(request)) for request in one.requests) <= 4096
    one = stub(lambda request: b"T05" if request == b"c" else b"OK")
    one.client.resume([(3, 0x1234_5678), (25, 0xFFFF_FFFF)])
    assert one.client.receive(5) == b"T05"
    assert one.requests == [b"P3=78563412", b"P19=ffffffff", b"c"]


def test_registers_are_whole_little_endian_words_of_an_arm(stub: Make) -> None:
    words = b"".join((0x0100 + i).to_bytes(4, "little") for i in range(17))
    client = stub(lambda _: words.hex().encode() + b"0" * 64).client  # more follow on cores with an FPU
    assert client.registers() == tuple(0x0100 + i for i in range(17))
    with pytest.raises(GdbError, match="too short"):
        stub(lambda _: b"00" * 64).client.registers()
    with pytest.raises(GdbError, match="Arm"):
        stub(lambda _: b"l<target><architecture>riscv</architecture></target>").client.handshake()


@pytest.mark.parametrize("reply", [b"E14", b"", b"xyz", b"12345"])
def test_refusals_are_errors(stub: Make, reply: bytes) -> None:
    # An empty reply would be an answer that never comes, for this stub: say it is not supported.
    client = stub(lambda _: reply or b"E00").client
    with pytest.raises(GdbError):
        client.read_memory(0x9000_0000, 4)
    with pytest.raises(GdbError, match="refused"):
        client.watch(0x5810_2000, 4096)


def test_the_end_and_silence_are_named(stub: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    client = stub(lambda _: None).client
    with pytest.raises(GdbClosedError):
        client.request(b"g")
    with pytest.raises(GdbClosedError):
        client.request(b"g")
    client = stub(lambda _: b"").client
    assert client.receive(0.01) is None
    monkeypatch.setattr(gdb_remote, "_ANSWER_TIMEOUT_S", 0.05)
    with pytest.raises(GdbTimeoutError):
        client.request(b"g")
