"""The Ethos-U payload decoder, on payloads written here from the format's description."""

import struct
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.npu import vela_blocks
from tests.tables import each
from tests.unit.npu.vela_payloads import ARCH, CONFIG, STREAM, Payload, actions, block, slots


def test_decodes_every_part() -> None:
    vela = vela_blocks.parse(Payload().encode())
    assert bytes(vela.command_stream) == STREAM
    assert bytes(vela.command_data) == actions()
    assert bytes(vela.weights) == b"weights!!"
    assert vela.scratch_bytes == 1280
    assert (vela.config_word, vela.arch_word) == (CONFIG, ARCH)
    assert vela.inputs == (vela_blocks.TensorSlot((1, 1, 1, 8, 8, 1), 1, 1024, 1),)
    assert vela.inputs[0].nbytes == 64
    assert vela.outputs[0].nbytes == 20
    assert vela.outputs[1] == vela_blocks.TensorSlot((1, 1, 1, 2, 3, 4), 4, 64, 2)
    assert [(row.name, row.offset, row.length) for row in vela.blocks[:3]] == [
        ("vela_bin_stream", 32, 0),
        ("cmd_data", 64, 48),
        ("weight_data", 144, 9),
    ]


def test_streams_may_be_long_and_views_share_memory() -> None:
    stream = bytes(4 * 0x10001)
    long = replace(
        Payload(),
        cmd_data=b"COP1" + struct.pack("<7I", 0x00100001, CONFIG, ARCH, 5, 5, 5, 0x00010102) + stream,
    )
    assert len(vela_blocks.parse(long.encode()).command_stream) == len(stream)
    payload = bytearray(Payload().encode())
    vela = vela_blocks.parse(payload)
    payload[144] ^= 0xFF
    assert bytes(vela.weights)[0] == ord("w") ^ 0xFF
    with pytest.raises(TypeError):
        vela.weights[0] = 0


def swap_first(blocks: list[bytes]) -> list[bytes]:
    return [blocks[1], blocks[0], *blocks[2:]]


def with_block(index: int, data: bytes) -> Callable[[list[bytes]], list[bytes]]:
    return lambda blocks: [*blocks[:index], data, *blocks[index + 1 :]]


@each(
    ("change", "message"),
    [
        (lambda blocks: [], "has no block 'cmd_data'"),
        (lambda blocks: blocks[1:], "does not start with block 'vela_bin_stream'"),
        (swap_first, "does not start with"),
        (lambda blocks: blocks[:-1], "has no block 'vela_end_stream'"),
        (lambda blocks: [*blocks[:2], *blocks[3:]], "has no block 'weight_data'"),
        (lambda blocks: [*blocks[:2], *blocks[1:]], "block 'cmd_data' appears twice"),
        (lambda blocks: [*blocks, b"\0" * 16], "16 bytes follow block 'vela_end_stream'"),
        (lambda blocks: [*blocks[:-1], blocks[-1][:-1]], "ends inside a block header at byte"),
        (with_block(2, block("weight_dato", b"")), "unknown block 'weight_dato'"),
        (with_block(2, block("weight_data\0x", b"")), "unknown block 'weight_data'"),
        (with_block(2, block("w\xe9ight", b"")), "unknown block"),
        (with_block(2, block("weight_data", b"k" * 64, external=1)), "stored outside of the payload"),
        (with_block(2, block("weight_data", b"", external=2)), "flags of a newer format"),
        (with_block(2, block("weight_data", b"", reserved=b"\1" + bytes(10))), "flags of a newer format"),
        (with_block(0, block("vela_bin_stream", b"x")), "marker block 'vela_bin_stream' holds 1 bytes"),
    ],
)
def test_damaged_chains(change: Callable[[list[bytes]], list[bytes]], message: str) -> None:
    with pytest.raises(InputError, match="Ethos-U delegate payload: ") as caught:
        vela_blocks.parse(b"".join(change(Payload().blocks())))
    assert message in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("length", [0xFFFFFFFF, 0xFFFFFFF0, 1 << 20])
def test_block_longer_than_the_payload(length: int) -> None:
    data = bytearray(Payload().encode())
    struct.pack_into("<I", data, 32 + 16, length)
    with pytest.raises(InputError, match=rf"block 'cmd_data' needs {length} bytes"):
        vela_blocks.parse(data)


