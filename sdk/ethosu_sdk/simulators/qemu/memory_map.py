"""The boards that QEMU has: their memories, who sees them, and where the NPU is.

Sources: Arm AN547 and the memory tree that QEMU 7.2 prints for ``mps3-an547`` (``info mtree``); for Corstone-310 and
Corstone-320 the devicetrees of Zephyr, which qemu/hw/arm/corstone-boards.c follows. Bit 28 of an address chooses the
Secure alias of a memory. Exceptions: DDR is one contiguous memory in which 0x60000000 and 0x70000000 are different
bytes, and Corstone-320 has its boot ROM where the code SRAM's alias would be. ITCM and DTCM are private to the
processor: the NPU's AXI ports do not reach them (Corstone SSE-300 TRM, "Memory map").
"""

from __future__ import annotations

from dataclasses import dataclass

from ethosu_sdk.errors import UsageError

_SECURE_BIT = 0x1000_0000

DDR_BASE = 0x6000_0000
DDR_BYTES = 2 << 30

NPU_IRQ_INPUT = 24  # of the SSE-300's expansion interrupts, which begin at 32: the NVIC's IRQ 56


@dataclass(frozen=True)
class Bank:
    """One memory: its size and the addresses at which it appears.

    A memory with an `option`, of QEMU's ``-machine``, is shared with QEMU. Others QEMU keeps as one or several blocks
    of `block_bytes` each, which are contiguous for the guest only.
    """

    name: str
    bases: tuple[int, ...]
    size_bytes: int
    block_bytes: int
    npu_visible: bool
    option: str = ""

    def offset(self, address: int) -> int | None:
        """The offset of `address` in this memory; None when it lies elsewhere."""
        for base in self.bases:
            if base <= address < base + self.size_bytes:
                return address - base
        return None


@dataclass(frozen=True)
class BoardMap:
    """A board: QEMU's `machine` for it, and its memories.

    With `own_build` the machine is in the QEMU of our own build (qemu/), which has the NPU as a device.
    """

    name: str
    machine: str
    banks: tuple[Bank, ...]
    npu_bases: tuple[int, ...]  # Non-secure and Secure alias of the same registers
    core_hz: float
    own_build: bool = False

    def find_bank(self, address: int) -> tuple[Bank, int] | None:
        """The memory that `address` falls into and the offset there; None when no memory is there."""
        for bank in self.banks:
            offset = bank.offset(address)
            if offset is not None:
                return bank, offset
        return None

    def npu_offset(self, address: int, size_bytes: int, window_bytes: int) -> int | None:
        """The register offset of an access of `size_bytes` at `address`; None when it misses the window."""
        for base in self.npu_bases:
            if base <= address and address + size_bytes <= base + window_bytes:
                return address - base
        return None

    @property
    def shared(self) -> tuple[Bank, ...]:
        """The memories that QEMU takes from us: both sides have the very bytes."""
        return tuple(bank for bank in self.banks if bank.option)


def _private(name: str, base: int, size_bytes: int) -> Bank:
    return Bank(name, (base, base + _SECURE_BIT), size_bytes, size_bytes, npu_visible=False)


def _sram(name: str, bases: tuple[int, int], size_bytes: int, *, blocks: int = 1, option: str = "") -> Bank:
    return Bank(name, bases, size_bytes, size_bytes // blocks, npu_visible=True, option=option)


_DDR = Bank("DDR", (DDR_BASE,), DDR_BYTES, DDR_BYTES, npu_visible=True, option="memory-backend")
_INTERNAL_SRAM = _sram("SRAM", (0x2100_0000, 0x3100_0000), 4 << 20, option="internal-sram")
_QSPI = _sram("QSPI", (0x2800_0000, 0x3800_0000), 8 << 20, option="qspi")

MPS3_AN547 = BoardMap(
    name="corstone-300",
    machine="mps3-an547",
    banks=(
        _private("ITCM", 0x0000_0000, 512 << 10),
        _sram("BRAM", (0x0100_0000, 0x1100_0000), 2 << 20),
        _private("DTCM", 0x2000_0000, 512 << 10),
        _sram("SRAM", (0x2100_0000, 0x3100_0000), 4 << 20, blocks=2),
        _DDR,
    ),
    npu_bases=(0x4810_2000, 0x5810_2000),
    core_hz=32e6,
)
CORSTONE_310 = BoardMap(
    name="corstone-310",
    machine="corstone-310",
    banks=(
        _private("ITCM", 0x0000_0000, 32 << 10),
        _sram("BRAM", (0x0100_0000, 0x1100_0000), 2 << 20, option="code-sram"),
        _private("DTCM", 0x2000_0000, 32 << 10),
        *(_INTERNAL_SRAM, _QSPI, _DDR),
    ),
    npu_bases=(0x4000_4000, 0x5000_4000),
    core_hz=25e6,
    own_build=True,
)
CORSTONE_320 = BoardMap(
    name="corstone-320",
    machine="corstone-320",
    banks=(
        _private("ITCM", 0x0000_0000, 32 << 10),
        _sram("BRAM", (0x0100_0000, 0x1200_0000), 2 << 20, option="code-sram"),
        Bank("ROM", (0x1100_0000,), 128 << 10, 128 << 10, npu_visible=False),
        _private("DTCM", 0x2000_0000, 32 << 10),
        *(_INTERNAL_SRAM, _QSPI, _DDR),
    ),
    npu_bases=(0x4000_4000, 0x5000_4000),
    core_hz=25e6,
    own_build=True,
)
_BOARDS = {row.name: row for row in (MPS3_AN547, CORSTONE_310, CORSTONE_320)}


def board_map(name: str) -> BoardMap:
    """The board called `name`, such as ``corstone-300``. UsageError when QEMU has none of that name."""
    if name not in _BOARDS:
        raise UsageError(f"QEMU has no board '{name}'", f"one of: {', '.join(_BOARDS)}")
    return _BOARDS[name]
