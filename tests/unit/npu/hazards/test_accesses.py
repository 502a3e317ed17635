"""What operations touch, as the hazard checker sees it: parts of feature maps worked out by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.npu.accesses import (
    Access,
    Box,
    Part,
    Runs,
    accesses,
    first_reads,
    inputs,
    last_ofm_blocks,
    last_writes,
    ofm_blocks,
    runs,
    stored,
    whole,
)
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.operation import (
    BlockOp,
    DmaIndex,
    DmaOp,
    ElementwiseMode,
    Kernel,
    Kind,
    Lut,
    Operand,
    Padding,
    PoolMode,
    ResizeAxis,
    ResizeMode,
    ScaleFormat,
    ScaleStreams,
    Stream,
    WeightStreams,
)
from tests.tables import each
from tests.unit.npu.machine import U55_128, U65_512, U85_256
from tests.unit.npu.operations import INT8, INT16, INT32, dense, operation

U85_2048 = NpuConfig.for_target("ethos-u85", 2048)
IFM, IFM2, OFM = (
    dense(0x1000, (64, 64, 256)),
    dense(0x20_0000, (64, 64, 256)),
    dense(0x40_0000, (64, 64, 256)),
)
OP = operation(Kind.POOL, (6, 8, 32), IFM, OFM, mode=PoolMode.MAX, block=(2, 4, 16))
BOX: Box = ((2, 4), (4, 8), (16, 32))
CHANNELS = (0, 8)


def changed(**changes: Any) -> BlockOp:
    return replace(OP, **changes)


def kernel(height: int, width: int, stride: int = 1, dilation: int = 1) -> Kernel:
    return Kernel(height, width, stride, stride, dilation, dilation, part_kernel_first=False)


def elementwise(*operands: Operand) -> BlockOp:
    return changed(kind=Kind.ELEMENTWISE, mode=ElementwiseMode.ADD, operands=operands)


RESIZE = {
    "kind": Kind.RESIZE,
    "mode": ResizeMode.BILINEAR,
    "kernel": kernel(3, 5),  # the size of the IFM
    "resize": (ResizeAxis(1, -1, 2), ResizeAxis(1, 0, 2)),
}


@each(
    ("op", "parts"),
    [
        (OP, [(IFM, BOX)]),
        (changed(kernel=kernel(3, 2), padding=Padding(1, 0, 1, 0)), [(IFM, ((1, 5), (4, 9), (16, 32)))]),
        (changed(kernel=kernel(2, 2, stride=2)), [(IFM, ((4, 8), (8, 16), (16, 32)))]),
        (changed(kernel=kernel(3, 3, dilation=2)), [(IFM, ((2, 8), (4, 12), (16, 32)))]),
        # At the lower right, the window ends in the padding: the IFM has 6 rows and 8 columns.
        (
            changed(kernel=kernel(5, 5), padding=Padding(2, 2, 2, 2)),
            [(IFM, ((0, 6), (2, 8), (16, 32)))],
        ),
        (changed(upscale=1), [(IFM, ((1, 2), (2, 4), (16, 32)))]),
        (changed(upscale=2, kernel=kernel(2, 2)), [(IFM, ((1, 3), (2, 5), (16, 32)))]),
        (changed(kind=Kind.CONV, mode=None), [(IFM, ((2, 4), (4, 8), CHANNELS))]),
        (changed(kind=Kind.DEPTHWISE, mode=None), [(IFM, BOX)]),
        (changed(kind=Kind.DEPTHWISE, mode=None, ifm_depth=1), [(IFM, ((2, 4), (4, 8), (0, 1)))]),
        (changed(mode=PoolMode.REDUCE_SUM), [(IFM, ((2, 4), (4, 8), CHANNELS))]),
        (changed(ifm2=IFM2, accumulates=True), [(IFM, BOX), (IFM2, BOX)]),
        (changed(mode=PoolMode.NONE, ifm2=IFM2, accumulates=True), [(IFM2, BOX)]),
        (
            changed(kind=Kind.MATMUL, mode=None, ifm2=IFM2),
            [(IFM, ((2, 4), (4, 8), CHANNELS)), (IFM2, ((2, 4), (16, 32), CHANNELS))],
        ),
        # Rows 2 and 3 at 0.5 and 1, columns 4 to 7 at 2 to 3.5: the neighbours on both sides.
        (changed(**RESIZE), [(IFM, ((0, 3), (2, 5), (16, 32)))]),
        (elementwise(Operand(IFM), Operand(IFM2)), [(IFM, BOX), (IFM2, BOX)]),
        (
            elementwise(Operand(IFM, (True, False, False)), Operand(IFM2, (False, True, True))),
            [(IFM, ((0, 1), (4, 8), (16, 32))), (IFM2, ((2, 4), (0, 1), (0, 1)))],
        ),
        (elementwise(Operand(IFM, scalar=3), Operand(IFM2)), [(IFM2, BOX)]),
        (elementwise(Operand(replace(IFM, chain=1)), Operand(IFM2)), [(IFM2, BOX)]),
        (changed(ifm=replace(IFM, chain=1)), []),
    ],
)
def test_a_part_of_the_ofm_needs_a_part_of_the_ifm(op: BlockOp, parts: list[Part]) -> None:
    assert list(inputs(op, BOX, CHANNELS)) == parts


def test_blocks_go_through_channels_first_and_padding_reads_nothing() -> None:
    op = changed(kernel=kernel(1, 1), padding=Padding(2, 0, 0, 0))
    assert list(inputs(op, ((0, 2), (0, 8), (0, 32)), CHANNELS)) == []
    order = list(ofm_blocks(changed(shape=(3, 8, 32))))
    assert order[:3] == [
        ((0, 2), (0, 4), (0, 16)),
        ((0, 2), (0, 4), (16, 32)),
        ((0, 2), (4, 8), (0, 16)),
    ]
    assert order[-1] == ((2, 3), (4, 8), (16, 32))
    assert len(order) == 8
    assert last_ofm_blocks(changed(shape=(3, 8, 32)), 3) == order[:-4:-1]
    assert last_ofm_blocks(changed(shape=(3, 8, 32)), 100) == order[::-1]


@each(
    ("reverse", "transpose", "place"),
    [
        (None, None, BOX),
        (0, None, ((2, 4), (4, 8), (16, 32))),  # rows 2 and 3 of 6
        (1, None, ((2, 4), (0, 4), (16, 32))),
        (2, None, ((2, 4), (4, 8), (0, 16))),
        (None, (2, 0, 1), ((16, 32), (2, 4), (4, 8))),
        (1, (1, 0, 2), ((0, 4), (2, 4), (16, 32))),
    ],
)
def test_the_ofm_is_stored_reversed_then_transposed(
    reverse: int | None, transpose: tuple[int, int, int] | None, place: Box
) -> None:
    op = changed(output=replace(OP.output, reverse=reverse, transpose=transpose))
    assert stored(op, BOX) == place


def conv(dtype: np.dtype[Any], **changes: Any) -> BlockOp:
    """A convolution of one position: its reads are channels alone."""
    ifm = dense(0x1000, (1, 1, 256), dtype)
    rest = {"kind": Kind.CONV, "mode": None, "shape": (1, 1, 32), "ifm_depth": 256, "block": (1, 1, 32)}
    return changed(ifm=ifm, **{**rest, **changes})


PART_KERNEL = Kernel(1, 1, 1, 1, 1, 1, part_kernel_first=True)
SPARSE = WeightStreams((Stream(0, 0, 16),), sparse=True)


@each(
    ("op", "config", "depth"),
    [
        (conv(INT8), U55_128, 32),
        (conv(INT16), U55_128, 16),
        (conv(INT8, kernel=PART_KERNEL), U55_128, 16),
        (conv(INT32, kind=Kind.POOL, mode=PoolMode.REDUCE_SUM), U55_128, 32),
        (conv(INT8), U65_512, 32),
        (conv(INT8), U85_256, 64),
        (conv(INT8, micro_block=(1, 2, 16)), U85_256, 32),
        (conv(INT8, micro_block=(1, 2, 16)), U85_2048, 64),
        (conv(INT32, kind=Kind.POOL, mode=PoolMode.REDUCE_SUM), U85_2048, 32),
        (conv(INT8, kernel=PART_KERNEL), U85_2048, 16),
        (conv(INT8, weights=SPARSE), U85_2048, 128),
        (conv(INT16, weights=SPARSE), U85_2048, 64),
    ],
)
def test_ifm_blocks_are_slices_of_channels(op: BlockOp, config: NpuConfig, depth: int) -> None:
    """Their depths are those for which the weights are ordered, where there are weights."""
    first, second = first_reads(op, config, 2)
    length = depth * op.ifm.dtype.itemsize
    assert first == (Access(1, False, Runs(0x1000, (), length)),)
    assert second == (Access(1, False, Runs(0x1000 + length, (), length)),)


def test_weights_are_read_whole_and_the_ofm_is_written_where_it_is_stored() -> None:
    streams = (Stream(0, 0x100, 32), Stream(0, 0x200, 48), Stream(0, 0x300, 0))
    scales = ScaleStreams((Stream(2, 0x400, 320),), ScaleFormat.BIAS_40)
    found = accesses(conv(INT8, weights=WeightStreams(streams), scales=scales), U65_512)
    assert found[2:] == (
        Access(0, False, Runs(0x100, (), 32)),
        Access(0, False, Runs(0x200, (), 48)),
        Access(2, False, Runs(0x400, (), 320)),
    )
    op = changed(ofm=dense(0x100, (8, 6, 32)), output=replace(OP.output, transpose=(1, 0, 2)))
    assert accesses(op, U55_128)[-1] == Access(1, True, Runs(0x100, (), 8 * 6 * 32))
    ((last,), *_) = last_writes(op, 2)
    axes = ((2, 32), (4, 6 * 32))
    assert last == Access(1, True, Runs(0x100 + 4 * 6 * 32 + 4 * 32 + 16, axes, 16))
    assert whole(op.stored_shape) == ((0, 8), (0, 6), (0, 32))


@pytest.mark.parametrize(
    ("index", "result", "length"), [(INT8, INT8, 256), (INT8, INT32, 1024), (INT16, INT16, 2048)]
)
def test_tables_by_their_size(index: np.dtype[Any], result: np.dtype[Any], length: int) -> None:
    op = changed(output=replace(OP.output, lut=Lut(0x100, index, result)))
    assert accesses(op, U85_256)[-1] == Access(None, False, Runs(0x100, (), length))


def test_a_transfer_of_rows_and_planes() -> None:
    op = DmaOp(0, 0, 0x100, 1, 0x800, 16, (2, 3), (48, 16), (256, 32))
    assert accesses(op, U85_256) == (
        Access(0, False, Runs(0x100, (), 96)),
        Access(1, True, runs(0x800, [(3, 32), (2, 256)], 16)),
    )
    assert accesses(replace(op, counts=(2, 0)), U85_256) == ()


@pytest.mark.parametrize("scatters", [False, True])
def test_an_index_may_name_every_row(scatters: bool) -> None:
    index = DmaIndex(2, 0x40, maximum=9, plane_stride=20, scatters=scatters)
    op = DmaOp(0, 0, 0x100, 1, 0x800, 16, (1, 3), (0, 64), (0, 64), index)
    source, target = (3, 10) if scatters else (10, 3)
    assert accesses(op, U85_256) == (
        Access(2, False, Runs(0x40, (), 12)),
        Access(0, False, runs(0x100, [(source, 64)], 16)),
        Access(1, True, runs(0x800, [(target, 64)], 16)),
    )
