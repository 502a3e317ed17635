"""Damaged command streams and programs end alike on host and board: with the same code, and for the same reason."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import pytest

from campaigns.attack.kinds import bounds
from ethosu_sdk.program import pte
from tests.integration.cli import Outcome, assert_clear, sdk
from tests.integration.hostile import delegating
from tests.pte_files import changed, golden
from tests.tables import each
from tests.unit.npu.streams import DMA_START, stream

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]
SIDES = (("--simulator", "host"), ("--simulator", "qemu", "--resident"))
VALUE = "execution_plan[0].values[{}].val"
OFM_BASE0 = 0x4010


def both(folder: Path, data: bytes, *options: str) -> list[Outcome]:
    """The program on host and board."""
    (folder / "net.pte").write_bytes(data)
    return [
        sdk("run", "net.pte", *side, "-o", str(number), *options, cwd=folder)
        for number, side in enumerate(SIDES)
    ]


def edited(name: str, old: bytes, new: bytes) -> bytes:
    """A golden program with other bytes in its command stream, the last time that `old` stands there."""
    data = golden(name)
    delegate = pte.parse(data).delegates[0]
    assert delegate.vela is not None
    commands = bytes(delegate.vela.command_stream)
    head, found, tail = commands.rpartition(old)
    assert found
    assert len(old) == len(new)
    return data.replace(commands, head + new + tail)


def test_two_bytes_that_lead_out_of_a_region(tmp_path: Path) -> None:
    """Memory goes on behind the 64 bytes of region 1: hardware writes there, the model says so on both sides."""
    data = edited("add_u55", struct.pack("<II", OFM_BASE0, 0), struct.pack("<II", OFM_BASE0, 0x1040))
    for outcome in both(tmp_path, data):
        assert_clear(outcome, 3, "OFM access to bytes 0x1040 to 0x1054 of region 1, which has 0x40 bytes")


def test_the_constants_are_read_only(tmp_path: Path) -> None:
    stop = edited("add_u55", struct.pack("<I", 0x1_011F), struct.pack("<I", 0x0_011F))  # OFM_REGION
    for outcome in both(tmp_path, stop):
        assert_clear(outcome, 3, "OFM access to ")


def test_a_damaged_command(tmp_path: Path) -> None:
    data = edited("add_u85_segment", struct.pack("<I", 0xFFFF_0000), struct.pack("<I", 0x0000_00E0))
    for outcome in both(tmp_path, data):
        assert_clear(outcome, 3, "unknown command 0x000000e0 at byte 328 of the command stream")


def test_a_damaged_index(tmp_path: Path) -> None:
    """A gather by the NPU whose row is none of the table's: what no check before the run can know."""
    registers = {
        "DMA0_SRC_REGION": 1 | 1 << 9 | 1 << 11,
        "DMA0_SRC": 0,
        "DMA0_DST_REGION": 1 | 1 << 9,
        "DMA0_DST": 0,
        "DMA0_LEN": 4,
        "DMA0_SIZE0": 5,
        "DMA0_SIZE1": 1,
        "DMA0_SRC_STRIDE0": 4,
        "DMA0_DST_STRIDE0": 4,
        "DMA0_IDX_REGION": 1,
        "DMA0_IDX": 32,
        "DMA0_IDX_MAX": 4,
    }
    path = delegating(tmp_path / "gather.pte", stream((registers, DMA_START, 0)), 64)
    np.savez(tmp_path / "in.npz", input0=np.array([0, 1, 77, 3, 4], np.int32))
    for outcome in both(tmp_path, path.read_bytes(), "--inputs", "in.npz"):
        assert_clear(outcome, 3, "a DMA index is outside of 0 to 4: 0 to 77")


