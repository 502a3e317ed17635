"""Elementwise operations of one row: registers, operands and what comes out."""

import numpy as np

from ethosu_sdk.npu.config import NpuConfig
from tests.unit.npu.machine import U55_128, place, run, taken
from tests.unit.npu.streams import ELEMENTWISE, Setting, feature_map, ofm, stream

MUL, ADD, SUB, MIN, MAX, LRELU, ABS, CLZ, SHR, SHL = range(10)
A_BASE, B_BASE, OFM_BASE = 0x1000, 0x2000, 0x3000
SCALE_A, SCALE_B = 1 << 8, 2 << 8  # IFM_PRECISION.scale_mode: which operand has the 32-bit scale


def registers(
    size: int, bits: int = 8, ofm_bits: int | None = None, ifm: int = 0, out: int = 0
) -> dict[str, Setting]:
    """IFM, IFM2 and OFM of one row of `size` channels; no scaling, no broadcast."""
    shape = (1, 1, size)
    return {
        **feature_map("IFM", A_BASE, shape, bits, ifm),
        **feature_map("IFM2", B_BASE, shape, bits),
        **ofm(OFM_BASE, shape, ofm_bits or bits, out),
        "IFM2_BROADCAST": 0,
        "ACTIVATION": 0,
    }


def result(
    mode: int,
    a: list[int],
    b: list[int],
    bits: int,
    settings: dict[str, Setting],
    ofm_bits: int | None = None,
    config: NpuConfig = U55_128,
) -> list[int]:
    scratch = place((A_BASE, np.array(a, f"<i{bits // 8}")), (B_BASE, np.array(b, f"<i{bits // 8}")))
    run(stream((settings, ELEMENTWISE, mode)), scratch, config=config)
    return taken(scratch, OFM_BASE, len(a), f"<i{(ofm_bits or bits) // 8}")


PAIRS_8 = ([-128, -1, 0, 1, 127, 5, -5, 64], [127, -1, 3, -128, 127, -5, 5, 63])
PAIRS_32 = ([-(2**31), -1, 0, 1, 2**31 - 1, 70000, -70000, 12345], [5, -1, 3, -(2**31), 0, -2, 7, 54321])


def clipped(value: int) -> int:
    return max(-128, min(127, value))
