"""The command table and the decoder."""

import struct

import pytest
from hypothesis import given, strategies as st

from ethosu_sdk.base.targets import Generation
from ethosu_sdk.npu import tables
from ethosu_sdk.npu.errors import CommandError
from ethosu_sdk.npu.stream.registers import command_types, commands
from tests.tables import each
from tests.unit.npu import streams
from tests.unit.npu.streams import one, two

GENERATIONS: tuple[Generation, ...] = ("u55", "u85")
# The opcode space of Ethos-U55 and of Ethos-U85 has this many commands of one and of two words.
COUNTS = {"u55": (60, 37), "u85": (63, 48)}


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize(("words", "text"), [(1, tables.ONE_WORD), (2, tables.TWO_WORDS)])
def test_every_opcode_and_name_stands_once(generation: Generation, words: int, text: str) -> None:
    rows = [line.split() for line in text.strip().replace("\n ", " ").splitlines()]
    mine = [row for row in rows if row[1] in ("both", generation)]
    assert {row[1] for row in rows} == {"both", "u55", "u85"}
    assert len({int(row[0], 16) for row in mine}) == len({row[2] for row in mine}) == len(mine)
    table = command_types(generation)
    assert sorted(opcode for count, opcode in table if count == words) == sorted(
        int(row[0], 16) for row in mine
    )


@pytest.mark.parametrize("generation", GENERATIONS)
def test_fields_lie_inside_the_command_and_do_not_overlap(generation: Generation) -> None:
    for (words, opcode), row in command_types(generation).items():
        # Bits 15:0 of the first word are opcode and word count; bit 63 is the last one there is.
        allowed = 0xFFFF_0000 if words == 1 else 0xFFFF_FFFF_FFFF_0000
        used = 0
        for field in row.fields:
            assert field.low <= field.high, row.name
            mask = (1 << (field.high + 1)) - (1 << field.low)
            assert mask & ~allowed == 0, row.name
            assert used & mask == 0, row.name
            used |= mask
        assert 0 <= opcode < 0x400
        assert len({field.name for field in row.fields}) == len(row.fields)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_operations_and_settings_have_their_own_opcodes(generation: Generation) -> None:
    """Bit 8 tells one from the other, the other way round for commands of two words."""
    table = command_types(generation)
    for (words, opcode), row in table.items():
        assert row.is_operation == (bool(opcode & 0x100) == (words == 2)), row.name
    counts = tuple(sum(words == wanted for words, _ in table) for wanted in (1, 2))
    assert counts == COUNTS[generation]


# Bytes, generation, name and fields. The precision of the OFM lies one bit lower than that of the IFM.
HAND_ASSEMBLED = """\
0000ffff u55 OP_STOP mask=0xffff
05000200 u55 OP_POOL pooling_mode=2
06000900 u55 OP_ELEMENTWISE elementwise_mode=9
05010989 u55 SET_IFM_PRECISION activation_type=1 activation_precision=2 activation_format=0 scale_mode=1 \
    round_mode=2
14014381 u55 SET_OFM_PRECISION activation_type=1 activation_precision=1 activation_format=1 scale_mode=1 \
    round_mode=2
22015e02 u55 SET_KERNEL_STRIDE stride_x_lsb=0 stride_y_lsb=1 weight_order=1 dilation_x=1 dilation_y=1 \
    decomposition=0 stride_x_msb=1 stride_y_msb=1
0901fbff u55 SET_IFM_ZERO_POINT zero_point=0xfffb
0040120078563412 u55 SET_IFM_BASE0 addr_hi=18 addr_lo=0x12345678
2440260001000080 u55 SET_OFM_SCALE shift=38 scale=0x80000001
23400000ffffffff u55 SET_SCALE_LENGTH length=0xfffff
02000100 u85 OP_CONV weights_ifm2=1
07000200 u85 OP_RESIZE resize_mode=2
05018681 u85 SET_IFM_PRECISION activation_type=0 activation_precision=1 activation_format=2 \
    activation_storage=2
14012395 u85 SET_OFM_PRECISION activation_type=1 activation_precision=1 activation_format=0 scale_mode=1 \
    activation_reverse=2 activation_transpose=2 activation_storage=2
24012105 u85 SET_ACC_FORMAT acc_format=1 acc_input=2 acc_output=0 microblock=5
25016810 u85 SET_ACTIVATION activation_function=8 table=3 activation_clip_range=1
30010300 u85 SET_DMA0_SRC_REGION region=3 region_mode=0 stride_mode=0 idx_mode=0
3001020d u85 SET_DMA0_SRC_REGION region=2 region_mode=1 stride_mode=2 idx_mode=1
9640fa0705000300 u85 SET_RESIZE_X one_step_int=10 blk_step_int=0x7f one_step_mod=5 blk_step_mod=3
0041010034120000 u85 OP_BRANCH branch_cond=1 branch_target=0x1234
24402620010000c0 u85 SET_OFM_SCALE shift=38 dbl_rnd=0 round_mode=1 scale=0x40000001
"""