def test_what_nobody_wrote_is_zero(tmp_path: Path) -> None:
    """Bytes 20 to 32 of region 1 are nobody's: no inference finds there what the one before left."""
    registers = {"DMA0_SRC_REGION": 1, "DMA0_SRC": 16, "DMA0_DST_REGION": 1, "DMA0_DST": 0, "DMA0_LEN": 20}
    path = delegating(tmp_path / "copy.pte", stream((registers, DMA_START, 0)), 64)
    np.savez(tmp_path / "in.npz", input0=np.arange(1, 6, dtype=np.int32))
    outcomes = both(tmp_path, path.read_bytes(), "--inputs", "in.npz", "--repeat", "2")
    assert [outcome.code for outcome in outcomes] == [0, 0], outcomes[1].err
    found = [np.load(tmp_path / side / "outputs.npz")["output0"] for side in ("0", "1")]
    assert found[0].tobytes() == found[1].tobytes()


def test_a_plan_with_an_output_on_its_input(tmp_path: Path) -> None:
    path = f"{VALUE.format(0)}.allocation_info.memory_offset_low"
    for outcome in both(tmp_path, bytes(changed(golden("softmax"), (path, 16)))):
        assert_clear(outcome, 3, "aten::_softmax.out, writes value 1 over value 0, which it reads")


def test_a_constant_is_no_output(tmp_path: Path) -> None:
    call = "execution_plan[0].chains[0].instructions[0].instr_args.args[{}]"
    for outcome in both(
        tmp_path, bytes(changed(golden("choice"), (call.format(4), 11), (call.format(5), 11)))
    ):
        assert_clear(outcome, 3, "aten::sum.IntList_out, writes value 11, which is a constant")


def test_what_an_operator_returns_is_its_output(tmp_path: Path) -> None:
    call = "execution_plan[0].chains[0].instructions[0].instr_args.args[{}]"
    for outcome in both(tmp_path, bytes(changed(golden("choice"), (call.format(4), 11)))):
        assert_clear(outcome, 3, "aten::sum.IntList_out, returns value 1, but its output is value 11")


@each(
    ("argument", "value", "words"),
    [(0, 6, "a tensor as argument 0, but value 6 is a number"), (1, 0, "a number as argument 1")],
)
def test_a_number_in_place_of_a_tensor(argument: int, value: int, words: str, tmp_path: Path) -> None:
    """One kernel of the firmware compares tensors and numbers; ExecuTorch has one for each."""
    call = f"execution_plan[0].chains[0].instructions[1].instr_args.args[{argument}]"
    for outcome in both(tmp_path, bytes(changed(golden("choice"), (call, value)))):
        assert_clear(outcome, 3, f"aten::gt.Scalar_out, needs {words}")


def test_a_tensor_off_its_alignment(tmp_path: Path) -> None:
    path = f"{VALUE.format(3)}.allocation_info.memory_offset_low"
    for outcome in both(tmp_path, bytes(changed(golden("lists"), (path, 156)))):
        assert_clear(outcome, 3, "int64 tensor at byte 156 of a buffer")


def test_a_list_without_elements(tmp_path: Path) -> None:
    """The dim_order that a copy is to have."""
    for outcome in both(tmp_path, bytes(changed(golden("counter"), (f"{VALUE.format(7)}.items#len", 0)))):
        assert_clear(outcome, 6, "_clone_dim_order")


def test_a_value_that_takes_the_place_of_another_shape(tmp_path: Path) -> None:
    for outcome in both(tmp_path, bytes(changed(golden("choice"), (f"{VALUE.format(7)}.sizes[1]", 0)))):
        assert_clear(outcome, 3, "takes the place of a tensor of another type or shape")


def test_mutants_end_alike(tmp_path: Path) -> None:
    """A few of those that scripts/attack --only bounds makes."""
    codes = set()
    for number in range(8):
        folder = tmp_path / str(number)
        folder.mkdir()
        name, data = bounds.mutant(random.Random(f"two sides/{number}"))
        bounds.written_inputs(folder / "in.npz", data, random.Random(number))
        found = both(folder, data, "--inputs", "in.npz")
        assert len({outcome.code for outcome in found}) == 1, (name, [outcome.err for outcome in found])
        codes.add(found[0].code)
    assert len(codes) > 1  # some run, some do not
