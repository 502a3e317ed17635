"""NPU configurations: everything that the model needs to know about one Ethos-U."""

from __future__ import annotations

from dataclasses import dataclass

from ethosu_sdk.errors import UsageError
from ethosu_sdk.npu.tables import Generation

PRODUCTS = {0: "ethos-u55", 1: "ethos-u65", 2: "ethos-u85"}

# CONFIG register values (macs_per_cc 3:0, cmd_stream_version 7:4, shram_size 15:8 in KiB, product 31:28), as Vela
# 5.1.0 writes them into the command streams of each configuration.
_CONFIG_WORDS = {
    ("ethos-u55", 32): 0x0000_1005,
    ("ethos-u55", 64): 0x0000_1006,
    ("ethos-u55", 128): 0x0000_1807,
    ("ethos-u55", 256): 0x0000_3008,
}
# arch 1.0.6 (31:28, 27:20, 19:16); product_major 15:12 is 4 for Ethos-U55 (ethos-u-core-driver).
_ID_WORDS = {"ethos-u55": 0x1006_4001}

# Micro-block depths of OFM and IFM in the weight order, per MAC count of one core (Vela 5.1.0, weight encoder).
_WEIGHT_OFM_DEPTH = {32: 4, 64: 8, 128: 8, 256: 8}


@dataclass(frozen=True)
class NpuConfig:
    """One NPU: product name, MACs per cycle in all, cores, and shared RAM in KiB."""

    npu: str
    macs: int
    cores: int
    shram_kib: int
    config_word: int
    id_word: int

    @classmethod
    def for_target(cls, npu: str, macs: int) -> NpuConfig:
        """The configuration of a target such as ``("ethos-u55", 128)``. UsageError when not modelled."""
        word = _CONFIG_WORDS.get((npu, macs))
        if word is None:
            known = ", ".join(f"{name}-{count}" for name, count in _CONFIG_WORDS)
            raise UsageError(f"the NPU model does not cover {npu}-{macs}", f"it covers {known}")
        return cls(npu, macs, 1, word >> 8 & 0xFF, word, _ID_WORDS[npu])

    @classmethod
    def from_word(cls, word: int) -> NpuConfig:
        """The configuration that a command stream was built for, from its CONFIG word."""
        npu = PRODUCTS.get(word >> 28, f"product {word >> 28}")
        config = cls.for_target(npu, 1 << (word & 0xF))
        if config.config_word != word:
            raise UsageError(f"the NPU model does not know the configuration {word:#010x}")
        return config

    @property
    def generation(self) -> Generation:
        """Which command set this NPU reads."""
        return "u85" if self.npu == "ethos-u85" else "u55"

    @property
    def weight_ofm_depth(self) -> int:
        """OFM channels that the weight order groups together."""
        return _WEIGHT_OFM_DEPTH[self.macs // self.cores]

    @property
    def lut_address(self) -> int:
        """Byte address of LUT slot 0 in the shared RAM: the last 2 KiB of the banks."""
        return (self.shram_kib // self.cores - 2) * 1024
