"""Command streams written by hand: opcodes are literals here, independent of the model's table."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk.npu.errors import BusError

CONV, DEPTHWISE, POOL, ELEMENTWISE, RESIZE, DMA_START = 0x002, 0x003, 0x005, 0x006, 0x007, 0x010
BRANCH = 0x100  # two words
STOP = struct.pack("<I", 0xFFFF_0000)

# Opcodes of the registers that these tests use: those that Ethos-U55 and Ethos-U65 have, version 1.0.6.
ONE_WORD = {
    "IFM_PAD_TOP": 0x100,
    "IFM_PAD_LEFT": 0x101,
    "IFM_PAD_RIGHT": 0x102,
    "IFM_PAD_BOTTOM": 0x103,
    "IFM_DEPTH_M1": 0x104,
    "IFM_PRECISION": 0x105,
    "IFM_UPSCALE": 0x107,
    "IFM_ZERO_POINT": 0x109,
    "IFM_WIDTH0_M1": 0x10A,
    "IFM_HEIGHT0_M1": 0x10B,
    "IFM_HEIGHT1_M1": 0x10C,
    "IFM_REGION": 0x10F,
    "OFM_WIDTH_M1": 0x111,
    "OFM_HEIGHT_M1": 0x112,
    "OFM_DEPTH_M1": 0x113,
    "OFM_PRECISION": 0x114,
    "OFM_BLK_WIDTH_M1": 0x115,
    "OFM_BLK_HEIGHT_M1": 0x116,
    "OFM_BLK_DEPTH_M1": 0x117,
    "OFM_ZERO_POINT": 0x118,
    "OFM_WIDTH0_M1": 0x11A,
    "OFM_HEIGHT0_M1": 0x11B,
    "OFM_HEIGHT1_M1": 0x11C,
    "OFM_REGION": 0x11F,
    "KERNEL_WIDTH_M1": 0x120,
    "KERNEL_HEIGHT_M1": 0x121,
    "KERNEL_STRIDE": 0x122,
    "ACC_FORMAT": 0x124,
    "ACTIVATION": 0x125,
    "ACTIVATION_MIN": 0x126,
    "ACTIVATION_MAX": 0x127,
    "WEIGHT_REGION": 0x128,
    "SCALE_REGION": 0x129,
    "AB_START": 0x12D,
    "BLOCKDEP": 0x12F,
    "DMA0_SRC_REGION": 0x130,
    "DMA0_DST_REGION": 0x131,
    "DMA0_SIZE0": 0x132,
    "DMA0_SIZE1": 0x133,
    "IFM2_BROADCAST": 0x180,
    "IFM2_SCALAR": 0x181,
    "IFM2_PRECISION": 0x185,
    "IFM2_ZERO_POINT": 0x189,
    "IFM2_WIDTH0_M1": 0x18A,
    "IFM2_HEIGHT0_M1": 0x18B,
    "IFM2_HEIGHT1_M1": 0x18C,
    "IFM2_REGION": 0x18F,
}
# Two words: the second one is the value's low half, bits 23:16 of the first its bits 39:32.
ADDRESSES = {
    "IFM_BASE0": 0x000,
    "IFM_BASE1": 0x001,
    "IFM_BASE2": 0x002,
    "IFM_BASE3": 0x003,
    "IFM_STRIDE_X": 0x004,
    "IFM_STRIDE_Y": 0x005,
    "IFM_STRIDE_C": 0x006,
    "OFM_BASE0": 0x010,
    "OFM_BASE1": 0x011,
    "OFM_BASE2": 0x012,
    "OFM_BASE3": 0x013,
    "OFM_STRIDE_X": 0x014,
    "OFM_STRIDE_Y": 0x015,
    "OFM_STRIDE_C": 0x016,
    "WEIGHT_BASE": 0x020,
    "WEIGHT_LENGTH": 0x021,
    "SCALE_BASE": 0x022,
    "SCALE_LENGTH": 0x023,
    "DMA0_SRC": 0x030,
    "DMA0_DST": 0x031,
    "DMA0_LEN": 0x032,
    "DMA0_SKIP0": 0x033,
    "DMA0_SKIP1": 0x034,
    "IFM2_BASE0": 0x080,
    "IFM2_STRIDE_X": 0x084,
    "IFM2_STRIDE_Y": 0x085,
    "IFM2_STRIDE_C": 0x086,
    "WEIGHT1_BASE": 0x090,
    "WEIGHT1_LENGTH": 0x091,
    "SCALE1_BASE": 0x092,
    "SCALE1_LENGTH": 0x093,
}
# (scale, shift): the shift in bits 21:16 of the first word, the scale in the second.
SCALES = {"OFM_SCALE": 0x024, "OPA_SCALE": 0x025, "OPB_SCALE": 0x026}

# What only Ethos-U85 has, version 2.0.0.
U85_ONE_WORD = {
    "IFM_BROADCAST": 0x108,
    "RESIZE_X_SCALE_N_M1": 0x12A,
    "RESIZE_Y_SCALE_N_M1": 0x12B,
    "RESIZE_X_OFFSET": 0x12C,
    "RESIZE_Y_OFFSET": 0x12D,
    "WEIGHT_FORMAT": 0x12E,
    "DMA0_IDX_REGION": 0x134,
}
U85_ADDRESSES = {
    "OP_SCALAR": 0x027,
    "DMA0_SRC_STRIDE0": 0x033,
    "DMA0_SRC_STRIDE1": 0x034,
    "DMA0_DST_STRIDE0": 0x035,
    "DMA0_DST_STRIDE1": 0x036,
    "DMA0_IDX": 0x037,
    "DMA0_IDX_MAX": 0x038,
    "DMA0_IDX_SKIP1": 0x039,
    "WEIGHT2_BASE": 0x092,
    "WEIGHT2_LENGTH": 0x093,
    "WEIGHT3_BASE": 0x094,
    "WEIGHT3_LENGTH": 0x095,
}
# Pairs of (second word, bits 31:16 of the first). IFM_SCALE, IFM2_SCALE and OFM_SCALE hold a rounding mode beside
# the shift; RESIZE_X and RESIZE_Y hold the remainder of a step in the second word, its whole part in the first.
U85_SCALES = {"IFM_SCALE": 0x025, "IFM2_SCALE": 0x026, "RESIZE_X": 0x096, "RESIZE_Y": 0x097}

_ONE_WORD = {**ONE_WORD, **U85_ONE_WORD}
_ADDRESSES = {**ADDRESSES, **U85_ADDRESSES}
_PAIRS = {**SCALES, **U85_SCALES}

Setting = int | tuple[int, int]


def one(opcode: int, parameter: int = 0) -> bytes:
    """A command of one word."""
    return struct.pack("<I", (parameter & 0xFFFF) << 16 | opcode)


def two(opcode: int, parameter: int, payload: int) -> bytes:
    """A command of two words."""
    return struct.pack("<II", (parameter & 0xFFFF) << 16 | 0x4000 | opcode, payload & 0xFFFF_FFFF)


def setting(name: str, value: Setting) -> bytes:
    """The command that sets a register."""
    if isinstance(value, tuple):
        return two(_PAIRS[name], value[1], value[0])
    if name in _ADDRESSES:
        return two(_ADDRESSES[name], value >> 32 & 0xFF, value)
    return one(_ONE_WORD[name], value)


def precision(bits: int, signed: bool = True, ofm: bool = False, extra: int = 0) -> int:
    """The parameter of IFM_, IFM2_ or OFM_PRECISION; `extra` holds further fields, as bits of the parameter."""
    return int(signed) | {8: 0, 16: 1, 32: 2, 64: 3}[bits] << (1 if ofm else 2) | extra


GLOBAL_SCALE = 1 << 8  # OFM_PRECISION.scale_mode
NATURAL = 2 << 14  # OFM_PRECISION.round_mode and IFM_PRECISION.round_mode; on Ethos-U85, activation_storage
BRICKS = 1 << 6  # activation_format NHCWB16

# Ethos-U85: added to the shift in OFM_SCALE, IFM_SCALE or IFM2_SCALE. Without one, DOUBLE_SYMMETRIC.
NATURAL_85, DOWN_85 = 1 << 13, 5 << 13
CHAINED, NO_STORAGE = 2 << 14, 3 << 14  # IFM_, IFM2_ and OFM_PRECISION.activation_storage
# Scales of one, for Ethos-U85 and for the others.
UNSCALED_85: dict[str, Setting] = {f"{prefix}_SCALE": (1, NATURAL_85) for prefix in ("IFM", "IFM2", "OFM")}
UNSCALED: dict[str, Setting] = {f"{name}_SCALE": (1, 0) for name in ("OFM", "OPA", "OPB")}


def feature_map(
    prefix: str, base: int, shape: tuple[int, int, int], bits: int, extra: int = 0
) -> dict[str, Setting]:
    """A dense NHWC feature map of (height, width, depth) in one tile at `base` of region 1."""
    height, width, depth = shape
    size = bits // 8
    return {
        f"{prefix}_REGION": 1,
        f"{prefix}_BASE0": base,
        f"{prefix}_STRIDE_X": depth * size,
        f"{prefix}_STRIDE_Y": width * depth * size,
        f"{prefix}_WIDTH0_M1": width - 1,
        f"{prefix}_HEIGHT0_M1": height - 1,
        f"{prefix}_HEIGHT1_M1": height - 1,
        f"{prefix}_ZERO_POINT": 0,
        f"{prefix}_PRECISION": precision(bits, ofm=prefix == "OFM", extra=extra),
    }


def ofm(base: int, shape: tuple[int, int, int], bits: int, extra: int = 0) -> dict[str, Setting]:
    """A dense OFM with its size, a block of that size, and the whole range of 16 bits as clamp."""
    height, width, depth = shape
    return {
        **feature_map("OFM", base, shape, bits, extra),
        "OFM_HEIGHT_M1": height - 1,
        "OFM_WIDTH_M1": width - 1,
        "OFM_DEPTH_M1": depth - 1,
        "OFM_BLK_HEIGHT_M1": min(height, 8) - 1,
        "OFM_BLK_WIDTH_M1": min(width, 8) - 1,
        "OFM_BLK_DEPTH_M1": 15,
        "ACTIVATION_MIN": -128 if bits == 8 else -32768,
        "ACTIVATION_MAX": 127 if bits == 8 else 32767,
    }


def operands(
    bases: tuple[int, int, int], shape: tuple[int, int, int], bits: int = 8, extra: int = 0
) -> dict[str, Setting]:
    """IFM, IFM2 and OFM of one `shape` at their `bases`, IFM2 without broadcast; `extra` is of OFM_PRECISION."""
    return {
        **feature_map("IFM", bases[0], shape, bits),
        **feature_map("IFM2", bases[1], shape, bits),
        **ofm(bases[2], shape, bits, extra),
        "IFM2_BROADCAST": 0,
    }


def copying_pool(
    source: int, target: int, shape: tuple[int, int, int], *, is_u85: bool = False
) -> dict[str, Setting]:
    """Registers with which a pool of one element copies int8: an average, or on Ethos-U85 a sum."""
    return {
        **feature_map("IFM", source, shape, 8),
        **ofm(target, shape, 8, GLOBAL_SCALE | (0 if is_u85 else NATURAL)),
        "OFM_SCALE": (1, NATURAL_85 if is_u85 else 0),
        "ACC_FORMAT": 0,
        "ACTIVATION": 0,
    }


def chained(prefix: str, buffer: int, bits: int = 8) -> dict[str, Setting]:
    """That Ethos-U85 has `prefix` in a chaining buffer; its addresses point nowhere."""
    extra = CHAINED | (GLOBAL_SCALE if prefix == "OFM" else 0)
    return {
        f"{prefix}_PRECISION": precision(bits, ofm=prefix == "OFM", extra=extra),
        f"{prefix}_REGION": buffer,
        f"{prefix}_BASE0": -(1 << 39),
    }


def transfer(source: tuple[int, int], target: tuple[int, int], length: int) -> dict[str, Setting]:
    """Registers of a DMA between (region, address) and (region, address); region 1 << 8 is the NPU's own memory."""
    return {
        "DMA0_SRC_REGION": source[0],
        "DMA0_SRC": source[1],
        "DMA0_DST_REGION": target[0],
        "DMA0_DST": target[1],
        "DMA0_LEN": length,
    }


