"""NPU configurations, and how operations cut up feature maps: facts that several parts of the model need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.targets import Generation, families, family_by_number, target_names
from ethosu_sdk.npu.operation import BlockOp, FeatureMap, Kind, Shape

BRICK = 16  # channels of a brick of NHCWB16
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


def subkernel(dilation: int) -> int:
    """Rows or columns of a kernel that are walked in one go: they may span eight."""
    return 8 // dilation


def ceil_div(value: int, divisor: int) -> int:
    """`value` / `divisor`, rounded up."""
    return -(-value // divisor)


def round_up(value: int, granule: int) -> int:
    """The next multiple of `granule`."""
    return ceil_div(value, granule) * granule


def volume(shape: Shape) -> int:
    """Elements of a shape."""
    return shape[0] * shape[1] * shape[2]


def tiles(feature_map: FeatureMap, height: int, width: int) -> Iterator[tuple[slice, slice, int]]:
    """(rows, columns, address of their first element) of up to four tiles."""
    if height <= feature_map.height0 and width <= feature_map.width0:
        yield slice(0, height), slice(0, width), feature_map.bases[0]
        return
    for column, (start, stop) in enumerate(_cut(feature_map.width0, width)):
        first = feature_map.height1 if column else feature_map.height0
        for row, (top, bottom) in enumerate(_cut(first, height)):
            yield slice(top, bottom), slice(start, stop), feature_map.bases[2 * row + column]


def _cut(first: int, total: int) -> Iterator[tuple[int, int]]:
    yield 0, min(first, total)
    if first < total:
        yield first, total


def most_ifm_block_channels(op: BlockOp, config: NpuConfig) -> int:
    """Channels of a whole IFM block where every OFM channel depends on all of them."""
    return ifm_block_channels(
        config.generation,
        config.macs,
        op.micro_block[2],
        8 * op.ifm.dtype.itemsize,
        part_kernel_first=op.kind is Kind.CONV and op.kernel.part_kernel_first,
        sparse=op.weights is not None and op.weights.sparse,
    )


def ifm_block_channels(
    generation: Generation,
    macs: int,
    micro_block_depth: int,
    ifm_bits: int,
    *,
    part_kernel_first: bool,
    sparse: bool,
) -> int:
    """The same, by what it depends on. No register holds it; ethos-u-vela 5.1.0 chooses it by these rules."""
    if part_kernel_first:
        return 16
    if generation == "u55":
        return 16 if ifm_bits == 16 else 32
    if ifm_bits == 32 or (macs <= 256 and micro_block_depth == 16 and not sparse):
        return 32
    return 128 if sparse and ifm_bits == 8 else 64
