"""Frozen descriptions of what one NPU operation does, with every register already interpreted.

Shapes are (height, width, depth). Addresses and strides are in bytes, relative to the region's base.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Bool = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Places = npt.NDArray[np.intp]
Weights = npt.NDArray[np.int16]


Shape = tuple[int, int, int]


class Rounding(Enum):
    """How a scaled value loses its fraction."""

    DOUBLE = "double"  # TOSA DOUBLE_ROUND: twice, at bit 31 and at the last one
    NATURAL = "natural"  # half up; TOSA SINGLE_ROUND
    DOUBLE_UP = "double up"  # twice, half up both times
    SYMMETRIC = "symmetric"  # half away from 0
    TOWARDS_ZERO = "towards zero"
    DOWN = "down"  # towards minus infinity: a plain shift


class PoolMode(Enum):
    """Pooling modes, by the number in NPU_OP_POOL. Ethos-U55 and Ethos-U65 have the first three."""

    MAX = 0
    AVERAGE = 1
    REDUCE_SUM = 2
    SUM = 3
    NONE = 4
    MIN = 5
    ARGMAX_X = 6
    ARGMAX_Y = 7


class ElementwiseMode(Enum):
    """Elementwise modes, by the number in NPU_OP_ELEMENTWISE. Ethos-U55 and Ethos-U65 have them up to SHL."""

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
    LSR = 10
    DIV = 11
    EQ = 16
    NE = 17
    GE = 18
    GT = 19
    AND = 33
    OR = 34
    XOR = 35
    NOT = 36
    AND_NOT = 42


class ResizeMode(Enum):
    """Interpolation, by the number in NPU_OP_RESIZE."""

    BILINEAR = 0
    REPLICATE = 1
    NEAREST = 2


Mode = PoolMode | ElementwiseMode | ResizeMode

UNARY = frozenset({ElementwiseMode.LRELU, ElementwiseMode.ABS, ElementwiseMode.CLZ, ElementwiseMode.NOT})
# These bring their result to the OFM as it is.
UNSCALED = frozenset({ElementwiseMode.SHR, ElementwiseMode.SHL})


class Kind(Enum):
    """What a block operation computes."""

    CONV = "conv"
    MATMUL = "matmul"  # NPU_OP_CONV whose weights are IFM2
    DEPTHWISE = "depthwise"
    POOL = "pool"
    ELEMENTWISE = "elementwise"
    RESIZE = "resize"


@dataclass(frozen=True)
class FeatureMap:
    """Where a feature map lies and what its elements are.

    Four tiles: columns from `width0` on use bases 1 and 3, rows from `height0` (left) or `height1` (right) on use
    bases 2 and 3. `bricks` is NHCWB16: 16 channels together, `stride_c` from one brick to the next.
    With `chain`, the feature map is in that chaining buffer of Ethos-U85 and has no address.
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
    chain: int | None = None


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
class WeightStreams:
    """The compressed weights: one stream per core, or for the fast format a single one.

    `fast` is Ethos-U85's fixed-width format, `sparse` its 2:4 sparsity.
    """

    streams: tuple[Stream, ...]
    fast: bool = False
    sparse: bool = False


class ScaleFormat(Enum):
    """What the ten bytes of a scale entry hold: (bits of the signed bias, bits of the unsigned scale)."""

    BIAS_40 = (40, 32)  # Ethos-U55 and Ethos-U65
    BIAS_32 = (32, 31)  # Ethos-U85, 32-bit accumulators
    BIAS_48 = (48, 15)  # Ethos-U85, 48-bit accumulators


@dataclass(frozen=True)
class ScaleStreams:
    """Bias, scale and shift of every OFM channel. With two streams, even channels are in the first."""

    streams: tuple[Stream, ...]
    format: ScaleFormat


@dataclass(frozen=True)
class Lut:
    """A look-up table at byte `address` of the NPU's own memory.

    An 8-bit `index` selects one of 256 results. A 16-bit one is interpolated between 512 points, each a word with
    the base in its low and the slope in its high half.
    """

    address: int
    index: np.dtype[Any]
    result: np.dtype[Any]

    @property
    def end(self) -> int:
        """Behind its last byte."""
        return self.address + (256 * self.result.itemsize if self.index.itemsize == 1 else 4 * 512)


class Curve(Enum):
    """Functions of 16 bits that the output stage has for itself."""

    TANH = "tanh"
    SIGMOID = "sigmoid"


@dataclass(frozen=True)
class Scaling:
    """Multiply by `scale`, then shift right by `shift` with rounding.

    `early`: double rounding takes the values as if they had been shifted left by so much before.
    """

    scale: int
    shift: int
    rounding: Rounding
    early: int = 0