@each("row", HAND_ASSEMBLED.splitlines())
def test_hand_assembled_commands(row: str) -> None:
    text, generation, name, *fields = row.split()
    (command,) = commands(bytes.fromhex(text), "u55" if generation == "u55" else "u85")
    assert command.type.name == name
    found = {field.name: command.field(field.name) for field in command.type.fields}
    assert found == {key: int(value, 0) for key, value in (field.split("=") for field in fields)}


@each(
    ("generation", "words", "table"),
    [
        ("u55", 1, streams.ONE_WORD),
        ("u55", 2, {**streams.ADDRESSES, **streams.SCALES}),
        ("u85", 1, streams.U85_ONE_WORD),
        ("u85", 2, {**streams.U85_ADDRESSES, **streams.U85_SCALES}),
    ],
)
def test_registers_are_where_the_manual_has_them(
    generation: Generation, words: int, table: dict[str, int]
) -> None:
    made = {name: one(opcode, 1) if words == 1 else two(opcode, 0, 0) for name, opcode in table.items()}
    found = {name: [row.type.name for row in commands(data, generation)] for name, data in made.items()}
    assert found == {name: [f"SET_{name}"] for name in table}


def test_decoding_can_start_behind_a_command_and_is_shown() -> None:
    """Where a branch leads to; offsets still count from the start of the stream."""
    data = one(0x104, 3) + two(0x000, 0, 64) + one(0x002) + one(0x000, 0xFFFF)
    rows = [(0, "SET_IFM_DEPTH_M1"), (4, "SET_IFM_BASE0"), (12, "OP_CONV"), (16, "OP_STOP")]
    for start in (0, 4, 12, 16, 20):
        found = [(command.offset, command.type.name) for command in commands(data, "u85", start)]
        assert found == [row for row in rows if row[0] >= start]
    with pytest.raises(CommandError, match="at byte 16"):
        list(commands(data[:16] + one(0x106), "u85", 12))
    lines = [command.describe() for command in commands(two(0x000, 0x1, 0x40) + one(0x002), "u55")]
    assert lines == ["0x0000  NPU_SET_IFM_BASE0            addr_hi=0x1 addr_lo=0x40", "0x0008  NPU_OP_CONV"]


@each(
    ("data", "offset"),
    [
        (one(0x104) + one(0x004), 4),  # an operation that does not exist
        (one(0x104) + one(0x106), 4),  # a register that does not exist
        (one(0x007), 0),  # RESIZE, which only Ethos-U85 has
        (one(0x104) + two(0x100, 0, 0), 4),  # BRANCH, which only Ethos-U85 has
        (struct.pack("<I", 0x8104), 0),  # word counts that do not exist
        (struct.pack("<I", 0xC104), 0),
        (one(0x002) + two(0x000, 0, 0)[:4], 4),  # the second word is missing
        (one(0x002) + b"\0", 5),
        (b"\1\2\3", 3),
    ],
)
def test_damaged_streams_name_the_offset(data: bytes, offset: int) -> None:
    with pytest.raises(CommandError, match=f"at byte {offset} of the command stream") as raised:
        list(commands(data, "u55"))
    assert raised.value.offset == offset


@given(st.binary(max_size=64), st.sampled_from(GENERATIONS))
def test_any_bytes_decode_or_are_refused(data: bytes, generation: Generation) -> None:
    try:
        found = list(commands(data, generation))
    except CommandError as error:
        found, offset = [], error.offset
    else:
        offset = sum(4 * command.type.words for command in found)
        assert offset == len(data)
    assert 0 <= offset <= len(data)
    assert all(command.describe() for command in found)
