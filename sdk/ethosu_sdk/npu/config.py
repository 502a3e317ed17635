"""NPU configurations, limits of the model, and how feature maps lie in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.targets import Generation, families, family_by_number, target_names
from ethosu_sdk.npu.errors import UnsupportedCommand
from ethosu_sdk.npu.operation import BlockOp, FeatureMap, Int64, Kind, Shape

# ---- npu.config
# NPU configurations: everything that the model needs to know about one Ethos-U.

_LUT_BYTES = 2048


@dataclass(frozen=True)
class NpuConfig:
    """One NPU, from the rows of targets.toml: product name, MACs per cycle in all, cores, its registers and ports.

    `generation` is the command set. `own_bytes` is its own memory: the shared RAM of one core, or Ethos-U85's look-up
    tables. `transfers_at_work` and `kernels_at_work` are the most transfers and block operations at the same time.
    `ofm_micro_block` is None where each operation chooses its own.
    """

    npu: str
    generation: Generation
    macs: int
    cores: int
    own_bytes: int
    config_word: int
    id_word: int
    beat_bytes: int
    register_window_bytes: int
    transfers_at_work: int
    kernels_at_work: int
    ofm_micro_block: Shape | None

    @classmethod
    def for_target(cls, npu: str, macs: int) -> NpuConfig:
        """The configuration of a target such as ``("ethos-u55", 128)``. UsageError when there is none."""
        family = families().get(npu)
        if family is None or macs not in family.products:
            known = ", ".join(target_names())
            raise UsageError(f"the NPU model does not cover {npu}-{macs}", f"it covers {known}")
        product = family.products[macs]
        shared_ram_bytes = (product.config_word >> 8 & 0xFF) * 1024 // product.cores
        return cls(
            npu=npu,
            generation=family.generation,
            macs=macs,
            cores=product.cores,
            own_bytes=_LUT_BYTES if family.generation == "u85" else shared_ram_bytes,
            config_word=product.config_word,
            id_word=family.id_word,
            beat_bytes=family.axi_beat_bytes,
            register_window_bytes=family.register_window_bytes,
            transfers_at_work=family.transfers_at_work,
            kernels_at_work=family.kernels_at_work,
            ofm_micro_block=product.ofm_micro_block,
        )

    @classmethod
    def from_word(cls, word: int) -> NpuConfig:
        """The configuration that a command stream was built for, from its CONFIG word."""
        family = family_by_number(word >> 28)
        config = cls.for_target(family.name if family else f"product {word >> 28}", 1 << (word & 0xF))
        if config.config_word != word:
            raise UsageError(f"the NPU model does not know the configuration {word:#010x}")
        return config

    @property
    def micro_block(self) -> Shape:
        """The OFM micro-block (height, width, depth) of Ethos-U55 and Ethos-U65."""
        assert self.ofm_micro_block is not None, "each operation of an Ethos-U85 chooses its own"
        return self.ofm_micro_block

    @property
    def lut_address(self) -> int:
        """Byte address of LUT slot 0 in the NPU's own memory: its last 2 KiB."""
        return self.own_bytes - _LUT_BYTES


# ---- npu.geometry
# How feature maps lie in memory, and how operations cut them up: facts that several parts of the model need.

BRICK = 16  # channels of a brick of NHCWB16
_SUBKERNEL = 8  # rows and columns that a kernel's elements may span which are walked in one go


def subkernel(dilation: int) -> int:
    """Rows or columns of a kernel that are walked in one go."""
    return _SUBKERNEL // dilation


