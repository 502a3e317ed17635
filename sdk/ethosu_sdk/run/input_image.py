"""What the host writes into memory before a run: the input image, and the header of a resident program."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.program import feeds, protocol
from ethosu_sdk.program.feeds import ARGMAX, COPY, SAMPLE, STEP, Feed

NO_NONCE = bytes(protocol.INPUT_IMAGE_NONCE_BYTES)
_LARGEST = 0xFFFF_FFFF
_FORMS = {
    COPY: protocol.FEED_COPY,
    ARGMAX: protocol.FEED_ARGMAX,
    SAMPLE: protocol.FEED_SAMPLE,
    STEP: protocol.FEED_STEP,
}


class StateTensor(Struct, frozen=True):
    """A tensor that the program keeps from one inference to the next: `size_bytes` at `offset` of an `arena`.
    `initial` is what it begins with; empty: what the program brings."""

    arena: int
    offset: int
    size_bytes: int
    initial: bytes = b""


class SequenceBlock(Struct, frozen=True):
    """What makes a sequence of an image's sets. `rows` has, for each input, how many sets have a value of their own:
    the later ones are fed, or keep that of the last row. `first_step` is the number of the first set in a longer
    sequence."""

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


class StreamPiece(Struct, frozen=True):
    """A part of the command stream of the program's delegate number `delegate` that runs as a job of its own."""

    delegate: int
    commands: bytes


class ImageOptions(Struct, frozen=True):
    counts_cycles: bool = False
    resets_state: bool = False
    sends_last: bool = False
    sends_state: bool = False

    @property
    def word(self) -> int:
        return (
            protocol.INPUT_IMAGE_COUNTS_CYCLES * self.counts_cycles
            + protocol.INPUT_IMAGE_RESETS_STATE * self.resets_state
            + protocol.INPUT_IMAGE_SENDS_LAST * self.sends_last
            + protocol.INPUT_IMAGE_SENDS_STATE * self.sends_state
        )


PLAIN = ImageOptions()


def encode_image(
    sets: Sequence[Sequence[bytes]],
    event_groups: Sequence[Sequence[int]] = (),
    repeats: int = 1,
    nonce: bytes = NO_NONCE,
    *,
    asked: ImageOptions = PLAIN,
    pieces: Sequence[StreamPiece] = (),
    sequence: SequenceBlock | None = None,
) -> bytes:
    """The image for `sets`, each the raw bytes of the model's inputs in order, each to be run `repeats` times.
    `event_groups` are PMU event numbers, at most eight in a group, at most 32 groups: repeat k counts those of group
    k modulo their number; none leaves the choice to the firmware. The firmware seals its records with `nonce`. With
    `pieces`, the last of the `repeats` runs those. With `sequence`, the sets are its steps. InputError for more than
    that."""
    _check_counts(sets, event_groups, repeats)
    per_set = len(sets[0]) if sets else 0
    start = _start(len(sets), per_set)
    table, body, rooms = _inputs(sets, start, sequence)
    pieces_at = start + len(body)
    image = bytearray(start) + body + _pieces(pieces, pieces_at)
    sequence_at = len(image)
    if sequence is not None:
        image += _encoded_sequence(sequence, rooms, sequence_at)
    _put(image, protocol.INPUT_IMAGE_REPEATS_AT, repeats)
    _put(image, protocol.INPUT_IMAGE_PIECES_AT, pieces_at if pieces else 0)
    _put(image, protocol.INPUT_IMAGE_PIECE_COUNT_AT, len(pieces))
    counts = (len(sets), per_set, 0 if sequence is None else sequence_at)
    return _finished(image, table, counts, event_groups, nonce, asked)


class ImageCall(Struct, frozen=True):
    """A call of the method that the firmware loads as number `method`: its sets of inputs, and the sequence that they
    are. Inputs of the first set come from the call before by `takes`."""

    method: int
    sets: Sequence[Sequence[bytes]]
    sequence: SequenceBlock
    takes: tuple[Feed, ...] = ()


