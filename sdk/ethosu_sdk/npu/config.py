"""NPU configurations: everything that the model needs to know about one Ethos-U."""

from __future__ import annotations

from dataclasses import dataclass

from ethosu_sdk.errors import UsageError
from ethosu_sdk.npu.operation import Shape
from ethosu_sdk.npu.tables.rows import Generation

PRODUCTS = {0: "ethos-u55", 1: "ethos-u65", 2: "ethos-u85"}

# CONFIG register values, as Vela 5.1.0 writes them into the command streams of each configuration. macs_per_cc 3:0,
# cmd_stream_version 7:4, product 31:28; Ethos-U55 and Ethos-U65: shram_size 15:8 in KiB, of all cores together;
# Ethos-U85: num_axi_sram 9:8 and num_wd 13:12 as powers of two, num_axi_ext 10 likewise.
_CONFIG_WORDS = {
    ("ethos-u55", 32): 0x0000_1005,
    ("ethos-u55", 64): 0x0000_1006,
    ("ethos-u55", 128): 0x0000_1807,
    ("ethos-u55", 256): 0x0000_3008,
    ("ethos-u65", 256): 0x1000_3008,
    ("ethos-u65", 512): 0x1000_6009,
    ("ethos-u85", 128): 0x2000_0117,
    ("ethos-u85", 256): 0x2000_0118,
    ("ethos-u85", 512): 0x2000_1119,
    ("ethos-u85", 1024): 0x2000_251A,
    ("ethos-u85", 2048): 0x2000_261B,
}
# Architecture 1.0.6 (31:28, 27:20, 19:16); product_major 15:12 is 4 for Ethos-U55 (ethos-u-core-driver). The others
# are the reset values in the register headers of ethos-u-vela 5.1.0.
_ID_WORDS = {"ethos-u55": 0x1006_4001, "ethos-u65": 0x1006_6001, "ethos-u85": 0x2000_7000}

# Cores that take turns in OFM channels; on Ethos-U85 cores of the weight decoder (Vela 5.1.0, weight encoders).
_CORES = {
    ("ethos-u65", 512): 2,
    ("ethos-u85", 512): 2,
    ("ethos-u85", 1024): 4,
    ("ethos-u85", 2048): 4,
}
# OFM micro-blocks of Ethos-U55 and Ethos-U65 by the MACs of one core; Ethos-U85's are chosen by each operation.
_MICRO_BLOCKS: dict[int, Shape] = {32: (1, 1, 4), 64: (1, 1, 8), 128: (1, 2, 8), 256: (2, 2, 8)}
_LUT_BYTES = 2048
# Transfers and block operations at work at the same time: MaxOutstandingDMAOps and MaxOutstandingKernelOps of
# ethos-u-vela 5.1.0, ethos_u55.hpp, ethos_u65.hpp and ethos_u85.hpp.
_AT_WORK = {"ethos-u55": (1, 2), "ethos-u65": (2, 2), "ethos-u85": (4, 2)}


@dataclass(frozen=True)
class NpuConfig:
    """One NPU: product name, MACs per cycle in all, cores, its own memory in bytes, CONFIG and ID registers.

    The own memory is the shared RAM of one core, or Ethos-U85's look-up tables.
    """

    npu: str
    macs: int
    cores: int
    own_bytes: int
    config_word: int
    id_word: int

    @classmethod
    def for_target(cls, npu: str, macs: int) -> NpuConfig:
        """The configuration of a target such as ``("ethos-u55", 128)``. UsageError when there is none."""
        word = _CONFIG_WORDS.get((npu, macs))
        if word is None:
            known = ", ".join(f"{name}-{count}" for name, count in _CONFIG_WORDS)
            raise UsageError(f"the NPU model does not cover {npu}-{macs}", f"it covers {known}")
        cores = _CORES.get((npu, macs), 1)
        own_bytes = _LUT_BYTES if npu == "ethos-u85" else (word >> 8 & 0xFF) * 1024 // cores
        return cls(npu, macs, cores, own_bytes, word, _ID_WORDS[npu])

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
    def micro_block(self) -> Shape:
        """The OFM micro-block (height, width, depth) of Ethos-U55 and Ethos-U65."""
        return _MICRO_BLOCKS[self.macs // self.cores]

    @property
    def at_work(self) -> tuple[int, int]:
        """How many transfers and how many block operations are at work at the same time, at most."""
        return _AT_WORK[self.npu]

    @property
    def lut_address(self) -> int:
        """Byte address of LUT slot 0 in the NPU's own memory: its last 2 KiB."""
        return self.own_bytes - _LUT_BYTES