def ceil_div(value: int, divisor: int) -> int:
    """`value` / `divisor`, rounded up."""
    return -(-value // divisor)


def round_up(value: int, granule: int) -> int:
    """The next multiple of `granule`."""
    return ceil_div(value, granule) * granule


def volume(shape: Shape) -> int:
    """Elements of a shape."""
    return shape[0] * shape[1] * shape[2]


def divided(shape: Shape, part: Shape) -> Shape:
    """How many of `part` cover `shape` along each axis."""
    return ceil_div(shape[0], part[0]), ceil_div(shape[1], part[1]), ceil_div(shape[2], part[2])


def tiles(feature_map: FeatureMap, height: int, width: int) -> Iterator[tuple[slice, slice, int]]:
    """(rows, columns, address of their first element) of up to four tiles."""
    for column, (start, stop) in enumerate(_cut(feature_map.width0, width)):
        first = feature_map.height1 if column else feature_map.height0
        for row, (top, bottom) in enumerate(_cut(first, height)):
            yield slice(top, bottom), slice(start, stop), feature_map.bases[2 * row + column]


def _cut(first: int, total: int) -> Iterator[tuple[int, int]]:
    yield 0, min(first, total)
    if first < total:
        yield first, total


def bricks(feature_map: FeatureMap, depth: int) -> Iterator[tuple[slice, int, int]]:
    """(channels, channels per brick, byte offset): whole bricks first, then what is left of the last one."""
    if not feature_map.bricks:
        yield slice(0, depth), depth, 0
        return
    whole = depth // BRICK * BRICK
    if whole:
        yield slice(0, whole), BRICK, 0
    if whole < depth:
        yield slice(whole, depth), depth - whole, whole // BRICK * feature_map.stride_c


def is_part_kernel(op: BlockOp) -> bool:
    """Whether a convolution takes its kernel's positions before its IFM's channels."""
    return op.kind is Kind.CONV and op.kernel.part_kernel_first


def most_ifm_block_channels(op: BlockOp, config: NpuConfig) -> int:
    """Channels of a whole IFM block where every OFM channel depends on all of them.

    No register holds them; ethos-u-vela 5.1.0 chooses them by these rules.
    """
    if is_part_kernel(op):
        return 16
    itemsize = op.ifm.dtype.itemsize
    if config.generation == "u55":
        return 16 if itemsize == 2 else 32
    sparse = op.weights is not None and op.weights.sparse
    if itemsize == 4 or (config.macs <= 256 and op.micro_block[2] == 16 and not sparse):
        return 32
    return 128 if sparse and itemsize == 1 else 64


# ---- npu.bounds
# Limits of the model: it refuses work that no real model needs, and sums that it could not compute exactly.

_INT64_LARGEST = (1 << 63) - 1
_DOUBLE_ROUND_EXTRA = 1 << 30
_FLOAT64_EXACT = 1 << 53
# Multiply-accumulates or comparisons of one operation: ten times the largest of real models.
_MOST_STEPS = 1 << 36
_MOST_SUMS = 1 << 24  # that stay in the accumulators, eight bytes each


def check_sums(op: BlockOp) -> None:
    """Refuse more sums in the accumulators than a host should hold: hardware has far fewer."""
    height, width, depth = op.shape
    if height * width * depth > _MOST_SUMS:
        raise UnsupportedCommand(
            "SET_ACC_FORMAT", op.offset, 1, f"{height * width * depth:,} sums that stay in the accumulators"
        )


def check_work(op: BlockOp) -> None:
    """Refuse what no model needs and what would keep the host busy for minutes."""
    if op.kind in (Kind.ELEMENTWISE, Kind.RESIZE):
        return
    height, width, depth = op.shape
    sides = op.kernel.height + op.kernel.width if op.kind is Kind.POOL else op.kernel.height * op.kernel.width
    steps = height * width * depth * sides * (op.ifm_depth if op.takes_all_channels else 1)
    if steps > _MOST_STEPS:
        raise UnsupportedCommand("SET_KERNEL_HEIGHT_M1", op.offset, op.kernel.height - 1, f"{steps} steps")


def check_exact(op: BlockOp, bound: int) -> None:
    """Refuse sums that float64 may round: 32-bit elements of an operation that is not emitted for them."""
    if bound >= _FLOAT64_EXACT:
        raise UnsupportedCommand("SET_IFM_PRECISION", op.offset, op.ifm.dtype.itemsize, "sums above 53 bits")


def check_pool(op: BlockOp) -> None:
    """Refuse elements so wide that int64 cannot hold their sums, or their sums times a reciprocal."""
    widest = 2 if op.divides else 4
    if op.ifm.dtype.itemsize > widest:
        raise UnsupportedCommand("SET_IFM_PRECISION", op.offset, op.ifm.dtype.itemsize, "pooled elements")


def check_width(op: BlockOp, accumulator: Int64, scale: Any, shift: Any) -> None:
    """Refuse sums that the accumulators do not hold and products that int64 does not: their result is not known."""
    if op.kind is Kind.ELEMENTWISE and not op.output.scaled:
        return
    high, low, limit = int(accumulator.max()), int(accumulator.min()), 1 << (op.accumulator_bits - 1)
    if op.kind is not Kind.ELEMENTWISE and not -limit <= low <= high < limit:
        raise UnsupportedCommand("SET_ACC_FORMAT", op.offset, op.accumulator_bits, "accumulator overflow")
    if op.output.scaled:
        check_product(op, "SET_OFM_SCALE", max(high, -low), int(np.max(scale)), int(np.max(shift)))


def check_product(op: BlockOp, register: str, largest: int, scale: int, shift: int) -> None:
    """Refuse a scaling whose product, with what rounding adds, may exceed int64."""
    if largest * scale + (1 << shift) + _DOUBLE_ROUND_EXTRA > _INT64_LARGEST:
        raise UnsupportedCommand(register, op.offset, scale, "product of more than 63 bits")


def largest_input(feature_map: FeatureMap) -> int:
    """The largest absolute value that an element can have once the zero point is subtracted."""
    limits = np.iinfo(feature_map.dtype)
    return max(abs(limits.min - feature_map.zero_point), abs(limits.max - feature_map.zero_point))
