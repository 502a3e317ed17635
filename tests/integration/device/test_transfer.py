"""Transfers to the device firmware's own receiver, compiled for this machine, over a line with faults.

What the receiver would run is compared with what was sent, byte for byte; neither side is asked.
"""

from __future__ import annotations

import random
import struct
import subprocess
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import pytest

from ethosu_sdk.base import proc
from ethosu_sdk.firmware_build import cmake, generated_files
from ethosu_sdk.program import protocol
from ethosu_sdk.program.record_lines import UartRecord
from ethosu_sdk.run.input_image import encode_program_header
from ethosu_sdk.simulate.device import transfer
from ethosu_sdk.simulate.device.port import record_of
from ethosu_sdk.simulate.device.transfer import Content, TransferError
from tests.places import ROOT

pytestmark = pytest.mark.toolchain
FIRMWARE = ROOT / "firmware"
ROOM = 1 << 14


class Peer:
    """The compiled receiver. `ran` is every content that it would have run."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._in, self._out = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
        self.ran: list[bytes] = []

    def tell(self, kind: bytes, data: bytes = b"") -> bytes:
        self._in.write(kind + struct.pack("<I", len(data)) + data)
        self._in.flush()
        printed, content = self._read(), self._read()
        if content:
            self.ran.append(content)
        return printed

    def _read(self) -> bytes:
        (size,) = struct.unpack("<I", self._out.read(4))
        return self._out.read(size)


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    folder = tmp_path_factory.mktemp("peer")
    program = build_peer(folder)
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        device = Peer(process)
        device.tell(b"s")  # what it says of itself at its reset
        yield device
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(10) == 0


def build_peer(folder: Path) -> Path:
    """With sanitizers, of which every finding ends it."""
    names = ("app/crc32", "app/record_writer", "app/sha256", "app/device/receiver", "base/text")
    sources = [FIRMWARE / "tests" / "app" / "receiver_peer.cpp", FIRMWARE / "board" / "host" / "board.cpp"]
    sources += [FIRMWARE / f"{name}.cpp" for name in names]
    shared, program = folder / "shared", folder / "peer"
    cmake.mirror_sources(shared, generated_files.shared_sources())
    compiler = proc.find_tool("g++", hint="apt-get install g++")
    checks = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    includes = (f"-I{FIRMWARE}", f"-I{shared}")
    proc.run(
        [compiler, "-std=c++17", "-O1", *checks, *includes, *map(str, sources), "-o", str(program)],
        timeout_s=120,
    )
    return program


class FaultyLine:
    """A line to the peer that damages a share of what is sent and answered."""

    def __init__(
        self, peer: Peer, generator: random.Random, rate: float, foreign: bytes = b"", *, ends: bool = True
    ) -> None:
        self._peer = peer
        self._random = generator
        self._rate = rate
        self._foreign = foreign
        self._ends = 0.05 if ends else 0.0  # the share of faults that end a transfer
        self._held = b""
        self._text = b""
        self.faults: Counter[str] = Counter()

    def send(self, data: bytes) -> None:
        damaged = self._held + self._damage(data)
        self._held = b""
        if self._happens(0.3):  # it arrives behind the next
            self.faults["late"] += 1
            self._held, damaged = damaged, b""
        if self._happens(self._ends):
            self.faults["reset"] += 1
            self._text += self._peer.tell(b"r")
        if self._happens(self._ends):
            self.faults["second writer"] += 1
            damaged += self._foreign
        self._text += self._damage(self._peer.tell(b"b", damaged))

    def answer(self, timeout_s: float) -> UartRecord | None:
        while True:
            line, end, rest = self._text.partition(b"\n")
            if not end:
                self._text = b""
                self._text += self._damage(self._peer.tell(b"s"))
                if b"\n" not in self._text:
                    return None
                continue
            self._text = rest
            record = record_of(line)
            if record is not None:
                return record

    def silence(self) -> str:
        return "the line is faulty"

    def _happens(self, share: float = 1.0) -> bool:
        return self._random.random() < self._rate * share

    def _damage(self, data: bytes) -> bytes:
        if not data or not self._happens():
            return data
        at = self._random.randrange(len(data))
        noise, flipped = (
            self._random.randbytes(self._random.randint(1, 60)),
            data[at] ^ 1 << self._random.randrange(8),
        )
        damaged = {
            "flip": data[:at] + bytes([flipped]) + data[at + 1 :],
            "burst": data[:at] + noise + data[at + len(noise) :],
            "drop": data[:at] + data[at + self._random.randint(1, 8) :],
            "loss": b"",
            "twice": data + data,
            "cut": data[:at],
            "noise": data[:at] + noise + data[at:],
            "swap": data[at:] + data[:at],
        }
        kind = self._random.choice(list(damaged))
        self.faults[kind] += 1
        return damaged[kind]


def random_content(generator: random.Random) -> Content:
    program = generator.randbytes(generator.randint(1, 6000))
    image = generator.randbytes(generator.randint(1, 3000))
    return Content(encode_program_header(len(program)), program, image)


def is_of(ran: bytes, content: Content) -> bool:
    """Whether the peer would run this content: header and both rooms."""
    program, image = ran[20 : 20 + ROOM], ran[20 + ROOM :]
    return (
        ran[:20] == content.program_header
        and program[: len(content.program)] == content.program
        and image[: len(content.image)] == content.image
    )


def transfer_once(
    peer: Peer, generator: random.Random, rate: float, before: bytes
) -> tuple[bool, Counter[str], bytes]:
    """Send one content; whether the host says that it runs. It must be true, and no other may ever run."""
    content, session = random_content(generator), 1 + generator.getrandbits(31)
    foreign = before or transfer.frame(7, protocol.FRAME_START)
    line = FaultyLine(peer, generator, rate, foreign)
    peer.ran.clear()
    try:
        transfer.send_content(line, content, session)
        said = True
    except TransferError:
        said = False
    assert all(is_of(ran, content) for ran in peer.ran), "the device runs what nobody sent"
    assert len(peer.ran) <= 1, "the device runs twice"
    assert not said or peer.ran, "the host believes in a run that is none"
    last = content.program[: protocol.WIRE_CHUNK_BYTES]
    return said, line.faults, transfer.frame(session, protocol.FRAME_CHUNK, 0, last)


def campaign(peer: Peer, count: int, rates: tuple[float, ...], seed: int) -> tuple[int, int, Counter[str]]:
    """(faulty transfers, those that arrived all the same, faults) of so many."""
    generator = random.Random(seed)
    faulty = arrived = number = 0
    found: Counter[str] = Counter()
    before = b""
    while faulty < count:
        said, faults, before = transfer_once(peer, generator, rates[number % len(rates)], before)
        number += 1
        faulty += bool(faults)
        arrived += bool(faults) and said
        found += faults
    return faulty, arrived, found


def test_a_clean_line_takes_everything(peer: Peer) -> None:
    generator = random.Random(1)
    assert all(transfer_once(peer, generator, 0.0, b"")[0] for _ in range(50))


def test_light_faults_are_repaired(peer: Peer) -> None:
    """Without resets and second writers, which end a transfer, what is lost is sent again. Only the answer to the
    start cannot be asked for again: the device runs."""
    generator, said, lost = random.Random(2), 0, 0
    for _ in range(100):
        content = random_content(generator)
        line = FaultyLine(peer, generator, 0.1, ends=False)
        try:
            transfer.send_content(line, content, transfer.new_session())
            said += 1
        except TransferError:
            lost += 1
        assert is_of(peer.ran[-1], content)
    assert said + lost == 100
    assert said > 85


def test_nothing_wrong_is_accepted(peer: Peer) -> None:
    faulty, arrived, _ = campaign(peer, 300, (0.02, 0.1, 0.3, 0.6), seed=3)
    assert faulty == 300
    assert arrived > 100


@pytest.mark.thorough
def test_nothing_wrong_is_accepted_of_ten_thousand_faulty_transfers(peer: Peer) -> None:
    faulty, arrived, found = campaign(peer, 10_000, (0.01, 0.05, 0.1, 0.2, 0.4, 0.7), seed=4)
    assert faulty == 10_000
    assert arrived > 3000
    assert min(found.values()) > 100, found


def test_a_session_goes_on_where_it_was(peer: Peer) -> None:
    """The same session, opened again, has its chunks; another one begins anew."""
    peer.tell(b"r")
    content = Content(encode_program_header(3000), bytes(3000), bytes(100))
    data = content.program + content.image
    opening = struct.pack("<I", protocol.WIRE_VERSION) + content.program_header
    opening += struct.pack("<2I", 100, zlib.crc32(data))

    def state_of(frame: bytes) -> tuple[str, int]:
        record = record_of(peer.tell(b"b", frame).splitlines()[-1])
        assert record is not None
        return record.payload["state"], record.payload["value"]

    assert state_of(transfer.frame(5, protocol.FRAME_OPEN, 0, opening)) == ("ready", 0)
    assert state_of(transfer.frame(5, protocol.FRAME_CHUNK, 0, data[:1024])) == ("taken", 1)
    assert state_of(transfer.frame(5, protocol.FRAME_OPEN, 0, opening)) == ("ready", 1)
    assert state_of(transfer.frame(5, protocol.FRAME_CHUNK, 2, data[2048:3072])) == ("again", 1)
    assert state_of(transfer.frame(6, protocol.FRAME_OPEN, 0, opening)) == ("ready", 0)
    assert state_of(transfer.frame(5, protocol.FRAME_CHUNK, 1, data[1024:2048])) == ("refused", 0)


def test_what_does_not_fit_is_refused(peer: Peer) -> None:
    peer.tell(b"r")
    line = FaultyLine(peer, random.Random(0), 0.0)
    for program, image, words in ((ROOM + 1, 8, "the program"), (8, ROOM + 1, "the input image")):
        content = Content(encode_program_header(program), bytes(program), bytes(image))
        with pytest.raises(TransferError, match=f"{words} is larger than the room"):
            transfer.send_content(line, content, transfer.new_session())
    assert peer.ran == [] or all(len(row) for row in peer.ran)
