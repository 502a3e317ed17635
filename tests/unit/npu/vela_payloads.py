"""Payloads for the NPU, written from the format's description."""

import struct
from dataclasses import dataclass, field

STREAM = struct.pack("<4I", 0x00000121, 0x01234567, 0x4000, 0x0000FFFF)
CONFIG, ARCH = 0x00001807, 0x10066001


def block(name: str, data: bytes, external: int = 0, reserved: bytes = bytes(11)) -> bytes:
    header = name.encode().ljust(16, b"\0") + struct.pack("<IB", len(data), external) + reserved
    return header + data + bytes(-len(data) % 16)


def actions(*words: int, stream: bytes = STREAM, nops: int = 3) -> bytes:
    head = [0x00100001, CONFIG, ARCH, *[5] * nops, (len(stream) // 4) << 16 | 2]
    return b"COP1" + struct.pack(f"<{len(words) + len(head)}I", *words, *head) + stream


def slots(*rows: tuple[int, ...]) -> bytes:
    return struct.pack("<i", len(rows)) + b"".join(struct.pack("<9i", *row) for row in rows)


@dataclass(frozen=True)
class Payload:
    cmd_data: bytes = field(default_factory=actions)
    weight_data: bytes = b"weights!!"
    scratch_size: bytes = struct.pack("<I", 1280)
    inputs: bytes = field(default_factory=lambda: slots((1, 1, 1, 8, 8, 1, 1, 1024, 1)))
    outputs: bytes = field(
        default_factory=lambda: slots((1, 1, 1, 1, 1, 10, 2, 0, 1), (1, 1, 1, 2, 3, 4, 4, 64, 2))
    )

    def blocks(self) -> list[bytes]:
        rows = [block(name, getattr(self, name)) for name in self.__dataclass_fields__]
        return [block("vela_bin_stream", b""), *rows, block("vela_end_stream", b"")]

    def encode(self) -> bytes:
        return b"".join(self.blocks())
