"""What a firmware says of its program's state: the CRC of each tensor after every inference, the bytes at the end."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from ethosu_sdk.evidence import chunks
from ethosu_sdk.evidence.uart import ProtocolError, UartLog


@dataclass(frozen=True)
class StateSeen:
    """`crcs` are by inference, then by tensor; `contents` by tensor, where they were sent."""

    crcs: tuple[tuple[str, ...], ...] = ()
    contents: tuple[bytes, ...] = ()


def gather(log: UartLog, sizes: Sequence[int], inferences: int, *, is_sent: bool) -> StateSeen:
    """The state of tensors with these sizes in bytes. ProtocolError for anything missing or contradictory."""
    rows = log.of_type("state")
    due = [(number, index, size) for number in range(inferences) for index, size in enumerate(sizes)]
    if [(row["inference"], row["index"], row["bytes"]) for row in rows] != due:
        raise ProtocolError(f"the state of {len(rows)} tensors is reported, but {len(due)} were due")
    crcs = tuple(
        tuple(row["crc32"] for row in rows[at : at + len(sizes)])
        for at in range(0, len(rows), len(sizes) or 1)
    )
    pieces = log.of_type("state_data")
    contents = []
    for index, size in enumerate(sizes if is_sent else ()):
        data = chunks.joined([row for row in pieces if row["index"] == index], f"tensor {index} of the state")
        if len(data) != size or f"{zlib.crc32(data):08x}" != crcs[-1][index]:
            raise ProtocolError(f"the CRC of tensor {index} of the state does not match its bytes")
        contents.append(data)
    return StateSeen(crcs, tuple(contents))
