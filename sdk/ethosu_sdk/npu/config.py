"""NPU configurations: everything that the model needs to know about one Ethos-U."""

from __future__ import annotations

from dataclasses import dataclass

from ethosu_sdk.errors import UsageError
from ethosu_sdk.npu.operation import Shape
from ethosu_sdk.targets import Generation, families, family_by_number, target_names

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
