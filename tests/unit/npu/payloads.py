"""Payloads that copy, for every NPU."""

import struct
from dataclasses import replace

import numpy as np

from tests.unit.npu.streams import POOL, Setting, copying_pool, stream
from tests.unit.npu.vela_payloads import Payload, slots

# What Vela writes for each NPU into the first words of a payload: CONFIG and the architecture word.
WORDS = {
    ("ethos-u55", 32): (0x0000_1005, 0x1006_6001),
    ("ethos-u55", 64): (0x0000_1006, 0x1006_6001),
    ("ethos-u55", 128): (0x0000_1807, 0x1006_6001),
    ("ethos-u55", 256): (0x0000_3008, 0x1006_6001),
    ("ethos-u65", 256): (0x1000_3008, 0x1006_6001),
    ("ethos-u65", 512): (0x1000_6009, 0x1006_6001),
    ("ethos-u85", 128): (0x2000_0117, 0x2000_7000),
    ("ethos-u85", 256): (0x2000_0118, 0x2000_7000),
    ("ethos-u85", 512): (0x2000_1119, 0x2000_7000),
    ("ethos-u85", 1024): (0x2000_251A, 0x2000_7000),
    ("ethos-u85", 2048): (0x2000_261B, 0x2000_7000),
}
U55, U85 = ("ethos-u55", 128), ("ethos-u85", 256)
SHAPE = (2, 3, 8)
COUNT = 48
IFM, OFM = 0x100, 0x400
INPUT = (1, 1, 1, *SHAPE, 1, IFM, 1)
OUTPUT = (1, 1, 1, *SHAPE, 1, OFM, 1)
VALUES = np.random.default_rng(3).integers(-128, 128, SHAPE).astype(np.int8)


def copy(target: tuple[str, int], changes: dict[str, Setting] | None = None) -> bytes:
    """A pool that copies, as Vela writes it for the family: an average of one, or a sum of one."""
    is_u85 = target[0] == "ethos-u85"
    registers = copying_pool(IFM, OFM, SHAPE, is_u85=is_u85)
    return stream(({**registers, **(changes or {})}, POOL, 3 if is_u85 else 1))


def payload(
    target: tuple[str, int],
    data: bytes,
    inputs: tuple[tuple[int, ...], ...] = (INPUT,),
    outputs: tuple[tuple[int, ...], ...] = (OUTPUT,),
    weights: bytes = b"",
) -> bytes:
    data = data.ljust(-(-len(data) // 16) * 16, b"\0")
    head = [0x0010_0001, *WORDS[target], 5, 5, 5, (len(data) // 4 & 0xFFFF) << 16 | 2]
    return replace(
        Payload(),
        cmd_data=b"COP1" + struct.pack("<7I", *head) + data,
        weight_data=weights,
        scratch_size=struct.pack("<I", 0x800),
        inputs=slots(*inputs),
        outputs=slots(*outputs),
    ).encode()