def stream(*operations: tuple[Mapping[str, Setting], int, int], stop: bool = True) -> bytes:
    """Operations as (registers to set before, opcode, parameter), and NPU_OP_STOP."""
    parts = []
    for registers, opcode, parameter in operations:
        parts += [setting(name, value) for name, value in registers.items()]
        parts.append(one(opcode, parameter))
    return b"".join([*parts, STOP if stop else b""])


def branch(target: int, conditional: bool = False) -> bytes:
    """NPU_OP_BRANCH to byte `target` of the stream."""
    return two(BRANCH, int(conditional), target)


def scale_entry(bias: int, scale: int, shift: int) -> bytes:
    """Ten bytes of a scale stream of Ethos-U55 or Ethos-U65: 40 bits of bias, 32 of scale, 6 of shift."""
    return (bias & (1 << 40) - 1).to_bytes(5, "little") + struct.pack("<IB", scale, shift)


@dataclass
class Ram:
    """Guest memory for a device: one bank of bytes at `base`."""

    base: int = 0x6000_0000
    data: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(1 << 16, np.uint8))

    def window(self, address: int) -> NDArray[np.uint8]:
        """The bytes from `address` on."""
        if not self.base <= address < self.base + self.data.size:
            raise BusError(f"no memory at {address:#x}")
        return self.data[address - self.base :]

    def put(self, address: int, data: bytes | Sequence[int]) -> None:
        """Store bytes at an absolute address."""
        values = np.frombuffer(bytes(data), np.uint8)
        self.data[address - self.base :][: values.size] = values
