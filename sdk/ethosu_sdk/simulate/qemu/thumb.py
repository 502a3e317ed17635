"""Which bytes a trapped Thumb load or store would have moved: a pure decoder.

:func:`decode` turns an instruction into a frozen :class:`Access`, :meth:`Access.resolve` adds the register
values, :func:`advance_it` steps over the instruction. Known are the forms that a compiler emits for volatile
8, 16, 32 and 64 bit objects, load-acquire and store-release, and LDM/STM. Exclusive, unprivileged, literal,
floating-point and vector forms are not: no driver uses them on a device's registers, and
:class:`DecodeError` says so. A disassembler would be a native dependency more, and would still leave operands,
writeback and the IT state to this module.

Source: Armv8-M Architecture Reference Manual (DDI 0553), chapter C2, encodings T1 to T4 of each instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

_SP = 13
_PC = 15
_WORD = 0xFFFF_FFFF
_IT_MASK = 0x0600_FC00  # xPSR[26:25] and [15:10] hold ITSTATE[1:0] and [7:2]


class DecodeError(Exception):
    """The bytes at `pc` are not a load or store that this decoder supports."""

    def __init__(self, pc: int, code: bytes) -> None:
        super().__init__(f"cannot emulate the instruction {code[:4].hex(' ')} at {pc:#010x}")
        self.pc = pc
        self.code = code


@dataclass(frozen=True)
class Offset:
    """What is added to the base register: an immediate, or a register shifted left."""

    immediate: int = 0
    register: int | None = None
    shift: int = 0

    def value(self, registers: Sequence[int]) -> int:
        """The offset in bytes, for the given r0 to r15."""
        return self.immediate if self.register is None else registers[self.register] << self.shift


@dataclass(frozen=True)
class Access:
    """A decoded load or store of one or more transfers of `size_bytes` each, at ascending addresses.

    `targets` are the registers that are loaded or stored. `offset` is added to r[`base`] before the access
    when `pre_indexed`, after it otherwise; `writeback` replaces the base by the sum. LDMDB and STMDB are
    pre-indexed by a negative offset like the others.
    """

    store: bool
    size_bytes: int
    targets: tuple[int, ...]
    base: int
    offset: Offset
    length_bytes: int
    signed: bool = False
    pre_indexed: bool = True
    writeback: bool = False

    def resolve(self, registers: Sequence[int]) -> tuple[int, int | None]:
        """(first address, new value of the base register or None), for the given r0 to r15."""
        base = registers[self.base]
        moved = (base + self.offset.value(registers)) & _WORD
        return moved if self.pre_indexed else base, moved if self.writeback else None


def decode(code: bytes, pc: int) -> Access:
    """The load or store whose encoding starts `code` (4 bytes, or 2 for a short one at a memory's end).

    Raises DecodeError for everything else, UNPREDICTABLE encodings included; `pc` only names the place.
    """
    access = None
    if len(code) >= 2:
        first = int.from_bytes(code[:2], "little")
        if first >> 11 not in (0b11101, 0b11110, 0b11111):
            access = _decode_16(first)
        elif len(code) >= 4:
            access = _decode_32(first, int.from_bytes(code[2:4], "little"))
    if access is None:
        raise DecodeError(pc, code)
    return access


def advance_it(xpsr: int) -> int:
    """`xpsr` after one instruction was stepped over: ITSTATE advanced as ITAdvance() does."""
    state = (xpsr >> 25 & 0b11) | (xpsr >> 8 & 0xFC)
    state = (state & 0xE0) | (state << 1 & 0x1F) if state & 0b111 else 0
    return (xpsr & ~_IT_MASK) | (state & 0b11) << 25 | (state & 0xFC) << 8


# (store, size_bytes, signed) by the three opcode bits of the 16-bit register-offset forms
_REGISTER_FORMS = (
    (True, 4, False),
    (True, 2, False),
    (True, 1, False),
    (False, 1, True),
    (False, 4, False),
    (False, 2, False),
    (False, 1, False),
    (False, 2, True),
)
_IMMEDIATE_SIZES = {0b0110: 4, 0b0111: 1, 0b1000: 2}  # by the four opcode bits


def _decode_16(half: int) -> Access | None:
    opcode = half >> 12
    load = bool(half >> 11 & 1)
    low, middle = half & 7, half >> 3 & 7
    if opcode in _IMMEDIATE_SIZES:
        size = _IMMEDIATE_SIZES[opcode]
        return Access(not load, size, (low,), middle, Offset((half >> 6 & 31) * size), 2)
    if opcode == 0b0101:
        store, size, signed = _REGISTER_FORMS[half >> 9 & 7]
        return Access(store, size, (low,), middle, Offset(register=half >> 6 & 7), 2, signed)
    if opcode == 0b1001:
        return Access(not load, 4, (half >> 8 & 7,), _SP, Offset((half & 0xFF) * 4), 2)
    if opcode == 0b1100:
        return _multiple(load, half >> 8 & 7, half & 0xFF, ascending=True, writeback=True, length_bytes=2)
    return None


def _multiple(
    load: bool, base: int, mask: int, *, ascending: bool, writeback: bool, length_bytes: int
) -> Access | None:
    targets = tuple(number for number in range(16) if mask >> number & 1)
    if not targets or _SP in targets or _PC in targets or base == _PC:
        return None
    if base in targets:
        # A 16-bit LDM that loads its base has no writeback; all other forms with both are UNPREDICTABLE.
        if length_bytes == 2 and load:
            writeback = False
        elif writeback:
            return None
    size = 4 * len(targets)
    access = Access(not load, 4, targets, base, Offset(size if ascending else -size), length_bytes)
    if ascending:
        return replace(access, pre_indexed=False, writeback=writeback)
    return replace(access, writeback=writeback)


def _decode_32(first: int, second: int) -> Access | None:
    decoder = _DECODERS_32.get(first >> 9)
    access = decoder(first, second) if decoder is not None else None
    if access is None or _unpredictable(access):
        return None
    return access


def _unpredictable(access: Access) -> bool:
    """What no 32-bit form may name: sp or pc as data, pc as base or index, a base written twice."""
    index = access.offset.register
    return (
        access.base == _PC
        or any(target in (_SP, _PC) for target in access.targets)
        or index in (_SP, _PC)
        or (access.writeback and access.base in access.targets)
    )


def _single(first: int, second: int) -> Access | None:
    """LDR, STR and their byte and halfword forms, encodings 1111 100x."""
    size = (1, 2, 4, 0)[first >> 5 & 3]
    load, signed, long_immediate = bool(first >> 4 & 1), bool(first >> 8 & 1), bool(first >> 7 & 1)
    if size == 0 or (signed and (size == 4 or not load)):
        return None
    access = Access(not load, size, (second >> 12,), first & 15, Offset(), 4, signed)
    if long_immediate:
        return replace(access, offset=Offset(second & 0xFFF))
    if second >> 11 & 1:
        return _short_immediate(access, second)
    if second >> 6 & 0x1F:
        return None
    return replace(access, offset=Offset(register=second & 15, shift=second >> 4 & 3))


def _short_immediate(access: Access, second: int) -> Access | None:
    """The eight-bit immediate forms: P, U and W in bits 10, 9 and 8."""
    index, add, writeback = bool(second >> 10 & 1), bool(second >> 9 & 1), bool(second >> 8 & 1)
    if (not index and not writeback) or (index and add and not writeback):  # undefined; unprivileged
        return None
    immediate = second & 0xFF
    return replace(
        access,
        offset=Offset(immediate if add else -immediate),
        pre_indexed=index,
        writeback=writeback,
    )


_ORDERED_SIZES = {0b1000: 1, 0b1001: 2, 0b1010: 4}  # LDAB/STLB, LDAH/STLH, LDA/STL


def _dual_or_multiple(first: int, second: int) -> Access | None:
    """LDRD and STRD, LDA and STL, LDM and STM: encodings 1110 100x."""
    load, base = bool(first >> 4 & 1), first & 15
    index, add, writeback = bool(first >> 8 & 1), bool(first >> 7 & 1), bool(first >> 5 & 1)
    if not first >> 6 & 1:
        if index == add:  # 00 and 11 are other instructions
            return None
        return _multiple(load, base, second, ascending=add, writeback=writeback, length_bytes=4)
    if index or writeback:
        targets = (second >> 12, second >> 8 & 15)
        if load and targets[0] == targets[1]:
            return None
        immediate = (second & 0xFF) * 4
        offset = Offset(immediate if add else -immediate)
        return Access(not load, 4, targets, base, offset, 4, pre_indexed=index, writeback=writeback)
    size = _ORDERED_SIZES.get(second >> 4 & 15)
    if not add or size is None or second & 0xF0F != 0xF0F:  # exclusives and table branches
        return None
    return Access(not load, size, (second >> 12,), base, Offset(), 4)


_DECODERS_32: dict[int, Callable[[int, int], Access | None]] = {
    0b1111100: _single,
    0b1110100: _dual_or_multiple,
}
