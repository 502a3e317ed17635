"""Frozen descriptions of what one NPU operation does, with every register already interpreted.

Shapes are (height, width, depth). Addresses and strides are in bytes, relative to the region's base.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

Shape = tuple[int, int, int]


class Rounding(Enum):
    """How a scaled value loses its fraction."""

    DOUBLE = "double"  # TOSA DOUBLE_ROUND
    NATURAL = "natural"  # half up; TOSA SINGLE_ROUND


class PoolMode(Enum):
    """Pooling modes, by the number in NPU_OP_POOL."""

    MAX = 0
    AVERAGE = 1
    REDUCE_SUM = 2


class ElementwiseMode(Enum):
    """Elementwise modes, by the number in NPU_OP_ELEMENTWISE."""

    MUL = 0
    ADD = 1
    SUB = 2
    MIN = 3
    MAX = 4
    LRELU = 5
    ABS = 6
    CLZ = 7
    SHR = 8
    SHL = 9


UNARY = (ElementwiseMode.LRELU, ElementwiseMode.ABS, ElementwiseMode.CLZ)
SCALES_OPERANDS = (ElementwiseMode.ADD, ElementwiseMode.SUB)
# These bring their result to the OFM as it is.
UNSCALED = (ElementwiseMode.SHR, ElementwiseMode.SHL)


class Kind(Enum):
    """What a block operation computes."""

    CONV = "conv"
    DEPTHWISE = "depthwise"
    POOL = "pool"
    ELEMENTWISE = "elementwise"


@dataclass(frozen=True)
class FeatureMap:
    """Where a feature map lies and what its elements are.

    Four tiles: columns from `width0` on use bases 1 and 3, rows from `height0` (left) or `height1` (right) on use
    bases 2 and 3. `bricks` is NHCWB16: 16 channels together, `stride_c` from one brick to the next.
    """

    region: int
    bases: tuple[int, int, int, int]
    height0: int
    height1: int
    width0: int
    stride_y: int
    stride_x: int
    stride_c: int
    dtype: np.dtype[Any]
    bricks: bool
    zero_point: int


@dataclass(frozen=True)
class Kernel:
    """Kernel geometry; `height` and `width` are those before dilation."""

    height: int
    width: int
    stride_y: int
    stride_x: int
    dilation_y: int
    dilation_x: int
    part_kernel_first: bool

    @property
    def dilated_height(self) -> int:
        """Rows that the kernel spans."""
        return (self.height - 1) * self.dilation_y + 1

    @property
    def dilated_width(self) -> int:
        """Columns that the kernel spans."""
        return (self.width - 1) * self.dilation_x + 1


@dataclass(frozen=True)
class Padding:
    """Rows and columns of padding around the IFM."""

    top: int
    left: int
    bottom: int
    right: int

    @property
    def any(self) -> bool:
        """Whether there is any padding."""
        return bool(self.top or self.left or self.bottom or self.right)


@dataclass(frozen=True)
class Stream:
    """A run of bytes in a region."""

    region: int
    address: int
    length: int


@dataclass(frozen=True)
class Output:
    """The output stage: scale, round, add the zero point, clamp, look up.

    `scale` None takes scale and shift per channel from the scale stream; `scaled` False skips scaling.
    """

    scaled: bool
    scale: int | None
    shift: int
    rounding: Rounding
    clamp: tuple[int, int] | None
    lut: int | None  # slot in units of 256 bytes


@dataclass(frozen=True)
class OperandScaling:
    """How ADD and SUB bring their operands to one scale (IFM_PRECISION.scale_mode).

    `wide` names the operand ("a" or "b") that is scaled by the 32 bits of `scale_a` and by `shift`; the other is
    shifted left by `partner_shift`. With `wide` None, both are multiplied, by the 16 bits of their scale.
    """

    wide: str | None
    scale_a: int
    scale_b: int
    shift: int
    rounding: Rounding
    partner_shift: int


@dataclass(frozen=True)
class SecondOperand:
    """IFM2 of an elementwise operation: a feature map that may be broadcast, or a scalar."""

    feature_map: FeatureMap
    broadcast: tuple[bool, bool, bool]  # height, width, depth
    scalar: int | None
    is_operand_a: bool


@dataclass(frozen=True)
class BlockOp:
    """Convolution, depthwise convolution, pooling or elementwise operation."""

    offset: int  # of the operation in the command stream, bytes
    kind: Kind
    mode: PoolMode | ElementwiseMode | None
    shape: Shape  # of the OFM
    ifm: FeatureMap
    ifm_depth: int
    ofm: FeatureMap
    kernel: Kernel
    padding: Padding
    upscale: int  # 0 none, 1 nearest, 2 zeros
    weights: Stream | None
    scales: Stream | None
    output: Output
    operands: OperandScaling | None
    ifm2: SecondOperand | None
    block: Shape  # OFM block: shapes the weight order and the cycle estimate
    accumulator_bits: int

    @property
    def name(self) -> str:
        """The operation in the words of the command stream."""
        return self.kind.name if self.mode is None else f"{self.kind.name}_{self.mode.name}"

    @property
    def ifm_shape(self) -> Shape:
        """The IFM after upscaling and without padding: there is no register, it follows from the OFM."""
        height, width, depth = self.shape
        if self.kind is Kind.ELEMENTWISE:
            return self.shape
        kernel, padding = self.kernel, self.padding
        rows = (height - 1) * kernel.stride_y + kernel.dilated_height - padding.top - padding.bottom
        columns = (width - 1) * kernel.stride_x + kernel.dilated_width - padding.left - padding.right
        takes_all = self.kind is Kind.CONV or self.mode is PoolMode.REDUCE_SUM
        return rows, columns, self.ifm_depth if takes_all else depth


@dataclass(frozen=True)
class DmaOp:
    """A copy of `length` bytes; a region of None is the shared RAM."""

    offset: int
    source_region: int | None
    source: int
    target_region: int | None
    target: int
    length: int

    name = "DMA"


Operation = BlockOp | DmaOp
