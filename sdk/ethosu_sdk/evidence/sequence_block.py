"""The sequence block of an input image: feeds, and the tensors of the program's state."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ethosu_sdk import protocol
from ethosu_sdk.feeds import ARGMAX, COPY, SAMPLE, STEP, Feed, choosing

_FORMS = {
    COPY: protocol.FEED_COPY,
    ARGMAX: protocol.FEED_ARGMAX,
    SAMPLE: protocol.FEED_SAMPLE,
    STEP: protocol.FEED_STEP,
}


@dataclass(frozen=True)
class StateTensor:
    """A tensor that the program keeps from one inference to the next: `size_bytes` at `offset` of an `arena`.

    `initial` is what it begins with; empty: what the program brings.
    """

    arena: int
    offset: int
    size_bytes: int
    initial: bytes = b""


@dataclass(frozen=True)
class SequenceBlock:
    """What makes a sequence of an image's sets.

    `rows` has, for each input, how many sets have a value of their own: the later ones are fed, or keep that of the
    last row. `first_step` is the number of the first set in a longer sequence.
    """

    rows: tuple[int, ...]
    feeds: tuple[Feed, ...] = ()
    states: tuple[StateTensor, ...] = ()
    first_step: int = 0

    @property
    def size_bytes(self) -> int:
        """The size of the block without its initial values."""
        return (
            protocol.SEQUENCE_HEADER_BYTES
            + protocol.SEQUENCE_FEED_BYTES * len(self.feeds)
            + protocol.SEQUENCE_STATE_BYTES * len(self.states)
        )

    def image_bytes(self, input_bytes: Sequence[int]) -> int:
        """What an image with inputs of these sizes needs for the block, in bytes, without inputs and their table."""
        rooms = sum(_aligned(input_bytes[feed.input]) for feed in self.feeds)
        return _aligned(self.size_bytes) + rooms + sum(_aligned(len(row.initial)) for row in self.states)


def encode(block: SequenceBlock, rooms: Mapping[int, tuple[int, int]], start: int) -> bytes:
    """The bytes of `block` for byte `start` of the image; `rooms` has offset and size by the number of the input."""
    words = struct.pack("<4I", len(block.feeds), len(block.states), block.first_step, 0)
    table = bytearray(words)
    for feed in block.feeds:
        table += _feed(feed, block.rows[feed.input], *rooms[feed.input])
    values = bytearray()
    first = start + _aligned(block.size_bytes)
    for state in block.states:
        at = first + len(values) if state.initial else 0
        table += struct.pack("<4I", state.arena, state.offset, state.size_bytes, at)
        values += state.initial.ljust(_aligned(len(state.initial)), b"\0")
    return bytes(table.ljust(first - start, b"\0") + values)


def feed_rows(
    block: SequenceBlock, rooms: Mapping[int, tuple[int, int]], start: int, count: int
) -> list[bytes]:
    """The rows of a call's feeds, whose `count` sets begin with number `start` of the image."""
    return [
        _feed(feed, start + block.rows[feed.input], *rooms[feed.input], end=start + count)
        for feed in block.feeds
    ]


def take_row(feed: Feed, start: int, room: tuple[int, int]) -> bytes:
    """The row of what the call that begins with set `start` takes from the call before."""
    return _feed(feed, start, *room, end=start, takes=True)


def encode_calls(rows: Sequence[bytes], calls: Sequence[tuple[int, int]]) -> bytes:
    """The block with the `rows` of all feeds and the `calls`, each a method's number and its sets."""
    head = struct.pack("<4I", len(rows), 0, 0, len(calls))
    return head + b"".join(rows) + b"".join(struct.pack("<4I", *call, 0, 0) for call in calls)


def _feed(
    feed: Feed,
    first: int,
    room: int,
    room_bytes: int,
    *,
    end: int = protocol.FEED_NO_END,
    takes: bool = False,
) -> bytes:
    row = protocol.FEED_LAST_ROWS if feed.row is None else feed.row
    factor = choosing.factor(feed.temperature, feed.scale or 1.0)
    head = (_FORMS[feed.form], feed.input, feed.output, row, room, room_bytes, first)
    words = struct.pack("<7IfIQI", *head, factor, feed.top_k, feed.seed, len(feed.stops))
    stops = struct.pack(f"<{len(feed.stops)}I", *feed.stops)
    behind = struct.pack("<2I", end, takes)
    return ((words + stops).ljust(protocol.FEED_END_AT, b"\0") + behind).ljust(
        protocol.SEQUENCE_FEED_BYTES, b"\0"
    )


def _aligned(size: int) -> int:
    return -(-size // protocol.INPUT_IMAGE_ALIGNMENT) * protocol.INPUT_IMAGE_ALIGNMENT