def encode_image_of_calls(
    calls: Sequence[ImageCall],
    columns: int,
    nonce: bytes = NO_NONCE,
    *,
    asked: ImageOptions = PLAIN,
    event_groups: Sequence[Sequence[int]] = (),
) -> bytes:
    """The image for `calls`, one behind the other. `columns` is the largest number of inputs of a method that the
    firmware loads. InputError for more than an image holds."""
    count = sum(len(call.sets) for call in calls)
    _check_counts(range(count), event_groups, 1)
    start = _start(count, columns)
    table, body, rows, done = bytearray(), bytearray(), [], 0
    for call in calls:
        own, data, rooms = _inputs(call.sets, start + len(body), call.sequence)
        own, places = _with_takes(own, call, rooms)
        width = protocol.INPUT_IMAGE_REFERENCE_BYTES * len(call.sets[0])
        for number in range(len(call.sets)):
            row = own[number * width : (number + 1) * width]
            table += row.ljust(protocol.INPUT_IMAGE_REFERENCE_BYTES * columns, b"\0")
        body += data
        end, given = done + len(call.sets), call.sequence.rows
        for feed in call.sequence.feeds:
            rows.append(_feed(feed, done + given[feed.input], *rooms[feed.input], end=end))
        rows += [_feed(feed, done, *places[feed.input], end=done, takes=True) for feed in call.takes]
        done = end
    image = bytearray(start) + body
    sequence_at = len(image)
    image += struct.pack("<4I", len(rows), 0, 0, len(calls)) + b"".join(rows)
    image += b"".join(struct.pack("<4I", call.method, len(call.sets), 0, 0) for call in calls)
    _put(image, protocol.INPUT_IMAGE_REPEATS_AT, 1)
    return _finished(image, bytes(table), (count, columns, sequence_at), event_groups, nonce, asked)


def _with_takes(
    table: bytes, call: ImageCall, rooms: dict[int, tuple[int, int]]
) -> tuple[bytes, dict[int, tuple[int, int]]]:
    """The table of a call's inputs, and where the ones that it takes are made: in the place of the value that is
    given, or where that is the only one before a feed, in the feed's room, which counts on from there."""
    changed, places = bytearray(table), {}
    for feed in call.takes:
        at = protocol.INPUT_IMAGE_REFERENCE_BYTES * feed.input
        offset, size = struct.unpack_from("<2I", table, at)
        places[feed.input] = offset, size
        if call.sequence.rows[feed.input] == 1 and feed.input in rooms:
            places[feed.input] = rooms[feed.input]
            struct.pack_into("<2I", changed, at, *rooms[feed.input])
    return bytes(changed), places


def _start(sets: int, columns: int) -> int:
    table = protocol.INPUT_IMAGE_REFERENCE_BYTES * sets * columns
    return _aligned(protocol.INPUT_IMAGE_HEADER_BYTES + table)


def _finished(
    image: bytearray,
    table: bytes,
    counts: tuple[int, int, int],
    event_groups: Sequence[Sequence[int]],
    nonce: bytes,
    asked: ImageOptions,
) -> bytes:
    """The image with its header; `counts` are sets, inputs of each, and the offset of the sequence block."""
    header_bytes = protocol.INPUT_IMAGE_HEADER_BYTES
    image[header_bytes : header_bytes + len(table)] = table
    _put(image, protocol.INPUT_IMAGE_MAGIC_AT, protocol.INPUT_IMAGE_MAGIC)
    _put(image, protocol.INPUT_IMAGE_VERSION_AT, protocol.INPUT_IMAGE_VERSION)
    _put(image, protocol.INPUT_IMAGE_BYTES_AT, len(image))
    _put(image, protocol.INPUT_IMAGE_SETS_AT, counts[0])
    _put(image, protocol.INPUT_IMAGE_INPUTS_AT, counts[1])
    _put(image, protocol.INPUT_IMAGE_EVENT_GROUP_COUNT_AT, len(event_groups))
    image[protocol.INPUT_IMAGE_NONCE_AT : protocol.INPUT_IMAGE_NONCE_AT + len(nonce)] = nonce
    _put(image, protocol.INPUT_IMAGE_OPTIONS_AT, asked.word)
    _put(image, protocol.INPUT_IMAGE_SEQUENCE_AT, counts[2])
    for number, row in enumerate(event_groups):
        group_at = protocol.INPUT_IMAGE_EVENT_GROUPS_AT + protocol.INPUT_IMAGE_EVENT_GROUP_BYTES * number
        _put(image, group_at, len(row), *row)
    covered = memoryview(image)[protocol.INPUT_IMAGE_CRC_COVERS_FROM :]
    _put(image, protocol.INPUT_IMAGE_CRC_AT, zlib.crc32(covered))
    return bytes(image)