@each(
    ("cmd_data", "message"),
    [
        (b"", "starts with b'', expected b'COP1'"),
        (b"COP2" + actions()[4:], "starts with b'COP2'"),
        (actions() + b"\0", "not a multiple of 4"),
        (actions(7), "unknown driver action 0x00000007 at byte 4"),
        (actions(0x00100001, 1, 2), "two configuration actions"),
        (actions() + struct.pack("<I", 2), "two command streams"),
        (b"COP1" + struct.pack("<4I", 1, CONFIG, ARCH, 5), "has no command stream"),
        (b"COP1" + struct.pack("<3I", 5, 5, 0x00010002) + bytes(4), "has no configuration action"),
        (b"COP1" + struct.pack("<2I", 0x00100001, CONFIG), "needs 8 bytes, 4 are left"),
        (actions()[:-4], "needs 16 bytes, 12 are left"),
        (actions(nops=2), "starts at byte 28 of 'cmd_data', not a multiple of 16"),
        (actions(stream=b""), "the command stream is empty"),
    ],
)
def test_damaged_driver_actions(cmd_data: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        vela_blocks.parse(replace(Payload(), cmd_data=cmd_data).encode())
    assert message in caught.value.message


@pytest.mark.parametrize("nops", [3, 7])
def test_nop_actions_are_skipped(nops: int) -> None:
    payload = replace(Payload(), cmd_data=actions(nops=nops))
    assert bytes(vela_blocks.parse(payload.encode()).command_stream) == STREAM


GOOD = (1, 1, 1, 8, 8, 1, 1, 1024, 1)


@each(
    ("inputs", "message"),
    [
        (b"\1", "too few for its count"),
        (slots(GOOD)[:-1], "counts 1 tensors in 39 bytes"),
        (slots(GOOD) + b"\0", "counts 1 tensors in 41 bytes"),
        (struct.pack("<i", -1), "counts -1 tensors"),
        (struct.pack("<i", 0x7FFFFFFF), "counts 2147483647 tensors"),
        (slots((1, 1, 1, 8, 0, 1, 1, 0, 1)), "has the shape"),
        (slots((1, 1, 1, 8, -8, -1, 1, 0, 1)), "has the shape"),
        (slots((1, 1, 1, 8, 8, 1, 3, 0, 1)), "elements of 3 bytes"),
        (slots((1, 1, 1, 8, 8, 1, 0, 0, 1)), "elements of 0 bytes"),
        (slots((*[0x7FFFFFFF] * 6, 8, 0, 1)), "larger than 4 GiB"),
        (slots((1, 1, 1, 8, 8, 1, 1, 0, 0)), "lies in region 0"),
        (slots((1, 1, 1, 8, 8, 1, 1, 0, 3)), "lies in region 3"),
        (slots((1, 1, 1, 8, 8, 1, 1, -1, 1)), "negative offset -1"),
        (slots((1, 1, 1, 8, 8, 1, 1, 1217, 1)), "ends at byte 1281 of scratch memory that has 1280"),
        (slots(GOOD, (1, 1, 1, 8, 8, 1, 1, 1217, 1)), "inputs[1]"),
    ],
)
def test_damaged_tensor_slots(inputs: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        vela_blocks.parse(replace(Payload(), inputs=inputs).encode())
    assert message in caught.value.message


def test_scratch_has_four_bytes_of_size_and_tensors_may_end_there() -> None:
    payload = replace(Payload(), inputs=slots((1, 1, 1, 8, 8, 1, 1, 1216, 1)))
    assert vela_blocks.parse(payload.encode()).inputs[0].offset == 1216
    with pytest.raises(InputError, match="'scratch_size' has 8 bytes"):
        vela_blocks.parse(replace(Payload(), scratch_size=bytes(8)).encode())


@each("step", range(1, 8))
def test_every_truncation_is_refused(step: int) -> None:
    data = Payload().encode()
    for end in range(0, len(data), step):
        with pytest.raises(InputError):
            vela_blocks.parse(data[:end])


@given(st.data())
def test_any_damage_is_an_input_error_or_a_sound_value(data: st.DataObject) -> None:
    payload = bytearray(Payload().encode())
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    try:
        vela = vela_blocks.parse(payload)
    except InputError:
        return
    for slot in (*vela.inputs, *vela.outputs):
        assert slot.nbytes > 0
        assert slot.region == 2 or slot.offset + slot.nbytes <= vela.scratch_bytes
    assert 0 < len(vela.command_stream) <= len(payload)
