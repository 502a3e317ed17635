"""How large a firmware is, by part: what the linker's map says, checked against the ELF.

    .venv/bin/python benchmarks/firmware_size.py [FOLDER | --every-kernel | --short] [--json]

FOLDER is one that `ethosu-sdk build` wrote; without it a fully delegated program is built. `--every-kernel` builds
the resident firmware, which has all of them, and `--short` that of the fully delegated program. The model and the
pools are not counted: those are the model's.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from elftools.elf.elffile import ELFFile
from rich.console import Console
from rich.table import Table

from ethosu_sdk.firmware_build import program_firmware, resident_firmware

FULLY_DELEGATED = Path(__file__).resolve().parents[1] / "tests" / "golden" / "pte" / "add_u55.pte"
STEM = "executor_runner"
KINDS = {
    ".vectors": "text",
    ".text": "text",
    ".init_array": "rodata",
    ".rodata": "rodata",
    ".ARM.extab": "rodata",
    ".ARM.exidx": "rodata",
    ".data": "data",
    ".bss": "bss",
}
IMAGE = ("text", "rodata", "data")  # what is stored: .bss is not
# The first pattern that is in an object's path says whose it is.
PARTS = (
    ("board", "ethosu_board.dir"),
    ("npu driver", "libethosu_npu.a"),
    ("base", "libethosu_base.a"),
    ("runtime", "libethosu_runtime.a"),
    ("kernels", "libethosu_kernels.a"),
    ("app", "libethosu_app.a"),
    ("app", f"{STEM}.dir"),
    ("app", f"{resident_firmware.RESIDENT_EXECUTABLE}.dir"),
    ("libc, libgcc", "/lib"),
)
PADDING = "alignment"
_OUTPUT = re.compile(r"^(\.[\w.]+)(?:\s|$)")
_PIECE = re.compile(r"^ \S*\s+0x([0-9a-f]+)\s+0x([0-9a-f]+)\s*(\S.*)?$")

Sizes = dict[str, dict[str, int]]  # part → kind → bytes


def pieces(text: str) -> Iterator[tuple[str, str, int]]:
    """(output section, object or "" for padding, bytes) of each piece that the linker placed.

    Equal strings of several objects are stored once, with the first of them; the map still prints the size of the
    others, at the address of what comes next. So no piece is longer than the way to the next one.
    """
    found: list[tuple[str, str, int, int]] = []
    section = ""
    for line in text.partition("Linker script and memory map")[2].splitlines():
        if output := _OUTPUT.match(line):
            section = output[1]
        elif piece := _PIECE.match(line):
            found.append((section, piece[3] or "", int(piece[1], 16), int(piece[2], 16)))
    for (section, source, at, count), following in itertools.zip_longest(found, found[1:]):
        same = following is not None and following[0] == section
        yield section, source, min(count, following[2] - at) if same else count


def sizes(map_file: Path) -> Sizes:
    """Bytes of each part by kind."""
    result: Sizes = {}
    for section, source, count in pieces(map_file.read_text(encoding="utf-8")):
        if section in KINDS and count:
            part = next((name for name, pattern in PARTS if pattern in source), source) if source else PADDING
            row = result.setdefault(part, dict.fromkeys((*IMAGE, "bss"), 0))
            row[KINDS[section]] += count
    return result


def of_elf(elf_file: Path) -> dict[str, int]:
    """Bytes by kind from the section headers, which know nothing of parts."""
    result = dict.fromkeys((*IMAGE, "bss"), 0)
    with elf_file.open("rb") as stream:
        for section in ELFFile(stream).iter_sections():
            if section.name in KINDS:
                result[KINDS[section.name]] += section["sh_size"]
    return result


def measure(folder: Path, stem: str) -> tuple[Sizes, dict[str, int]]:
    """Parts and totals of the firmware in `folder`. What the map does not tell of is the linker's padding."""
    parts, totals = sizes(folder / f"{stem}.map"), of_elf(folder / f"{stem}.elf")
    padding = parts.setdefault(PADDING, dict.fromkeys(totals, 0))
    for kind, total in totals.items():
        padding[kind] += total - sum(row[kind] for row in parts.values())
    return parts, totals


def show(parts: Sizes, totals: dict[str, int]) -> None:
    """A table for people."""
    table = Table("part", *(*IMAGE, "image", "bss"), title="firmware in bytes, without model and pools")
    for name, row in [*sorted(parts.items()), ("total", totals)]:
        image = sum(row[kind] for kind in IMAGE)
        table.add_row(name, *(f"{row[kind]:,}" for kind in IMAGE), f"{image:,}", f"{row['bss']:,}")
    Console().print(table)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Print the size of a firmware by part.")
    parser.add_argument(
        "folder", nargs="?", type=Path, metavar="FOLDER", help="one that `ethosu-sdk build` wrote"
    )
    parser.add_argument("--every-kernel", action="store_true", help="the resident firmware")
    parser.add_argument(
        "--short", action="store_true", help="the firmware of a fully delegated program, as without FOLDER"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        if given.every_kernel:
            resident_firmware.build_resident(folder)
        elif not given.folder:
            program_firmware.build_firmware(FULLY_DELEGATED, folder)
        parts, totals = measure(folder, resident_firmware.RESIDENT_EXECUTABLE if given.every_kernel else STEM)
    if given.json:
        sys.stdout.write(json.dumps({"parts": parts, "totals": totals}) + "\n")
    else:
        show(parts, totals)


if __name__ == "__main__":
    main()
