"""What the host lays into memory before a run: the input image, and the header in front of a resident program."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from ethosu_sdk.errors import InputError
from ethosu_sdk.evidence import protocol

_CRC_COVERS_FROM = 16
_LARGEST = 0xFFFF_FFFF
_PIECE_BYTES = 12


NO_NONCE = bytes(protocol.INPUT_IMAGE_NONCE_BYTES)


@dataclass(frozen=True)
class StreamPiece:
    """A part of the command stream of the program's delegate number `delegate` that runs as a job of its own."""

    delegate: int
    commands: bytes


def encode(
    sets: Sequence[Sequence[bytes]],
    event_groups: Sequence[Sequence[int]] = (),
    repeats: int = 1,
    nonce: bytes = NO_NONCE,
    *,
    counts_cycles: bool = False,
    resets_state: bool = False,
    pieces: Sequence[StreamPiece] = (),
) -> bytes:
    """The image for `sets`, each the raw bytes of the model's inputs in order, each to be run `repeats` times.

    `event_groups` are PMU event numbers, at most eight in a group, at most 32 groups: repeat k counts those of group
    k modulo their number; none leaves the choice to the firmware. The firmware seals its records with `nonce`; with
    `counts_cycles` it reports the processor's cycles of each instruction; with `resets_state` every repeat begins
    with the state that the program brings. With `pieces`, the last of the `repeats` runs those. Raises InputError for
    more than that.
    """
    _check_counts(sets, event_groups, repeats)
    per_set = len(sets[0]) if sets else 0
    start = _aligned(protocol.INPUT_IMAGE_HEADER_BYTES + 8 * len(sets) * per_set)
    table = bytearray()
    body = bytearray()
    for inputs in sets:
        for data in inputs:
            table += struct.pack("<2I", start + len(body), len(data))
            body += data.ljust(_aligned(len(data)), b"\0")
    counts = struct.pack("<4I", len(sets), per_set, repeats, len(event_groups))
    groups = b"".join(struct.pack("<9I", len(row), *_padded(row)) for row in event_groups)
    head = counts.ljust(protocol.INPUT_IMAGE_NONCE_AT - _CRC_COVERS_FROM, b"\0") + nonce
    options = (
        protocol.INPUT_IMAGE_COUNTS_CYCLES * counts_cycles + protocol.INPUT_IMAGE_RESETS_STATE * resets_state
    )
    head = head.ljust(protocol.INPUT_IMAGE_OPTIONS_AT - _CRC_COVERS_FROM, b"\0") + struct.pack("<I", options)
    where = (start + len(body), len(pieces)) if pieces else (0, 0)
    head = head.ljust(protocol.INPUT_IMAGE_PIECES_AT - _CRC_COVERS_FROM, b"\0") + struct.pack("<2I", *where)
    head = head.ljust(protocol.INPUT_IMAGE_EVENT_GROUPS_AT - _CRC_COVERS_FROM, b"\0") + groups
    rest = head.ljust(protocol.INPUT_IMAGE_HEADER_BYTES - _CRC_COVERS_FROM, b"\0") + table
    rest = rest.ljust(start - _CRC_COVERS_FROM, b"\0") + body + _pieces(pieces, start + len(body))
    first = (protocol.INPUT_IMAGE_MAGIC, protocol.INPUT_IMAGE_VERSION, _CRC_COVERS_FROM + len(rest))
    return struct.pack("<4I", *first, zlib.crc32(rest)) + rest


def bytes_of_pieces(pieces: Sequence[StreamPiece]) -> int:
    """What an image needs more for `pieces`, in bytes."""
    return _aligned(_PIECE_BYTES * len(pieces)) + sum(_aligned(len(row.commands)) for row in pieces)


def _pieces(pieces: Sequence[StreamPiece], start: int) -> bytes:
    """The table of pieces and behind it their commands, for byte `start` of the image."""
    table = bytearray()
    body = bytearray()
    first = start + _aligned(_PIECE_BYTES * len(pieces))
    for piece in pieces:
        table += struct.pack("<3I", piece.delegate, first + len(body), len(piece.commands))
        body += piece.commands.ljust(_aligned(len(piece.commands)), b"\0")
    return bytes(table.ljust(first - start, b"\0") + body)


def encode_program_header(program_bytes: int) -> bytes:
    """The words that tell the resident firmware of a program of so many bytes."""
    words = struct.pack("<3I", protocol.PROGRAM_HEADER_MAGIC, protocol.PROGRAM_HEADER_VERSION, program_bytes)
    return words + struct.pack("<I", zlib.crc32(words))


def _check_counts(
    sets: Sequence[Sequence[bytes]], event_groups: Sequence[Sequence[int]], repeats: int
) -> None:
    if repeats < 1 or len(sets) * repeats > _LARGEST:
        raise InputError(f"{repeats} repeats of {len(sets)} set(s) of inputs are not possible")
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


def _padded(events: Sequence[int]) -> list[int]:
    return [*events, *[0] * (protocol.INPUT_IMAGE_MAX_EVENTS - len(events))]


def _aligned(size: int) -> int:
    return -(-size // protocol.INPUT_IMAGE_ALIGNMENT) * protocol.INPUT_IMAGE_ALIGNMENT
