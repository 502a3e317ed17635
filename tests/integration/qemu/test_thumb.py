"""The access decoder against the GNU disassembler, over random encodings of the load and store space."""

import random
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from ethosu_sdk.simulate.qemu.thumb import Access, DecodeError, decode
from tests import processes

pytestmark = pytest.mark.toolchain

_COUNT = 6000
_NAMES = {f"r{number}": number for number in range(16)} | {
    "sl": 10,
    "fp": 11,
    "ip": 12,
    "sp": 13,
    "lr": 14,
    "pc": 15,
}
_SIZES = {"": 4, "b": 1, "h": 2, "d": 4}
_SINGLE = re.compile(r"(ldr|str)(s?)([bhd]?)(?:\.w)?\s(\w+)(?:, (\w+))?, \[(\w+)(.*)$")
_ORDERED = re.compile(r"(lda|stl)([bh]?)\s(\w+), \[(\w+)\]$")
_MULTIPLE = re.compile(r"(ldm|stm)(ia|db)(?:\.w)?\s(\w+)(!?), \{(.*)\}$")
_OFFSET = re.compile(r"(?:, #(-?\d+)|, (\w+)(?:, lsl #(\d))?)?\](!?)$|\], #(-?\d+)$")


@dataclass(frozen=True)
class Meaning:
    """What an instruction does, as far as both sides say it."""

    store: bool
    size_bytes: int
    signed: bool
    targets: tuple[int, ...]
    base: int
    index: tuple[int, int] | None  # register and shift
    first: int  # what is added to the base for the first transfer's address, beside the index
    written_back: int | None  # what is added to the base register itself


def meaning_of(access: Access) -> Meaning:
    indexed = access.offset.register
    offset = access.offset.immediate
    return Meaning(
        access.store,
        access.size_bytes,
        access.signed,
        access.targets,
        access.base,
        None if indexed is None else (indexed, access.offset.shift),
        offset if access.pre_indexed else 0,
        offset if access.writeback else None,
    )


def parse(text: str) -> Meaning | None:
    """What the disassembler's `text` says; None when it is no access that the decoder is meant to know."""
    if found := _ORDERED.match(text):
        name, size, target, base = found.groups()
        return Meaning(name == "stl", _SIZES[size], False, (_NAMES[target],), _NAMES[base], None, 0, None)
    if found := _MULTIPLE.match(text):
        name, order, base, mark, listed = found.groups()
        targets = tuple(_NAMES[word] for word in listed.split(", "))
        moved = 4 * len(targets) * (1 if order == "ia" else -1)
        first = moved if order == "db" else 0
        return Meaning(name == "stm", 4, False, targets, _NAMES[base], None, first, moved if mark else None)
    found = _SINGLE.match(text)
    if found is None:
        return None
    name, signed, size, target, second, base, rest = found.groups()
    offset = _OFFSET.match(rest)
    if offset is None or (size == "d") != (second is not None):
        return None
    before, register, shift, mark, after = offset.groups()
    targets = tuple(_NAMES[word] for word in (target, second) if word)
    index = (_NAMES[register], int(shift or 0)) if register else None
    added = int(before or 0)
    written = int(after) if after is not None else added if mark else None
    return Meaning(name == "str", _SIZES[size], bool(signed), targets, _NAMES[base], index, added, written)


def unusable(meaning: Meaning) -> bool:
    """What the architecture calls UNPREDICTABLE, a branch or a literal, whatever the disassembler prints."""
    special = {13, 15}
    loads_base = meaning.written_back is not None and meaning.base in meaning.targets
    return bool(
        special & set(meaning.targets)
        or meaning.base == 15
        or (meaning.index is not None and meaning.index[0] in special)
        or loads_base
        or (not meaning.store and len(set(meaning.targets)) < len(meaning.targets))
    )


def has_reserved_bits(code: bytes) -> bool:
    """Whether bits [10:6] of a 32-bit register-offset form are set, which the disassembler overlooks."""
    first, second = int.from_bytes(code[:2], "little"), int.from_bytes(code[2:], "little")
    return first & 0xFE80 == 0xF800 and not second & 0x0800 and bool(second & 0x07C0)


def encodings() -> list[bytes]:
    """Random instructions, most of them in the load and store space."""
    source = random.Random(5)
    found = []
    for _ in range(_COUNT):
        if source.random() < 0.4:
            first = source.choice([0x5000, 0x6000, 0x7000, 0x8000, 0x9000, 0xC000]) | source.getrandbits(12)
            found.append(first.to_bytes(2, "little"))
        else:
            first = source.choice([0xF800, 0xF900, 0xE800, 0xE900]) | source.getrandbits(8)
            second = source.getrandbits(16)
            if source.random() < 0.3:
                second &= 0xF03F  # register offsets are rare otherwise
            if source.random() < 0.2:
                second |= 0x0F8F  # and so are LDA and STL
            found.append(first.to_bytes(2, "little") + second.to_bytes(2, "little"))
    return found


def disassemble(codes: list[bytes], folder: Path) -> list[str]:
    """The text of each instruction; every one is padded with no-operations to 8 bytes."""
    image = folder / "code.bin"
    image.write_bytes(b"".join(code + b"\x00\xbf" * ((8 - len(code)) // 2) for code in codes))
    listing = processes.run(
        ["arm-none-eabi-objdump", "-D", "-b", "binary", "-m", "arm", "-M", "force-thumb", str(image)],
        check=True,
    ).stdout
    found = {}
    for line in listing.splitlines():
        columns = line.split("\t")
        if len(columns) >= 3 and columns[0].strip().endswith(":"):
            found[int(columns[0].strip()[:-1], 16)] = " ".join(columns[2:])
    return [re.split(r"\s*[;@]", found[8 * index])[0].strip() for index in range(len(codes))]


def test_the_decoder_agrees_with_the_disassembler(tmp_path: Path) -> None:
    codes = encodings()
    decoded = 0
    for code, text in zip(codes, disassemble(codes, tmp_path), strict=True):
        expected = parse(text)
        if expected is not None and (unusable(expected) or has_reserved_bits(code)):
            expected = None
        try:
            access: Access | None = decode(code, 0)
        except DecodeError:
            access = None
        assert (None if access is None else meaning_of(access)) == expected, f"{code.hex()}: {text}"
        if access is not None:
            decoded += 1
            assert access.length_bytes == len(code)
    assert decoded > _COUNT / 3
