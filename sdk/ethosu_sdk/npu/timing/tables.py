"""Throughput of every Ethos-U configuration, as ethos-u-vela 5.1.0 states it in its performance estimate.

Keys are (product, MACs per cycle). Cycles are per OFM element of all cores together.
"""

from __future__ import annotations

from dataclasses import dataclass

from ethosu_sdk.npu.operation import Shape

Configuration = tuple[str, int]


@dataclass(frozen=True)
class OutputU55:
    """Output cycles per element on Ethos-U55 and Ethos-U65, by the kind of work.

    `wide` is work with 40-bit accumulators (and MUL).
    """

    unary_32: float
    binary_32: float
    mul_to_32: float
    wide: float
    add: float
    max_pool: float
    other: float


OUTPUT_U55: dict[Configuration, OutputU55] = {
    ("ethos-u55", 32): OutputU55(2.0, 3.0, 3.0, 3.0, 6.0, 1.0, 2.0),
    ("ethos-u55", 64): OutputU55(1.0, 1.5, 1.5, 1.5, 3.0, 0.5, 1.0),
    ("ethos-u55", 128): OutputU55(0.75, 1.25, 0.75, 0.75, 1.5, 0.25, 0.5),
    ("ethos-u55", 256): OutputU55(0.625, 1.125, 0.5, 0.375, 0.75, 0.125, 0.25),
    ("ethos-u65", 256): OutputU55(0.625, 1.125, 0.5, 0.375, 0.75, 0.125, 0.25),
    ("ethos-u65", 512): OutputU55(0.3125, 0.5625, 0.25, 0.1875, 0.375, 0.0625, 0.125),
}


@dataclass(frozen=True)
class OutputU85:
    """Output cycles per element on Ethos-U85.

    By the width of the results; `chained_32` where 32 bits enter or leave a chaining buffer, `binary_32` for
    elementwise work on two 32-bit operands. `table` is a pass through a look-up table, `turned` one that exchanges
    rows and columns or reverses columns.
    """

    to_8: float
    to_16: float
    to_32: float
    to_64: float
    chained_32: float
    binary_32: float
    table: float
    turned: float


OUTPUT_U85: dict[int, OutputU85] = {
    128: OutputU85(0.5, 0.5, 0.5, 1.0, 1.0, 1.0, 0.5, 1.0),
    256: OutputU85(0.25, 0.25, 0.25, 0.5, 0.5, 0.5, 0.25, 0.5),
    512: OutputU85(0.125, 0.125, 0.25, 0.5, 0.25, 0.25, 0.125, 0.25),
    1024: OutputU85(0.0625, 0.125, 0.25, 0.5, 0.125, 0.25, 0.0625, 0.125),
    2048: OutputU85(0.03125, 0.0625, 0.125, 0.25, 0.0625, 0.125, 0.03125, 0.0625),
}
DIVISION_CYCLES = 33.0  # of Ethos-U85's DIV, whatever the configuration

# Ethos-U85 keeps the IFM in units (height, width, depth in 16 bytes). Which one depends on the OFM micro-block and on
# the bytes of an IFM block's pixel: up to 16, up to 32, more.
IfmUnits = tuple[Shape, Shape, Shape]
IFM_UNITS: dict[Shape, IfmUnits] = {
    (1, 2, 8): ((1, 2, 1), (1, 1, 2), (1, 1, 2)),
    (1, 1, 16): ((1, 2, 1), (1, 1, 2), (1, 1, 2)),
    (2, 2, 8): ((2, 2, 1), (1, 2, 2), (1, 1, 4)),
    (1, 2, 16): ((2, 2, 1), (1, 2, 2), (1, 1, 4)),
    (1, 4, 8): ((1, 4, 1), (1, 2, 2), (1, 1, 4)),
    (2, 2, 16): ((2, 2, 1), (1, 2, 2), (1, 1, 4)),
    (1, 4, 16): ((1, 4, 1), (1, 2, 2), (1, 1, 4)),
    (2, 2, 32): ((2, 4, 1), (2, 2, 2), (1, 2, 4)),
    (2, 4, 16): ((2, 4, 1), (2, 2, 2), (1, 2, 4)),
    (1, 4, 32): ((2, 4, 1), (1, 4, 2), (1, 2, 4)),
    (2, 2, 64): ((4, 4, 1), (2, 4, 2), (2, 2, 4)),
    (4, 4, 16): ((4, 4, 1), (2, 4, 2), (2, 2, 4)),
    (1, 4, 64): ((4, 4, 1), (2, 4, 2), (1, 4, 4)),
}


@dataclass(frozen=True)
class ReadBuffers:
    """Words of 16 bytes that a read channel of Ethos-U85 may have under way."""

    copy: int
    ifm_stream: int
    weights: int
    fast_weights: int
    ifm: int
    scales: int


READ_BUFFERS: dict[int, ReadBuffers] = {
    128: ReadBuffers(64, 64, 128, 128, 104, 16),
    256: ReadBuffers(104, 104, 128, 128, 128, 16),
    512: ReadBuffers(128, 128, 256, 256, 128, 16),
    1024: ReadBuffers(256, 256, 416, 208, 256, 16),
    2048: ReadBuffers(256, 256, 512, 256, 256, 16),
}
