"""Constants of the performance model that neither registers nor vela.ini give, each with its source.

What published runs give only together is in `fitted.py`. Nothing depends on a network, an operator's name or a run.
"""

from __future__ import annotations

from dataclasses import dataclass

from ethosu_sdk.npu.operation import Shape

MAC_DEPTH = 8
"""IFM channels that a MAC step takes of each element of an OFM micro-block. Published: 3x3 convolutions without
latency take (micro-blocks) x 9 x (IFM channels / 8) cycles on Ethos-U85-256 and -512, so that part-kernel-first
walks 9 elements and not the 12 that Vela 5.1.0 charges."""

PART_KERNEL_DEPTH_U85 = 16
"""IFM channels of which part-kernel-first convolutions of Ethos-U85 take whole multiples (ethos-u-vela 5.0.0, where
it chooses between the two orders)."""

DEPTH_FIRST = 32
"""IFM channels of which depth-first convolutions always take whole multiples: the least IFM block
(ethos-u-vela 5.1.0)."""

STEP_ELEMENTS_U55 = 4
"""Kernel elements that Ethos-U55 and Ethos-U65 walk in four cycles where they are walked first, depthwise and
part-kernel-first (ethos-u-vela 5.1.0; published: the difference between MobileNetV2 on Ethos-U55-128 and -256)."""

POOL_CYCLES = 4
"""Cycles per micro-block and kernel element of pooling (ethos-u-vela 5.1.0)."""

DECODER_BYTES_PER_CYCLE = 6.85
"""Encoded weights that one core of the weight decoder reads. Published: an MLP's 507 KB keep the decoder of
Ethos-U85-128 active for 74,000 cycles."""

DECODER_WEIGHTS_PER_CYCLE = 31.5
"""Weights that one core of the decoder makes at most. Published: the same MLP with 95 % of zeros."""

FAST_WEIGHTS_PER_CYCLE = 32
"""Weights of the fast format per cycle and decoder core (ethos-u-vela 5.1.0: 32 with many different weights)."""

DECODERS = {("ethos-u85", 1024): 1}
"""Cores of the weight decoder that work, where these are not all. Published: MobileNetV2 and MicroNet KWS on
Ethos-U85-1024, whose wide layers wait for weights that lie in SRAM already."""

READ_EFFICIENCY = 0.8
"""Share of its read buffers that Ethos-U85 keeps busy, and of the bus (ethos-u-vela 5.1.0; published runs: 10,774
beats take 13,353 cycles on a bus without latency). Scales, which are few, fill their buffer: RNNoise takes 88 cycles
more on Ethos-U85-512 for each cycle of latency, with 41 of them for 10,550 bytes of scales."""

WEIGHT_PIECE_BYTES = {"u55": 5500, "u85": 21500}
HIDDEN_PIECE_WAIT = 116
"""Encoded weights come in pieces of so many bytes, by generation, and the MAC unit waits for each: for the memory's
latency less HIDDEN_PIECE_WAIT. Published: Wav2Letter, whose MAC unit has work throughout, takes 0, 177,000 and
508,000 cycles more on Ethos-U85-512 with latencies of 0, 250 and 500, and as many at 500 on Ethos-U85-1024;
MobileNetV2 on Ethos-U65-512."""

IFM_WORD_BYTES = 16
IFM_WORD_CYCLES = {"u55": 2.0, "u85": 1.0}
IFM_WORD_CYCLES_2048 = 0.5
"""Cycles in which a word of a pixel's channels enters the IFM buffer, by generation and on Ethos-U85-2048.
Published: a 3x3 convolution of 192x192x1 in 100 blocks of 484 pixels takes 440 cycles a block on Ethos-U85-256 and
-512, whatever the memory; depthwise ones with stride 2 read 0.95 words in a cycle. Ethos-U55 and Ethos-U65:
YOLO-Fastest and VWW-4."""

READ_WORDS_U55 = 104
"""Words of 16 bytes that a read channel of Ethos-U55 and Ethos-U65 has under way, and each core for its weights.
Published: RNNoise takes 65,000 cycles on Ethos-U65-256 and 50,000 with the two cores of Ethos-U65-512."""

KEPT_IFM_BLOCKS_U55, KEPT_IFM_BLOCKS_U85 = 2, 4
"""IFM blocks that are kept for the next OFM block in depth. Published beats, Ethos-U55 and Ethos-U65: IFMs of one or
two blocks are read once, others for every OFM block (to 0.1 % of MobileNetV2's reads on Ethos-U55 and Ethos-U65).
Ethos-U85, single operators: 2 OFM blocks read an IFM of 8 blocks 1.5 times, 8 read it 4.5 times."""

DEPTHWISE_CHANNELS_U85 = 16
"""Channels that a depthwise operation of Ethos-U85 reads at a time where a block has not all of them. Published:
depthwise 3x3 of 16x16x128 from DRAM takes 24,068 cycles on Ethos-U85-512 in blocks of 32 channels."""

ADAPTER_EXCESS_BEATS = 5.5
"""Beats that pass a timing adapter in each pulse beyond BWCAP, of transactions that it has accepted. Published:
Ethos-U55 reads 113,320 bytes of RNNoise's weights in less than 105,087 cycles through 50 beats (400 bytes) in 400."""

COMMAND_TRIPS = 2
"""Read latencies until the first command of a stream is decoded; after that commands are fetched ahead."""


@dataclass(frozen=True)
class Fitted:
    """Constants of a generation that `scripts/fit-timing` fits to published runs, all of a generation together.

    Nothing in them depends on a network or a run. Ethos-U55 and Ethos-U65 are one generation.
    """

    block_cycles: float
    """The hand-over from one OFM block to the next."""
    operation_cycles: float
    """The hand-over from one operation to the next."""
    operation_trips: float
    """Latencies of the commands' memory from one operation to the next."""
    first_weights_bytes: float
    """Encoded weights that are there before the MAC unit begins, or those of an OFM block if that is less."""
    read_pipeline_cycles: float
    """What a read takes besides the memory's latency."""


# Throughput of every configuration, as ethos-u-vela 5.1.0 states it in its performance estimate. Keys are (product,
# MACs per cycle). Cycles are per OFM element of all cores together.


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


OUTPUT_U55: dict[tuple[str, int], OutputU55] = {
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
IFM_UNITS: dict[Shape, tuple[Shape, Shape, Shape]] = {
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

    ifm_stream: int
    weights: int
    fast_weights: int
    ifm: int
    scales: int


READ_BUFFERS: dict[int, ReadBuffers] = {
    128: ReadBuffers(64, 128, 128, 104, 16),
    256: ReadBuffers(104, 128, 128, 128, 16),
    512: ReadBuffers(128, 256, 256, 128, 16),
    1024: ReadBuffers(256, 416, 208, 256, 16),
    2048: ReadBuffers(256, 512, 256, 256, 16),
}
