"""The firmware of Corstone-320, also where no simulator can run it: its ELF against the published memory map.

Addresses are literals from the documentation of the board: Zephyr's devicetree of mps4_corstone320_fvp and
Trusted Firmware-M's corstone320 target; where ExecuTorch's Corstone-320.ld has code, data and vectors.
"""

from __future__ import annotations

import re
import struct
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from ethosu_sdk.base import proc, tools
from ethosu_sdk.firmware_build import program_firmware
from ethosu_sdk.firmware_build.program_firmware import BuildOptions, FirmwareBuild
from tests.places import GOLDEN_PTE

pytestmark = pytest.mark.toolchain

GOLDEN = GOLDEN_PTE / "add_u85_segment.pte"
BOOT_ROM, CODE_SRAM, DTCM, SRAM, DDR = (
    "boot ROM",
    "code SRAM",
    "DTCM",
    "internal SRAM",
    "DDR4, first Secure block",
)
MAP = {  # Secure aliases: start, size in bytes
    "ITCM": (0x10000000, 32 << 10),
    BOOT_ROM: (0x11000000, 128 << 10),
    CODE_SRAM: (0x12000000, 2 << 20),
    DTCM: (0x30000000, 32 << 10),
    SRAM: (0x31000000, 4 << 20),
    DDR: (0x70000000, 256 << 20),
}
HOMES = {
    ".vectors": BOOT_ROM,
    ".text": CODE_SRAM,
    ".init_array": CODE_SRAM,
    ".rodata": CODE_SRAM,
    ".ARM.exidx": CODE_SRAM,
    ".data": CODE_SRAM,
    ".bss": CODE_SRAM,
    ".method_pool": CODE_SRAM,
    ".stack": DTCM,
    ".model": SRAM,  # Sram_Only
    ".scratch": SRAM,
    ".planned": DDR,
    ".input_image": DDR,
}
UART0, NPU, NPU_IRQ = 0x58203000, 0x50004000, 16
UART0_OF_CORSTONE_300 = 0x59303000
WORDS_BEFORE_INTERRUPTS, SYSTICK, RESET = 16, 15, 1
SHF_ALLOC = 2


@pytest.fixture(scope="module", params=["corstone-320", "corstone-300"])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FirmwareBuild:
    return program_firmware.build_firmware(
        GOLDEN, tmp_path_factory.mktemp("elf"), BuildOptions(board=request.param)
    )


@pytest.fixture(scope="module")
def corstone_320(tmp_path_factory: pytest.TempPathFactory) -> FirmwareBuild:
    return program_firmware.build_firmware(GOLDEN, tmp_path_factory.mktemp("corstone 320"))


def home_of(address: int, size_bytes: int) -> str:
    found = (name for name, (at, size) in MAP.items() if at <= address and address + size_bytes <= at + size)
    return next(found, "nowhere")


def misplaced(elf: ELFFile) -> list[str]:
    """Every section and segment that is not where the board has memory for it."""
    found = []
    spans: list[tuple[int, int, str]] = []
    for section in elf.iter_sections():
        if section["sh_flags"] & SHF_ALLOC and section["sh_size"]:
            address, size_bytes = section["sh_addr"], section["sh_size"]
            if home_of(address, size_bytes) != HOMES.get(section.name):
                found.append(f"{section.name} at {address:#x}")
            spans.append((address, address + size_bytes, section.name))
    for (_, end, low), (start, _, high) in zip(sorted(spans), sorted(spans)[1:], strict=False):
        if end > start:
            found.append(f"{low} overlaps {high}")
    for segment in elf.iter_segments("PT_LOAD"):
        header = segment.header
        if header.p_memsz and "nowhere" in {
            home_of(at, header.p_memsz) for at in (header.p_vaddr, header.p_paddr)
        }:
            found.append(f"segment at {header.p_paddr:#x}")
    return found


def opened(firmware: FirmwareBuild) -> Any:
    return firmware.elf.open("rb")


def test_it_is_the_board_of_an_ethos_u85(corstone_320: FirmwareBuild) -> None:
    assert corstone_320.board == "corstone-320"
    assert "the board of ethos-u85" in corstone_320.board_reason


def test_every_section_lies_where_the_board_has_memory(both: FirmwareBuild) -> None:
    """And the check notices the other board, which has its code where this one has ITCM."""
    with opened(both) as stream:
        elf = ELFFile(stream)
        assert {section.name for section in elf.iter_sections()} >= {".vectors", ".text", ".model", ".stack"}
        problems = misplaced(elf)
        assert bool(problems) == (both.board == "corstone-300"), problems
        if both.board == "corstone-300":
            assert ".text at 0x10000240" in problems


def test_the_vectors_fill_the_start_of_the_boot_rom(corstone_320: FirmwareBuild) -> None:
    with opened(corstone_320) as stream:
        elf = ELFFile(stream)
        section = elf.get_section_by_name(".vectors")
        assert section["sh_addr"] == 0x11000000
        words = struct.unpack(f"<{section['sh_size'] // 4}I", section.data())
        symbols = {row.name: row["st_value"] for row in elf.get_section_by_name(".symtab").iter_symbols()}
        entry = elf.header.e_entry
    fault = symbols["_ZN10ethosu_sdk5board11fault_entryEv"]
    clock, interrupt = (symbols[f"ethosu_mark_{name}"] for name in ("clock", "interrupt"))
    assert len(words) == 496
    assert words[0] == 0x30008000  # the end of DTCM
    assert words[RESET] == entry == symbols["Reset_Handler"]
    npu = WORDS_BEFORE_INTERRUPTS + NPU_IRQ
    own = {0: words[0], RESET: entry, SYSTICK: clock, npu: interrupt}
    for number, word in enumerate(words):
        assert word == own.get(number, fault), number
        assert number == 0 or word & 1, "Thumb state"


def test_the_code_reaches_for_this_boards_uart_and_npu(corstone_320: FirmwareBuild) -> None:
    with opened(corstone_320) as stream:
        text = ELFFile(stream).get_section_by_name(".text").data()
    words = {word for (word,) in struct.iter_unpack("<I", text[: len(text) // 4 * 4])}
    assert UART0 in words
    assert UART0_OF_CORSTONE_300 not in words
    objdump = tools.require("arm-none-eabi-g++").path
    assert objdump is not None
    argv = [str(objdump.with_name("arm-none-eabi-objdump")), "-d"]
    listing = proc.run(
        [*argv, "--disassemble=_ZN10ethosu_sdk3hal8npu_readEm", str(corstone_320.elf)], timeout_s=60
    )
    added = re.findall(r"\tadd.*#(\d+)", listing.output)
    assert sum(map(int, added)) == NPU, listing.output


def test_it_is_code_that_the_processor_runs(corstone_320: FirmwareBuild) -> None:
    """Armv8.1-M Mainline with the hard-float calling convention, as Cortex-M85 runs it."""
    with opened(corstone_320) as stream:
        attributes = {
            row.tag: row.value
            for row in ELFFile(stream)
            .get_section_by_name(".ARM.attributes")
            .subsections[0]
            .subsubsections[0]
            .attributes
        }
    assert attributes["TAG_CPU_ARCH"] == 21  # v8.1-M.mainline
    assert attributes["TAG_ABI_VFP_ARGS"] == 1
