"""Thumb machine code as text. LLVM disassembles; an instruction is known by its encoding alone."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence

_WIDE = 0b11101  # the five highest bits of the first halfword of a 32-bit instruction: this or more
_MOST = 1 << 16  # instructions at a time: what a marker can number
_NOP = "[0x00 0xbf]"
_LINE = re.compile(r"^\s*(?P<text>\S.*?)\s*@ encoding: \[(?P<bytes>0x[0-9a-f]{2}(,0x[0-9a-f]{2})*)\]")
_MARKER_REGISTER = 12


def split(code: bytes) -> Iterator[bytes]:
    """The encodings of the instructions in `code`, of two or four bytes; a cut one at the end is left out."""
    at = 0
    while at + 2 <= len(code):
        size = 4 if code[at + 1] >> 3 >= _WIDE else 2
        if at + size > len(code):
            return
        yield code[at : at + size]
        at += size


def listing(encodings: Sequence[bytes]) -> str:
    """The input of ``llvm-mc --disassemble`` for `encodings`.

    Behind each stand instructions that use up an IT or VPT block, and a marker with its number.
    """
    lines = []
    for number, encoding in enumerate(encodings):
        lines += [_bracketed(encoding), *[_NOP] * 4, _bracketed(_marker(number))]
    return "\n".join(lines) + "\n"


def parts(encodings: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """`encodings` in parts that one listing can have."""
    for at in range(0, len(encodings), _MOST):
        yield encodings[at : at + _MOST]


def texts(encodings: Sequence[bytes], disassembly: str) -> list[str] | None:
    """The text of each of `encodings`, in LLVM's syntax; empty where LLVM knows no such instruction.

    None for a disassembly that lacks one of the markers.
    """
    found = [""] * len(encodings)
    number, is_behind = 0, False  # the instruction whose lines these are; whether a filler was seen
    for line in disassembly.splitlines():
        match = _LINE.match(line)
        if match is None or number == len(encodings):
            continue
        encoding = bytes(int(word, 16) for word in match["bytes"].split(","))
        if is_behind and encoding == _marker(number):
            number, is_behind = number + 1, False
        elif not is_behind and encoding == encodings[number] and not found[number]:
            found[number] = re.sub(r"\s+", " ", match["text"])
        else:
            is_behind = is_behind or encoding == b"\x00\xbf"
    return found if number == len(encodings) else None


def _bracketed(encoding: bytes) -> str:
    return "[" + " ".join(f"{byte:#04x}" for byte in encoding) + "]"


def _marker(number: int) -> bytes:
    """MOVW r12, #number (encoding T3)."""
    first = 0xF240 | (number >> 11 & 1) << 10 | number >> 12
    second = (number >> 8 & 7) << 12 | _MARKER_REGISTER << 8 | number & 0xFF
    return struct.pack("<HH", first, second)
