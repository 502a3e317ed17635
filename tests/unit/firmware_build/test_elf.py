"""Use of memory, counted from sections."""

from pathlib import Path

import pytest

from ethosu_sdk import boards
from ethosu_sdk.errors import BuildError
from ethosu_sdk.firmware_build import elf
from ethosu_sdk.firmware_build.elf import Image, Section, Symbol

BOARD = boards.board("corstone-300")
SECTIONS = (
    Section(".text", 0x10000400, 0x10000400, 5000, in_file=True),
    Section(".data", 0x30000000, 0x10002000, 16, in_file=True),  # copied from ITCM at start-up
    Section(".bss", 0x30000010, 0x30000010, 64, in_file=False),
    Section(".model", 0x70000000, 0x70000000, 960, in_file=True),
    Section(".input_image", 0x70000400, 0x70000400, 1 << 20, in_file=False),
)


def test_copied_data_takes_both_memories_and_reserved_memory_only_its_own() -> None:
    used = {row.name: row.used_bytes for row in elf.region_use(Image(SECTIONS, {}), BOARD)}
    assert used == {"ITCM": 5016, "BRAM": 0, "DTCM": 80, "SRAM": 0, "DDR": 960 + (1 << 20)}


def test_every_region_says_where_it_is_and_how_large() -> None:
    rows = elf.region_use(Image((), {}), BOARD)
    assert [(row.name, row.origin, row.size_bytes) for row in rows] == [
        (memory.name, memory.origin, memory.size_bytes) for memory in BOARD.memories
    ]


def test_a_symbol_that_is_not_there_is_named() -> None:
    image = Image((), {"input_image": Symbol("input_image", 0x70000400, 64)})
    assert image.symbol("input_image").bytes == 64
    with pytest.raises(BuildError, match="'other'"):
        image.symbol("other")


@pytest.mark.parametrize("content", [b"", b"not an ELF file", b"\x7fELF" + bytes(60)])
def test_a_file_that_is_no_elf_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.elf"
    path.write_bytes(content)
    with pytest.raises(BuildError, match="ELF"):
        elf.read_elf(path)
