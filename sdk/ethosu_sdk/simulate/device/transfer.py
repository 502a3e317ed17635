"""The host's half of a transfer to a device: frames, and what is done about lost and damaged ones.

The firmware's half is firmware/app/device/receiver.cpp; :mod:`ethosu_sdk.program.protocol` describes both.
"""

from __future__ import annotations

import secrets
import struct
import zlib
from typing import Any, Protocol

from msgspec import Struct

from ethosu_sdk.base.errors import SimulationError
from ethosu_sdk.program import protocol
from ethosu_sdk.program.record_lines import UartRecord

ANSWER_S = 1.0
ATTEMPTS = 8  # in a row without progress
_HEADER = struct.Struct("<5I")
_WORD = struct.Struct("<I")
_WAKE = bytes(protocol.WIRE_WAKE_BYTES)


class TransferError(SimulationError):
    """A device does not take what it is sent, or says what contradicts it."""


class Link(Protocol):
    """A connection to a device."""

    def send(self, data: bytes) -> None: ...

    def answer(self, timeout_s: float) -> UartRecord | None:
        """The next undamaged record that the device sent; None when the time is over."""
        ...

    def silence(self) -> str:
        """Why there may be no answer, for an error message."""
        ...


class Content(Struct, frozen=True):
    """What a device gets for a run."""

    program_header: bytes
    program: bytes
    image: bytes


def frame(session: int, kind: int, number: int = 0, payload: bytes = b"") -> bytes:
    head = _HEADER.pack(protocol.FRAME_MAGIC, session, kind, number, len(payload))
    covered = head + _WORD.pack(zlib.crc32(head)) + payload
    return covered + _WORD.pack(zlib.crc32(covered))


def is_reset(record: UartRecord) -> bool:
    """Whether a device says that it has just started: its records are numbered from there."""
    return record.type == "device" and record.sequence == 0


def new_session() -> int:
    return 1 + secrets.randbelow(0xFFFF_FFFF)  # 0 is no session


def identify(link: Link) -> dict[str, Any]:
    """What the device says of itself. TransferError without an answer, or for another version of the transfer."""
    for _ in range(ATTEMPTS):
        link.send(_WAKE + frame(0, protocol.FRAME_IDENTIFY))
        while (record := link.answer(ANSWER_S)) is not None:
            if record.type != "device":
                continue
            if record.payload["wire"] != protocol.WIRE_VERSION:
                raise TransferError(
                    f"the device's firmware has version {record.payload['wire']} of the transfer, not "
                    f"{protocol.WIRE_VERSION}",
                    "build its firmware with this version of the SDK, and flash it",
                )
            return record.payload
    raise TransferError(
        f"the device does not answer: {link.silence()}", "press its reset button, and try again"
    )


def send_content(link: Link, content: Content, session: int) -> None:
    """Send `content` and start its run.

    It ends when the device says that it runs this content. TransferError when it does not.
    """
    data = content.program + content.image
    size = protocol.WIRE_CHUNK_BYTES
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    words = struct.pack("<2I", len(content.image), zlib.crc32(data))
    opening = _WORD.pack(protocol.WIRE_VERSION) + content.program_header + words
    transfer = _Transfer(link, session, len(chunks))
    transfer.ask(_WAKE + frame(session, protocol.FRAME_OPEN, 0, opening), protocol.WIRE_READY)
    while transfer.next < len(chunks):
        number = transfer.next
        transfer.ask(frame(session, protocol.FRAME_CHUNK, number, chunks[number]), protocol.WIRE_TAKEN)
    transfer.ask(frame(session, protocol.FRAME_START), protocol.WIRE_RUNNING)


class _Transfer:
    """The state of a session: the `next` chunk that the device wants, and the attempts since it went on."""

    def __init__(self, link: Link, session: int, chunks: int) -> None:
        self._link = link
        self._session = session
        self._chunks = chunks
        self._attempts = 0
        self.next = 0

    def ask(self, data: bytes, wanted: str) -> None:
        """Send a frame, again while it is lost or damaged; done when the answer is `wanted` or asks for another
        chunk."""
        asked = self.next
        while self._attempts < ATTEMPTS:
            self._attempts += 1
            self._link.send(data)
            if self._is_answered(wanted, asked):
                if wanted != protocol.WIRE_TAKEN or self.next != asked:
                    self._attempts = 0
                return
        raise TransferError(
            f"the device has {self.next} of {self._chunks} chunks, and does not go on after {ATTEMPTS} attempts: "
            f"{self._link.silence()}",
            "check the cable, and that nothing else writes to the port",
        )

    def _is_answered(self, wanted: str, asked: int) -> bool:
        while (record := self._link.answer(ANSWER_S)) is not None:
            if is_reset(record):
                raise TransferError("the device was reset in the middle of the transfer", "run it again")
            if record.type != "transfer":
                continue  # the rest of a run before
            state, value = record.payload["state"], record.payload["value"]
            if record.payload["session"] != self._session:
                if self._wants_again(record.payload):
                    return False
                continue
            self._refuse(state, value, record.payload["detail"])
            is_next = state == wanted and (state != protocol.WIRE_TAKEN or value > asked)
            if is_next or state == protocol.WIRE_AGAIN:
                self.next = max(self.next, value)
                return is_next or self.next != asked  # another chunk; else the same frame again
        return False

    def _refuse(self, state: str, value: int, detail: str) -> None:
        """TransferError for an answer of our session after which it cannot go on."""
        if state == protocol.WIRE_REFUSED and "session" in detail:
            raise TransferError(
                "another program writes to the device: frames of its session arrived", "end the other program"
            )
        if state == protocol.WIRE_REFUSED:
            raise TransferError(f"the device refuses the transfer: {detail}")
        if state == protocol.WIRE_ENDED:
            raise TransferError(
                "the device ran the program, but its answer to the start was lost", "run it again"
            )
        if value > self._chunks:
            raise TransferError(
                f"the device answers '{state} {value}', which does not belong to this transfer"
            )

    def _wants_again(self, answer: dict[str, Any]) -> bool:
        """Whether a device without our session wants the frame again. What is left of an earlier session may still
        arrive before ours is open."""
        if answer["state"] == protocol.WIRE_AGAIN:
            return not answer["session"]
        if answer["state"] != protocol.WIRE_REFUSED:
            return False
        if answer["session"]:
            raise TransferError(
                "the device has the session of another program, which writes to it as well",
                "end the other program",
            )
        if self.next or "no session" in answer["detail"]:
            raise TransferError(
                "the device has lost the transfer: it was reset, or another program used it", "run it again"
            )
        raise TransferError(f"the device refuses the transfer: {answer['detail']}")