def _inputs(
    sets: Sequence[Sequence[bytes]], start: int, sequence: SequenceBlock | None
) -> tuple[bytes, bytes, dict[int, tuple[int, int]]]:
    """The table of all inputs, their bytes for byte `start` of the image, and (offset, size) of the feeds' rooms."""
    table, body = bytearray(), bytearray()
    places: dict[int, tuple[int, int]] = {}  # of what later sets share

    def lay(data: bytes) -> tuple[int, int]:
        place = (start + len(body), len(data))
        body.extend(data.ljust(_aligned(len(data)), b"\0"))
        return place

    # A room begins with the last value that is given: a step counts on from it.
    rooms = {} if sequence is None else {feed.input: lay(sets[-1][feed.input]) for feed in sequence.feeds}
    for number, inputs in enumerate(sets):
        for index, data in enumerate(inputs):
            own = sequence is None or number < sequence.rows[index]
            if own:
                places[index] = lay(data)
            table += struct.pack("<2I", *(places[index] if own else rooms.get(index, places[index])))
    return bytes(table), bytes(body), rooms


def _put(image: bytearray, offset: int, *words: int) -> None:
    struct.pack_into(f"<{len(words)}I", image, offset, *words)


def _encoded_sequence(block: SequenceBlock, rooms: Mapping[int, tuple[int, int]], start: int) -> bytes:
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


def _feed(
    feed: Feed, first: int, room: int, room_bytes: int, end: int = protocol.FEED_NO_END, takes: bool = False
) -> bytes:
    row = protocol.FEED_LAST_ROWS if feed.row is None else feed.row
    factor = feeds.temperature_factor(feed.temperature, feed.scale or 1.0)
    head = (_FORMS[feed.form], feed.input, feed.output, row, room, room_bytes, first)
    words = struct.pack("<7IfIQI", *head, factor, feed.top_k, feed.seed, len(feed.stops))
    stops = struct.pack(f"<{len(feed.stops)}I", *feed.stops)
    behind = struct.pack("<2I", end, takes)
    return ((words + stops).ljust(protocol.FEED_END_AT, b"\0") + behind).ljust(
        protocol.SEQUENCE_FEED_BYTES, b"\0"
    )


def bytes_of_pieces(pieces: Sequence[StreamPiece]) -> int:
    return _aligned(protocol.INPUT_IMAGE_PIECE_BYTES * len(pieces)) + sum(
        _aligned(len(row.commands)) for row in pieces
    )


def _pieces(pieces: Sequence[StreamPiece], start: int) -> bytes:
    table = bytearray()
    body = bytearray()
    first = start + _aligned(protocol.INPUT_IMAGE_PIECE_BYTES * len(pieces))
    for piece in pieces:
        table += struct.pack("<3I", piece.delegate, first + len(body), len(piece.commands))
        body += piece.commands.ljust(_aligned(len(piece.commands)), b"\0")
    return bytes(table.ljust(first - start, b"\0") + body)


def encode_program_header(program_bytes: int, mode: int = protocol.PROGRAM_MODE_BY_NAME) -> bytes:
    """The header words that announce a program of this size, for a memory mode, to the resident firmware."""
    version = protocol.PROGRAM_HEADER_VERSION
    words = struct.pack("<4I", protocol.PROGRAM_HEADER_MAGIC, version, program_bytes, mode)
    return words + struct.pack("<I", zlib.crc32(words))


def _check_counts(sets: Sequence[object], event_groups: Sequence[Sequence[int]], repeats: int) -> None:
    if repeats < 1 or len(sets) * repeats > _LARGEST:
        raise InputError(f"{repeats} repeats of {counted(len(sets), 'set')} of inputs are not possible")
    if len(event_groups) > protocol.INPUT_IMAGE_MAX_EVENT_GROUPS:
        raise InputError(
            f"{len(event_groups)} groups of PMU events, but there is room for "
            f"{protocol.INPUT_IMAGE_MAX_EVENT_GROUPS}",
            "ask for fewer events in one run",
        )
    for row in event_groups:
        if not 1 <= len(row) <= protocol.INPUT_IMAGE_MAX_EVENTS:
            raise InputError(
                f"{len(row)} PMU events in a group, but 1 to {protocol.INPUT_IMAGE_MAX_EVENTS} can be counted"
            )


def _aligned(size: int) -> int:
    return -(-size // protocol.INPUT_IMAGE_ALIGNMENT) * protocol.INPUT_IMAGE_ALIGNMENT
