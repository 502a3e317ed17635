"""The memories of QEMU's ``mps3-an547``, a Corstone-300 (SSE-300) with a Cortex-M55, and who sees them.

Source: Arm AN547 and the memory tree that QEMU 7.2 prints for the machine (``info mtree``). Bit 28 of an
address chooses the Secure alias of a memory, with one exception: DDR is one contiguous memory in which
0x60000000 and 0x70000000 are different bytes. ITCM and DTCM are private to the processor: the NPU's AXI ports
do not reach them (Corstone SSE-300 TRM, "Memory map").
"""

from __future__ import annotations

from dataclasses import dataclass

_SECURE_BIT = 0x1000_0000

DDR_BASE = 0x6000_0000
DDR_BYTES = 2 << 30

NPU_BASES = (0x4810_2000, 0x5810_2000)  # Non-secure and Secure alias of the same registers
NPU_WINDOW_BYTES = {"ethos-u55": 0x1000, "ethos-u65": 0x1000, "ethos-u85": 0x2000}
NPU_IRQ_INPUT = 24  # of the SSE-300's expansion interrupts, which begin at 32: the NVIC's IRQ 56


@dataclass(frozen=True)
class Bank:
    """One memory: its size and the addresses at which it appears.

    QEMU keeps it as one or several blocks of `block_bytes` each, which are contiguous for the guest only.
    """

    name: str
    bases: tuple[int, ...]
    size_bytes: int
    block_bytes: int
    npu_visible: bool

    def offset(self, address: int) -> int | None:
        """The offset of `address` in this memory; None when it lies elsewhere."""
        for base in self.bases:
            if base <= address < base + self.size_bytes:
                return address - base
        return None


def _aliased(name: str, base: int, size_bytes: int, *, npu_visible: bool, blocks: int = 1) -> Bank:
    return Bank(name, (base, base + _SECURE_BIT), size_bytes, size_bytes // blocks, npu_visible)


BANKS = (
    _aliased("ITCM", 0x0000_0000, 512 << 10, npu_visible=False),
    _aliased("BRAM", 0x0100_0000, 2 << 20, npu_visible=True),
    _aliased("DTCM", 0x2000_0000, 512 << 10, npu_visible=False),
    _aliased("SRAM", 0x2100_0000, 4 << 20, npu_visible=True, blocks=2),
    Bank("DDR", (DDR_BASE,), DDR_BYTES, DDR_BYTES, npu_visible=True),
)


def find_bank(address: int) -> tuple[Bank, int] | None:
    """The memory that `address` falls into and the offset there; None when no memory is there."""
    for bank in BANKS:
        offset = bank.offset(address)
        if offset is not None:
            return bank, offset
    return None


def npu_offset(address: int, size_bytes: int, window_bytes: int) -> int | None:
    """The register offset of an access of `size_bytes` at `address`; None when it misses the window."""
    for base in NPU_BASES:
        if base <= address and address + size_bytes <= base + window_bytes:
            return address - base
    return None
