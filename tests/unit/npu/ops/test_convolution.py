"""Convolution and depthwise convolution, from encoded weights to bytes, against plain loops."""

from dataclasses import dataclass

import numpy as np
import pytest
from ethosu import mlw_codec
from numpy.typing import NDArray

from ethosu_sdk.npu.errors import UnsupportedCommand
from ethosu_sdk.npu.ops import exact_float
from tests.unit.npu.machine import place, run, taken
from tests.unit.npu.streams import CONV, DEPTHWISE, NATURAL, Setting, feature_map, ofm, scale_entry, stream
from tests.unit.npu.tosa import apply_scale_32

IFM_BASE, OFM_BASE = 0x1000, 0x8000
Array = NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """A convolution of an IFM of (rows, columns, channels) by weights of (OFM, height, width, IFM)."""

    ifm: tuple[int, int, int]
    weights: tuple[int, int, int, int]
    depthwise: bool = False
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)  # top, left, bottom, right
    part_kernel_first: bool = False
    bits: int = 8
    natural: bool = True
    upscale: int = 0


def upscaled(values: Array, mode: int) -> Array:
    if not mode:
        return values
    rows, columns, depth = values.shape
    result = np.zeros((2 * rows, 2 * columns, depth), np.int64)
    for y, x, c in np.ndindex(*result.shape):
        if mode == 1 or (y % 2 == 0 and x % 2 == 0):
            result[y, x, c] = values[y // 2, x // 2, c]
    return result


def sums(case: Case, ifm: Array, weights: Array) -> Array:
    """The convolution by its definition; padding counts nothing."""
    values = upscaled(ifm, case.upscale)
    top, left, bottom, right = case.pad
    depth, height, width, _ = case.weights
    rows = (values.shape[0] + top + bottom - (height - 1) * case.dilation[0] - 1) // case.stride[0] + 1
    columns = (values.shape[1] + left + right - (width - 1) * case.dilation[1] - 1) // case.stride[1] + 1
    total = np.zeros((rows, columns, depth), np.int64)
    for y, x, o, i, j in np.ndindex(rows, columns, depth, height, width):
        row = y * case.stride[0] + i * case.dilation[0] - top
        column = x * case.stride[1] + j * case.dilation[1] - left
        if 0 <= row < values.shape[0] and 0 <= column < values.shape[1]:
            source = values[row, column, o : o + 1] if case.depthwise else values[row, column]
            total[y, x, o] += int((source * weights[o, i, j]).sum())
    return total


def registers(case: Case, shape: tuple[int, int, int], sizes: tuple[int, int]) -> dict[str, Setting]:
    stride, dilation = case.stride, case.dilation
    return {
        **feature_map("IFM", IFM_BASE, case.ifm, case.bits),
        **ofm(OFM_BASE, shape, case.bits, NATURAL if case.natural else 0),
        "IFM_DEPTH_M1": case.ifm[2] - 1,
        "IFM_ZERO_POINT": 5,
        "OFM_ZERO_POINT": -3,
        **{f"IFM_PAD_{s}": n for s, n in zip(("TOP", "LEFT", "BOTTOM", "RIGHT"), case.pad, strict=True)},
        "IFM_UPSCALE": case.upscale,
        "KERNEL_HEIGHT_M1": (case.weights[1] - 1) * dilation[0],
        "KERNEL_WIDTH_M1": (case.weights[2] - 1) * dilation[1],
        "KERNEL_STRIDE": (stride[1] - 1 & 1)
        | (stride[0] - 1 & 1) << 1
        | case.part_kernel_first << 2
        | (dilation[1] - 1) << 3
        | (dilation[0] - 1) << 4
        | (stride[1] - 1 >> 1) << 6
        | (stride[0] - 1 >> 1) << 9,
        "ACC_FORMAT": 1 if case.bits == 16 else 0,
        "ACTIVATION": 0,
        "WEIGHT_REGION": 0,
        "WEIGHT_BASE": 0,
        "WEIGHT_LENGTH": sizes[0],
        "SCALE_REGION": 0,
        "SCALE_BASE": sizes[0],
        "SCALE_LENGTH": sizes[1],
    }


def check(case: Case) -> None:
    generator = np.random.default_rng(11)
    limit = 1 << (case.bits - 1)
    ifm = generator.integers(-limit, limit, case.ifm)
    weights = generator.integers(-127, 128, case.weights)
    depth = case.weights[0]
    # Powers of two and half that: every channel meets ties.
    scales = [
        (int(bias), 1 << 30, int(shift))
        for bias, shift in zip(
            generator.integers(-5000, 5000, depth), generator.integers(36, 45, depth), strict=True
        )
    ]
    stream_bytes = bytes(
        mlw_codec.reorder_encode(
            8,
            8,
            weights.astype(np.int16),
            16,
            case.depthwise,
            case.part_kernel_first,
            case.bits,
            8 // case.dilation[0],
            8 // case.dilation[1],
        )[0]
    )
    constants = stream_bytes + b"".join(scale_entry(*entry) for entry in scales)
    total = sums(case, ifm - 5, weights)
    settings = registers(case, (total.shape[0], total.shape[1], depth), (len(stream_bytes), 10 * depth))
    scratch = place((IFM_BASE, ifm.astype(f"<i{case.bits // 8}")))
    opcode = DEPTHWISE if case.depthwise else CONV
    run(stream((settings, opcode, 0)), scratch, constants)
    expected = [
        max(
            -limit,
            min(limit - 1, apply_scale_32(int(total[y, x, o]) + bias, scale, shift, not case.natural) - 3),
        )
        for y in range(total.shape[0])
        for x in range(total.shape[1])
        for o, (bias, scale, shift) in enumerate(scales)
    ]
    assert taken(scratch, OFM_BASE, len(expected), f"<i{case.bits // 8}") == expected
    assert len(set(expected)) > 10  # not all of them clamped


CASES = {
    "1x1": Case((4, 5, 7), (9, 1, 1, 7)),
    "1x1_double_round": Case((4, 5, 7), (9, 1, 1, 7), natural=False),
    "1x1_stride_2": Case((5, 6, 3), (4, 1, 1, 3), stride=(2, 2)),
    "3x3_padded": Case((5, 6, 10), (17, 3, 3, 10), pad=(1, 1, 1, 1)),
    "part_kernel_first": Case((5, 6, 3), (6, 3, 3, 3), part_kernel_first=True),
    "stride_2_by_3": Case((8, 10, 4), (5, 3, 2, 4), stride=(2, 3), pad=(1, 0, 0, 1)),
    "dilated": Case((7, 8, 4), (5, 3, 2, 4), dilation=(2, 2), pad=(2, 1, 2, 1)),
    "dilated_one_axis": Case((7, 8, 4), (5, 3, 2, 4), dilation=(1, 2)),
    "9x10": Case((10, 11, 2), (4, 9, 10, 2)),
    "33_channels": Case((2, 3, 33), (20, 1, 2, 33)),
    "16_bit": Case((4, 5, 7), (9, 2, 2, 7), bits=16),
    "16_bit_double_round": Case((4, 5, 7), (9, 2, 2, 7), bits=16, natural=False),
    "upscaled_nearest": Case((3, 4, 5), (6, 2, 2, 5), upscale=1),
    "upscaled_zeros": Case((3, 4, 5), (6, 2, 2, 5), upscale=2, pad=(1, 1, 0, 0)),
    "depthwise": Case((5, 6, 11), (11, 3, 3, 1), depthwise=True, pad=(1, 1, 1, 1)),
    "depthwise_stride_2": Case((6, 7, 9), (9, 3, 2, 1), depthwise=True, stride=(2, 2)),
    "depthwise_dilated": Case((7, 8, 9), (9, 3, 3, 1), depthwise=True, dilation=(2, 1)),
    "depthwise_16_bit": Case((4, 5, 20), (20, 2, 2, 1), depthwise=True, bits=16),
}


@pytest.mark.parametrize("name", CASES)
def test_convolutions(name: str) -> None:
    check(CASES[name])


def test_an_ifm_of_one_channel_serves_every_depthwise_kernel() -> None:
    weights = np.array([2, -3, 4]).reshape(3, 1, 1, 1)
    encoded = bytes(mlw_codec.reorder_encode(8, 8, weights.astype(np.int16), 16, True, False, 8, 8, 8)[0])
    case = Case((2, 2, 1), (3, 1, 1, 1), depthwise=True)
    settings = {**registers(case, (2, 2, 3), (len(encoded), 30)), "IFM_ZERO_POINT": 0, "OFM_ZERO_POINT": 0}
    scratch = place((IFM_BASE, np.array([1, 2, 3, 4], np.int8)))
    run(stream((settings, DEPTHWISE, 0)), scratch, encoded + scale_entry(0, 1, 0) * 3)
    assert taken(scratch, OFM_BASE, 12, "<i1") == [2, -3, 4, 4, -6, 8, 6, -9, 12, 8, -12, 16]
    with pytest.raises(UnsupportedCommand, match="IFM_DEPTH_M1"):
        run(
            stream(({**settings, "IFM_DEPTH_M1": 1}, DEPTHWISE, 0)),
            scratch,
            encoded + scale_entry(0, 1, 0) * 3,
        )


@pytest.mark.parametrize(
    ("largest_sum", "largest_input", "kind"),
    [
        (1, 255, np.float32),
        ((1 << 24) // 255, 255, np.float32),
        ((1 << 24) // 255 + 1, 255, np.float64),
        (1 << 24, 1, np.float64),
    ],
)
def test_float32_is_used_only_where_every_partial_sum_is_exact(
    largest_sum: int, largest_input: int, kind: type
) -> None:
    assert exact_float(largest_sum * largest_input) is kind
    if kind is np.float32:
        assert np.float32(largest_sum * largest_input) == largest_sum * largest_input


def test_sums_beyond_float32_are_exact() -> None:
    """600 channels of 255 times 127: 19 million, 2^24 being 16.8."""
    channels = 600
    weights = np.full((8, 1, 1, channels), 127)
    weights[:, :, :, 1::2] = 126
    encoded = bytes(mlw_codec.reorder_encode(8, 8, weights.astype(np.int16), 16, False, False, 8, 8, 8)[0])
    case = Case((1, 1, channels), (8, 1, 1, channels))
    settings = {**registers(case, (1, 1, 8), (len(encoded), 80)), "IFM_ZERO_POINT": -128, "OFM_ZERO_POINT": 0}
    settings |= ofm(OFM_BASE, (1, 1, 8), 32, NATURAL)
    scratch = place((IFM_BASE, np.full(channels, 127, np.int8)))
    run(stream((settings, CONV, 0)), scratch, encoded + scale_entry(1, 1, 0) * 8)
    assert taken(scratch, OFM_BASE, 8, "<i4") == [255 * (127 + 126) * channels // 2 + 1] * 8
