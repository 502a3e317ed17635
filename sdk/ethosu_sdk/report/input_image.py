"""The input image: how inputs and PMU events reach the firmware without a rebuild."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

from ethosu_sdk.errors import InputError
from ethosu_sdk.report import protocol


def encode(inferences: Sequence[Sequence[bytes]], events: Sequence[int] = ()) -> bytes:
    """The image for `inferences`, each the raw bytes of the model's inputs in order.

    `events` are the PMU event numbers to count, at most eight; none leaves the choice to the firmware.
    """
    if len(events) > protocol.INPUT_IMAGE_MAX_EVENTS:
        raise InputError(
            f"{len(events)} PMU events, but at most {protocol.INPUT_IMAGE_MAX_EVENTS} can be counted"
        )
    per_inference = len(inferences[0]) if inferences else 0
    offset = _aligned(protocol.INPUT_IMAGE_HEADER_BYTES + 8 * len(inferences) * per_inference)
    table = bytearray()
    body = bytearray()
    start = offset
    for inputs in inferences:
        for data in inputs:
            table += struct.pack("<2I", start + len(body), len(data))
            body += data.ljust(_aligned(len(data)), b"\0")
    padded_events = [*events, *[0] * (protocol.INPUT_IMAGE_MAX_EVENTS - len(events))]
    fixed = struct.pack("<3I", len(inferences), per_inference, len(events))
    fixed += struct.pack("<9I", *padded_events, 0)
    rest = (fixed + table).ljust(offset - 16, b"\0") + body
    head = struct.pack("<3I", protocol.INPUT_IMAGE_MAGIC, protocol.INPUT_IMAGE_VERSION, 16 + len(rest))
    return head + struct.pack("<I", zlib.crc32(rest)) + rest


def _aligned(size: int) -> int:
    return -(-size // protocol.INPUT_IMAGE_ALIGNMENT) * protocol.INPUT_IMAGE_ALIGNMENT