@dataclass(frozen=True)
class Output:
    """The output stage: scale, round, add the zero point, clamp, look up, reverse, transpose.

    `scale` None takes scale and shift per channel from the scale stream; `scaled` False skips scaling. `early` is
    that of a Scaling. `curve` is applied before the zero point, with the points of `lut` if there is one. `reverse`
    is an axis of (height, width, depth), `transpose` an order of them; memory holds the result of both.
    """

    scaled: bool
    scale: int | None
    shift: int
    rounding: Rounding
    clamp: tuple[int, int] | None
    lut: Lut | None = None
    reverse: int | None = None
    transpose: tuple[int, int, int] | None = None
    early: int = 0
    curve: Curve | None = None


@dataclass(frozen=True)
class Operand:
    """An operand of an elementwise operation: a feature map that may be broadcast, or a scalar.

    `scaling` None takes the values (without their zero point) as they are. LRELU scales those below 0 by `negative`.
    """

    feature_map: FeatureMap
    broadcast: tuple[bool, bool, bool] = (False, False, False)  # height, width, depth
    scalar: int | None = None
    scaling: Scaling | None = None
    negative: Scaling | None = None


@dataclass(frozen=True)
class ResizeAxis:
    """Sampling along one axis: OFM position o lies at IFM position (o * step + offset) / denominator."""

    step: int
    offset: int
    denominator: int


@dataclass(frozen=True)
class BlockOp:
    """Everything but a DMA transfer."""

    offset: int  # of the operation in the command stream, bytes
    kind: Kind
    mode: Mode | None
    shape: Shape  # of the OFM, before it is reversed and transposed
    ifm: FeatureMap
    ifm_depth: int
    ofm: FeatureMap
    kernel: Kernel
    padding: Padding
    upscale: int  # 0 none, 1 nearest, 2 zeros
    weights: WeightStreams | None
    scales: ScaleStreams | None
    output: Output
    operands: tuple[Operand, ...]  # of an elementwise operation: A, or A and B
    ifm2: FeatureMap | None  # second operand, matrix of a MATMUL, or where `accumulates` starts from
    accumulates: bool  # the accumulators start with IFM2 instead of 0
    divides: bool  # AVERAGE: divides by the number of elements that are not padding
    resize: tuple[ResizeAxis, ResizeAxis] | None  # along height and width
    block: Shape  # OFM block: shapes the weight order and the cycle estimate
    micro_block: Shape  # of the OFM: likewise
    accumulator_bits: int
    blockdep: int  # blocks of the operation before that may still be in work
    continues: bool = False  # the accumulators start with what the operation before left in them
    is_partial: bool = False  # the sums stay in the accumulators; nothing is written
    accumulator_bank: int = 0  # the first KiB of the shared RAM that accumulators take; 0 on Ethos-U85

    @property
    def name(self) -> str:
        """The operation in the words of the command stream."""
        return self.kind.name if self.mode is None else f"{self.kind.name}_{self.mode.name}"

    @functools.cached_property
    def ifm_shape(self) -> Shape:
        """The IFM after upscaling and without padding: there is no register, it follows from the OFM."""
        height, width, depth = self.shape
        kernel, padding = self.kernel, self.padding
        if self.kind is Kind.ELEMENTWISE:
            return self.shape
        if self.kind is Kind.RESIZE:
            return kernel.height, kernel.width, depth
        rows = (height - 1) * kernel.stride_y + kernel.dilated_height - padding.top - padding.bottom
        columns = (width - 1) * kernel.stride_x + kernel.dilated_width - padding.left - padding.right
        return rows, columns, self.ifm_depth if self.takes_all_channels else depth

    @property
    def takes_all_channels(self) -> bool:
        """Whether every OFM channel depends on all IFM channels."""
        return self.kind in (Kind.CONV, Kind.MATMUL) or self.mode is PoolMode.REDUCE_SUM

    @functools.cached_property
    def stored_shape(self) -> Shape:
        """The OFM's shape in memory: transposed."""
        height, width, depth = (self.shape[axis] for axis in self.output.transpose or (0, 1, 2))
        return height, width, depth


@dataclass(frozen=True)
class DmaIndex:
    """Row numbers of an indexed DMA: int32 values of 0 to `maximum` at `address`.

    `plane_stride` is from one plane's indices to the next plane's, in bytes. `scatters`: they number the target's
    rows, else the source's.
    """

    region: int
    address: int
    maximum: int
    plane_stride: int
    scatters: bool


@dataclass(frozen=True)
class DmaOp:
    """Copies of `length` bytes, `counts` (planes, rows) of them; a region of None is the NPU's own memory.

    Strides are in bytes from plane to plane and from row to row.
    """

    offset: int
    source_region: int | None
    source: int
    target_region: int | None
    target: int
    length: int
    counts: tuple[int, int] = (1, 1)
    source_strides: tuple[int, int] = (0, 0)
    target_strides: tuple[int, int] = (0, 0)
    index: DmaIndex | None = None

    name = "DMA"


Operation = BlockOp | DmaOp


@dataclass(frozen=True)
class Wait:
    """A wait in front of the operation with number `before`, until at most so many are at work."""

    before: int
    name: str
    at_most: int
