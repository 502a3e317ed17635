"""The decoder on everything that is no access, and what an access does to registers and the IT state."""

import pytest
from hypothesis import given, strategies as st

from ethosu_sdk.simulate.qemu.thumb import Access, DecodeError, Offset, advance_it, decode
from tests.tables import each

_SP = 13
_PC = 0x1000_0100


def single(
    store: bool,
    size: int,
    target: int,
    base: int,
    offset: Offset,
    length: int,
    *,
    signed: bool = False,
    pre: bool = True,
    wb: bool = False,
) -> Access:
    return Access(store, size, (target,), base, offset, length, signed, pre, wb)


def imm(value: int) -> Offset:
    return Offset(value)


def reg(number: int, shift: int = 0) -> Offset:
    return Offset(register=number, shift=shift)


def many(
    store: bool, targets: tuple[int, ...], base: int, offset: int, length: int, *, pre: bool, wb: bool
) -> Access:
    return Access(store, 4, targets, base, Offset(offset), length, False, pre, wb)


# Bytes as they lie in memory, from binutils 2.40: `arm-none-eabi-gcc -mcpu=cortex-m55 -c`. Accesses are compared with
# the disassembler in tests/integration/qemu/test_thumb.py.
REFUSED = [
    ("52e8011f", "ldrex r1, [r2, #4]"),
    ("42e80010", "strex r0, r1, [r2]"),
    ("d2e8ef1f", "ldaex r1, [r2]"),
    ("c2e8e01f", "stlex r0, r1, [r2]"),
    ("d2e84f1f", "ldrexb r1, [r2]"),
    ("52f8041e", "ldrt r1, [r2, #4]"),
    ("02f8041e", "strbt r1, [r2, #4]"),
    ("dff81010", "ldr.w r1, [pc, #16]"),
    ("d2f800f0", "ldr.w pc, [r2]"),
    ("92f804f0", "pld [r2, #4]"),
    ("d2e803f0", "tbb [r2, r3]"),
    ("92ed000a", "vldr s0, [r2]"),
    ("82ed020b", "vstr d0, [r2, #8]"),
    ("92ed001f", "vldrw.u32 q0, [r2]"),
    ("10b5", "push {r4, lr}"),
    ("10bd", "pop {r4, pc}"),
    ("92e80880", "ldmia.w r2, {r3, pc}"),
    ("0121", "movs r1, #1"),
    ("fee7", "b ."),
    ("00bf", "nop"),
    ("fff7feff", "bl ."),
    ("08bf", "it eq"),
    ("7fe97fe9", "sg"),
    ("00de", "udf #0"),
    # UNPREDICTABLE forms, which no assembler writes; changed by hand from those above.
    ("53f8043f", "ldr r3, [r3, #4]!"),
    ("53f80d20", "ldr.w r2, [r3, sp]"),
    ("d2e90244", "ldrd r4, r4, [r2, #8]"),
    ("f2e80625", "ldrd r2, r5, [r2], #24"),
    ("b2e80c05", "ldmia.w r2!, {r2, r3, r8, r10}"),
    ("08c3", "stmia r3!, {r3}"),
    ("00c3", "stmia r3!, {}"),
]


def test_what_follows_a_short_instruction_does_not_matter() -> None:
    ldr = bytes.fromhex("5a68")  # ldr r2, [r3, #4]
    assert decode(ldr + b"\xff\xff", _PC) == decode(ldr, _PC) == single(False, 4, 2, 3, imm(4), 2)


@each("code", [code for code, _ in REFUSED], ids=[text for _, text in REFUSED])
def test_what_is_no_plain_access_is_refused(code: str) -> None:
    with pytest.raises(DecodeError, match="0x10000100") as caught:
        decode(bytes.fromhex(code).ljust(4, b"\0"), _PC)
    assert caught.value.pc == _PC
    assert bytes.fromhex(code).hex(" ") in str(caught.value)


@pytest.mark.parametrize("code", ["", "53", "53f8", "53f804"])
def test_an_instruction_cut_off_is_refused(code: str) -> None:
    with pytest.raises(DecodeError):
        decode(bytes.fromhex(code), _PC)


@given(st.binary(max_size=6), st.lists(st.integers(0, 0xFFFF_FFFF), min_size=17, max_size=17))
def test_any_bytes_give_an_access_or_the_named_error(code: bytes, registers: list[int]) -> None:
    try:
        access = decode(code, _PC)
    except DecodeError:
        return
    address, base = access.resolve(registers)
    assert 0 <= address < 1 << 32
    assert base is None or 0 <= base < 1 << 32
    assert (base is not None) == access.writeback
    assert set(access.targets) <= set(range(15)) - {_SP}
    assert access.size_bytes in (1, 2, 4)
    assert access.length_bytes in (2, 4)


@each(
    ("access", "address", "base"),
    [
        (single(False, 4, 0, 1, imm(-8), 4), 0x0FF8, None),
        (single(False, 4, 0, 1, imm(8), 4, wb=True), 0x1008, 0x1008),
        (single(False, 4, 0, 1, imm(8), 4, pre=False, wb=True), 0x1000, 0x1008),
        (single(False, 4, 0, 1, reg(2, 3), 4), 0x1018, None),
        (single(False, 4, 0, 3, imm(8), 4), 0x4, None),  # wraps around
        (single(False, 4, 0, 1, reg(3, 2), 4), 0xFF0, None),
        (many(True, (4, 5), 1, -8, 4, pre=True, wb=True), 0x0FF8, 0x0FF8),
        (many(True, (4, 5), 1, 8, 4, pre=False, wb=False), 0x1000, None),
    ],
)
def test_addresses_and_writeback(access: Access, address: int, base: int | None) -> None:
    registers = [0, 0x1000, 3, 0xFFFF_FFFC] + [0] * 13
    assert access.resolve(registers) == (address, base)


def pack_it(state: int) -> int:
    """ITSTATE in its places of xPSR, beside other bits that must stay."""
    return 0xF100_0038 | (state & 3) << 25 | (state >> 2) << 10


@each(
    ("before", "after"),
    [
        # ITSTATE[7:5] is the base condition; [4:0] shifts left and the block ends when [2:0] are 0.
        (0b0000_1000, 0b0000_0000),  # IT EQ: one instruction
        (0b0000_0100, 0b0000_1000),  # ITT EQ
        (0b0000_1100, 0b0001_1000),  # ITE EQ
        (0b1100_0001, 0b1100_0010),  # ITTTT GT
        (0b1100_0010, 0b1100_0100),
        (0b1010_1111, 0b1011_1110),  # ITEEE GE
        (0b0000_0000, 0b0000_0000),  # outside of a block
    ],
)
def test_the_it_state_advances(before: int, after: int) -> None:
    assert advance_it(pack_it(before)) == pack_it(after)


@given(st.integers(0, 0xFFFF_FFFF))
def test_an_it_block_has_at_most_four_instructions(xpsr: int) -> None:
    other = ~0x0600_FC00
    state = xpsr
    for _ in range(5):
        state = advance_it(state)
        assert state & other == xpsr & other
    assert state & 0x0600_FC00 == 0
