"""What convolutions read, and the blocks that they go through, worked out by hand from published beats."""

from dataclasses import replace

import pytest

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.operation import BlockOp, Kernel, Kind, ScaleFormat, ScaleStreams, Stream, WeightStreams
from ethosu_sdk.npu.timing import units
from ethosu_sdk.npu.timing.traffic import transfers
from tests.tables import each
from tests.unit.npu.operations import dense, operation

U55, U85 = NpuConfig.for_target("ethos-u55", 128), NpuConfig.for_target("ethos-u85", 256)
ROWS, COLUMNS = 8, 8


def convolution(ifm_depth: int) -> BlockOp:
    """1x1 to 64 channels, in four OFM blocks of 16 channels and all of the plane."""
    shape = (ROWS, COLUMNS, 64)
    ifm = dense(0, (ROWS, COLUMNS, ifm_depth))
    op = operation(
        Kind.CONV,
        shape,
        ifm,
        dense(1 << 16, shape),
        ifm_depth=ifm_depth,
        kernel=Kernel(1, 1, 1, 1, 1, 1, part_kernel_first=False),
        weights=WeightStreams((Stream(0, 0, 1024),), fast=False),
        scales=ScaleStreams((Stream(0, 4096, 640),), ScaleFormat.BIAS_32),
    )
    return replace(op, block=(ROWS, COLUMNS, 16))


def read(op: BlockOp, config: NpuConfig, stream: str) -> int:
    return sum(moved.beats for moved in transfers(op, config) if moved.stream.value == stream)


@pytest.mark.parametrize(
    ("config", "ifm_depth", "times"),
    [
        (U55, 32, 1),  # one IFM block of 32 channels
        (U55, 64, 1),  # two: as many as there is room for
        (U55, 96, 4),  # three: none is left when its turn comes again
        (U85, 256, 1),  # four IFM blocks of 64 channels
        (U85, 512, 1 + 3 * 4 / 8),  # eight, of which four are kept
    ],
)
def test_an_ifm_is_read_again_for_blocks_in_depth_that_it_is_not_kept_for(
    config: NpuConfig, ifm_depth: int, times: float
) -> None:
    once = ROWS * COLUMNS * ifm_depth // config.beat_bytes
    assert read(convolution(ifm_depth), config, "ifm") == once * times


@pytest.mark.parametrize("config", [U55, U85])
def test_weights_and_scales_are_read_for_every_block_of_the_plane(config: NpuConfig) -> None:
    op = convolution(32)
    parted = replace(op, block=(ROWS // 2, COLUMNS // 2, 16))
    for stream, size in (("weights", 1024), ("scales", 640)):
        assert read(op, config, stream) == size // config.beat_bytes
        assert read(parted, config, stream) == 4 * size // config.beat_bytes


def test_rows_are_read_whole_and_by_ethos_u85_once() -> None:
    """A row of an image with 8 columns of one channel has 8 bytes: half a beat of Ethos-U85, but a beat is read."""
    assert read(convolution(1), U85, "ifm") == ROWS
    # Published beats of Wav2Letter: its kernels of 32 columns read no column for each of their four parts.
    kernel = Kernel(16, 1, 1, 1, 1, 1, part_kernel_first=False)
    op = operation(Kind.CONV, (10, 4, 8), dense(0, (40, 4, 8)), dense(4096, (10, 4, 8)), kernel=kernel)
    assert units.ifm_spans(op, 0, NpuConfig.for_target("ethos-u85", 256)) == [(0, 25)]


# --- The blocks of an operation: rows that they read, worked out by hand.

# Rows of a kernel, its dilation → parts of at most eight rows with the dilation, and IFM rows that ten OFM rows read:
# each part reads the rows that its elements meet, so that those between two parts are read twice.
CASES = [
    (3, 1, 1, 12),
    (8, 1, 1, 17),
    (9, 1, 2, 17 + 10),
    (4, 2, 1, 16),
    (5, 2, 2, 16 + 10),
    (3, 2, 1, 14),
]


@each(("rows", "dilation", "parts", "read"), CASES)
def test_large_kernels_are_walked_in_parts(rows: int, dilation: int, parts: int, read: int) -> None:
    kernel = Kernel(rows, 1, 1, 1, dilation, 1, part_kernel_first=False)
    shape = (10, 4, 8)
    op = operation(Kind.CONV, shape, dense(0, (40, 4, 8)), dense(4096, shape), kernel=kernel)
    assert units.subkernels(op) == parts
    spans = units.ifm_spans(op, 0, NpuConfig.for_target("ethos-u55", 128))
    assert sum(count for _, count in spans) == read
