"""What the host writes into memory before a run: the input image, and the header of a resident program."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from ethosu_sdk import protocol
from ethosu_sdk.errors import InputError
from ethosu_sdk.evidence import sequence_block
from ethosu_sdk.evidence.sequence_block import SequenceBlock
from ethosu_sdk.plain_text import counted

_LARGEST = 0xFFFF_FFFF

NO_NONCE = bytes(protocol.INPUT_IMAGE_NONCE_BYTES)


@dataclass(frozen=True)
class StreamPiece:
    """A part of the command stream of the program's delegate number `delegate` that runs as a job of its own."""

    delegate: int
    commands: bytes


@dataclass(frozen=True)
class Asked:
    """What an image asks of the firmware: the processor's cycles of each instruction, that every repeat begins with
    the state which the program brings, the outputs of the last set alone."""

    counts_cycles: bool = False
    resets_state: bool = False
    sends_last: bool = False

    @property
    def word(self) -> int:
        """The image's word of options."""
        return (
            protocol.INPUT_IMAGE_COUNTS_CYCLES * self.counts_cycles
            + protocol.INPUT_IMAGE_RESETS_STATE * self.resets_state
            + protocol.INPUT_IMAGE_SENDS_LAST * self.sends_last
        )


PLAIN = Asked()


def encode(
    sets: Sequence[Sequence[bytes]],
    event_groups: Sequence[Sequence[int]] = (),
    repeats: int = 1,
    nonce: bytes = NO_NONCE,
    *,
    asked: Asked = PLAIN,
    pieces: Sequence[StreamPiece] = (),
    sequence: SequenceBlock | None = None,
) -> bytes:
    """The image for `sets`, each the raw bytes of the model's inputs in order, each to be run `repeats` times.

    `event_groups` are PMU event numbers, at most eight in a group, at most 32 groups: repeat k counts those of group
    k modulo their number; none leaves the choice to the firmware. The firmware seals its records with `nonce`. With
    `pieces`, the last of the `repeats` runs those. With `sequence`, the sets are its steps. InputError for more than
    that.
    """
    _check_counts(sets, event_groups, repeats)
    per_set = len(sets[0]) if sets else 0
    header_bytes = protocol.INPUT_IMAGE_HEADER_BYTES
    start = _aligned(header_bytes + protocol.INPUT_IMAGE_REFERENCE_BYTES * len(sets) * per_set)
    table, body, rooms = _inputs(sets, start, sequence)
    pieces_at = start + len(body)
    image = bytearray(start) + body + _pieces(pieces, pieces_at)
    sequence_at = len(image)
    if sequence is not None:
        image += sequence_block.encode(sequence, rooms, sequence_at)
    image[header_bytes : header_bytes + len(table)] = table
    _put(image, protocol.INPUT_IMAGE_MAGIC_AT, protocol.INPUT_IMAGE_MAGIC)
    _put(image, protocol.INPUT_IMAGE_VERSION_AT, protocol.INPUT_IMAGE_VERSION)
    _put(image, protocol.INPUT_IMAGE_BYTES_AT, len(image))
    _put(image, protocol.INPUT_IMAGE_SETS_AT, len(sets))
    _put(image, protocol.INPUT_IMAGE_INPUTS_AT, per_set)
    _put(image, protocol.INPUT_IMAGE_REPEATS_AT, repeats)
    _put(image, protocol.INPUT_IMAGE_EVENT_GROUP_COUNT_AT, len(event_groups))
    image[protocol.INPUT_IMAGE_NONCE_AT : protocol.INPUT_IMAGE_NONCE_AT + len(nonce)] = nonce
    _put(image, protocol.INPUT_IMAGE_OPTIONS_AT, asked.word)
    _put(image, protocol.INPUT_IMAGE_PIECES_AT, pieces_at if pieces else 0)
    _put(image, protocol.INPUT_IMAGE_PIECE_COUNT_AT, len(pieces))
    _put(image, protocol.INPUT_IMAGE_SEQUENCE_AT, 0 if sequence is None else sequence_at)
    for number, row in enumerate(event_groups):
        group_at = protocol.INPUT_IMAGE_EVENT_GROUPS_AT + protocol.INPUT_IMAGE_EVENT_GROUP_BYTES * number
        _put(image, group_at, len(row), *row)
    covered = memoryview(image)[protocol.INPUT_IMAGE_CRC_COVERS_FROM :]
    _put(image, protocol.INPUT_IMAGE_CRC_AT, zlib.crc32(covered))
    return bytes(image)


def _inputs(
    sets: Sequence[Sequence[bytes]], start: int, sequence: SequenceBlock | None
) -> tuple[bytes, bytes, dict[int, tuple[int, int]]]:
    """The table of all inputs, their bytes for byte `start` of the image, and where feeds make values: offset and
    size by input."""
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


def bytes_of_pieces(pieces: Sequence[StreamPiece]) -> int:
    """What an image needs more for `pieces`, in bytes."""
    return _aligned(protocol.INPUT_IMAGE_PIECE_BYTES * len(pieces)) + sum(
        _aligned(len(row.commands)) for row in pieces
    )


def _pieces(pieces: Sequence[StreamPiece], start: int) -> bytes:
    """The table of pieces and behind it their commands, for byte `start` of the image."""
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


def _check_counts(
    sets: Sequence[Sequence[bytes]], event_groups: Sequence[Sequence[int]], repeats: int
) -> None:
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
