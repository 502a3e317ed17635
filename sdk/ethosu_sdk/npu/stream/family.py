"""What the register readings of the two command sets have in common: the parts of a descriptor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ethosu_sdk.npu.operation import (
    FeatureMap,
    Kernel,
    Kind,
    Mode,
    Operand,
    Output,
    ResizeAxis,
    ScaleFormat,
    Shape,
    Stream,
    WeightStreams,
)
from ethosu_sdk.npu.stream.register_file import Registers, signed

_DTYPES = {
    (0, 0): "<u1",
    (1, 0): "<i1",
    (0, 1): "<u2",
    (1, 1): "<i2",
    (1, 2): "<i4",
    (1, 3): "<i8",
}


@dataclass(frozen=True)
class Accumulator:
    """Bits of the accumulators, what they start from (if not 0), whether their sums are written, and their first bank
    of the shared RAM."""

    bits: int
    from_ifm2: bool = False
    continues: bool = False
    is_partial: bool = False
    bank: int = 0


class Family(Protocol):
    """How one command set's registers describe an operation, where it differs from the other's."""

    modes: dict[Kind, frozenset[Mode]]

    def chain(self, registers: Registers, prefix: str) -> int | None:
        """The number of the chaining buffer that holds a feature map."""

    def output(self, registers: Registers, kind: Kind, mode: Mode | None, dtype: np.dtype[Any]) -> Output:
        """The output stage of an operation whose OFM has elements of `dtype`."""

    def operands(self, registers: Registers, mode: Mode) -> tuple[Operand, ...]:
        """The operands of an elementwise operation, A first."""

    def weights(self, registers: Registers) -> WeightStreams:
        """The weight streams of a convolution."""

    def scale_streams(self, registers: Registers) -> tuple[Stream, ...]:
        """Where the scales and biases are."""

    def scale_format(self, accumulator_bits: int) -> ScaleFormat:
        """How the scales are stored."""

    def accumulator(self, registers: Registers, kind: Kind) -> Accumulator:
        """How the accumulators are used."""

    def micro_block(self, registers: Registers, kind: Kind) -> Shape:
        """The OFM micro-block."""

    def resize(self, registers: Registers) -> tuple[ResizeAxis, ResizeAxis] | None:
        """The sampling of a RESIZE."""

    def divides(self, registers: Registers) -> bool:
        """Whether an AVERAGE divides by the number of elements that are not padding."""


def dtype_of(registers: Registers, prefix: str) -> np.dtype[Any]:
    """The element type of the feature map `prefix` (IFM, IFM2 or OFM)."""
    register = f"{prefix}_PRECISION"
    key = (
        registers.field(register, "activation_type"),
        registers.field(register, "activation_precision"),
    )
    if key not in _DTYPES:
        raise registers.unsupported(register, "element type")
    return np.dtype(_DTYPES[key])


def feature_map(registers: Registers, prefix: str, chain: int | None) -> FeatureMap:
    """The feature map `prefix`, in memory or in the chaining buffer `chain`."""
    dtype = dtype_of(registers, prefix)
    bricks = registers.choose(
        f"{prefix}_PRECISION", "activation_format", {0: False, 1: True}, "feature map format"
    )
    zero_point = registers.field(f"{prefix}_ZERO_POINT", "zero_point")
    base0, base1, base2, base3 = (registers.address(f"{prefix}_BASE{tile}") for tile in range(4))
    return FeatureMap(
        region=registers.field(f"{prefix}_REGION", "region"),
        bases=(base0, base1, base2, base3),
        height0=registers.size(f"{prefix}_HEIGHT0_M1"),
        height1=registers.size(f"{prefix}_HEIGHT1_M1"),
        width0=registers.size(f"{prefix}_WIDTH0_M1"),
        stride_y=registers.address(f"{prefix}_STRIDE_Y"),
        stride_x=registers.address(f"{prefix}_STRIDE_X"),
        stride_c=registers.address(f"{prefix}_STRIDE_C"),
        dtype=dtype,
        bricks=bricks,
        zero_point=signed(zero_point, 16) if dtype.kind == "i" else zero_point,
        chain=chain,
    )


def kernel_of(registers: Registers) -> Kernel:
    """The kernel; the registers hold its dilated size."""

    def stride(name: str) -> int:
        return registers.field("KERNEL_STRIDE", name)

    if stride("decomposition"):
        raise registers.unsupported("KERNEL_STRIDE", "4x4 decomposition")
    dilation_y, dilation_x = stride("dilation_y") + 1, stride("dilation_x") + 1
    return Kernel(
        height=(registers.size("KERNEL_HEIGHT_M1") - 1) // dilation_y + 1,
        width=(registers.size("KERNEL_WIDTH_M1") - 1) // dilation_x + 1,
        stride_y=(stride("stride_y_lsb") | stride("stride_y_msb") << 1) + 1,
        stride_x=(stride("stride_x_lsb") | stride("stride_x_msb") << 1) + 1,
        dilation_y=dilation_y,
        dilation_x=dilation_x,
        part_kernel_first=bool(stride("weight_order")),
    )


def clip_limits(registers: Registers, dtype: np.dtype[Any]) -> tuple[int, int]:
    """ACTIVATION_MIN and ACTIVATION_MAX, 16 bits each, signed as `dtype` is."""
    low = registers.field("ACTIVATION_MIN", "clip_boundary")
    high = registers.field("ACTIVATION_MAX", "clip_boundary")
    return (signed(low, 16), signed(high, 16)) if dtype.kind == "i" else (low, high)


def stream_of(registers: Registers, prefix: str, region: str) -> Stream:
    """The bytes that `prefix`_BASE and `prefix`_LENGTH name in a region."""
    return Stream(
        registers.field(f"{region}_REGION", "region"),
        registers.address(f"{prefix}_BASE"),
        registers.field(f"{prefix}_LENGTH", "length"),
    )


def streams_of(registers: Registers, prefixes: tuple[str, ...], region: str) -> tuple[Stream, ...]:
    """The first stream and those of the others that are not empty."""
    first, *others = (stream_of(registers, prefix, region) for prefix in prefixes)
    return (first, *(stream for stream in others if stream.length))
