"""NPU_OP_BRANCH of Ethos-U85: taken, not taken, loops that end and loops that do not, targets that do not exist."""

import time

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.npu import machine
from ethosu_sdk.npu.errors import BranchError, BusError, CommandError, UnsupportedCommand
from ethosu_sdk.npu.machine import Machine
from tests.tables import each
from tests.unit.npu.machine import U55_128, U85_256, place, run, taken
from tests.unit.npu.streams import (
    DMA_START,
    ELEMENTWISE,
    NO_STORAGE,
    STOP,
    UNSCALED_85,
    Setting,
    branch,
    feature_map,
    ofm,
    one,
    precision,
    stream,
    transfer,
)

ADD, SUB, GT = 1, 2, 19
COUNTER, FLAG, TRAIL = 0x100, 0x200, 0x300
SHAPE = (1, 1, 1)
Scratch = NDArray[np.uint8]


def with_scalar(mode: int, source: int, target: int, scalar: int, bits: int = 8) -> bytes:
    """`target` = `source` (mode) scalar, for one element."""
    registers: dict[str, Setting] = {
        **feature_map("IFM", source, SHAPE, bits),
        **feature_map("IFM2", 0, SHAPE, bits),
        **ofm(target, SHAPE, bits, 1 << 8),
        "IFM2_PRECISION": precision(bits, extra=NO_STORAGE),
        "IFM_BROADCAST": 0,
        "IFM2_BROADCAST": 8,
        "OP_SCALAR": scalar,
        **UNSCALED_85,
        "ACTIVATION": 1 << 12,  # no clip
        "ACC_FORMAT": 0,
    }
    return stream((registers, ELEMENTWISE, mode), stop=False)


def mark(number: int) -> bytes:
    """Adds one to byte `number` of the trail."""
    return with_scalar(ADD, TRAIL + number, TRAIL + number, 1)


def on_u85(data: bytes, scratch: Scratch) -> Machine:
    return run(data, scratch, config=U85_256)


def trail(scratch: Scratch, count: int = 4) -> list[int]:
    return taken(scratch, TRAIL, count, "<i1")


def test_a_branch_without_a_condition_is_taken() -> None:
    head, skipped, rest = mark(0), mark(1), mark(2)
    scratch = place()
    target = len(head) + 8 + len(skipped)
    ran = on_u85(head + branch(target) + skipped + rest + STOP, scratch)
    assert trail(scratch) == [1, 0, 1, 0]
    assert ran.position == target + len(rest) + 4
    # What was carried out, in order; not what was jumped over.
    assert [row.offset for row in ran.trace] == [len(head) - 4, target + len(rest) - 4]


@pytest.mark.parametrize(("flag", "jumps"), [(1, True), (-1, True), (64, True), (0, False)])
def test_a_condition_is_whether_the_last_result_is_not_zero(flag: int, jumps: bool) -> None:
    head = with_scalar(ADD, FLAG, FLAG + 1, 0)
    skipped, rest = mark(1), mark(2)
    scratch = place((FLAG, np.array([flag], np.int8)))
    target = len(head) + 8 + len(skipped)
    ran = on_u85(head + branch(target, True) + skipped + rest + STOP, scratch)
    assert trail(scratch) == ([0, 0, 1, 0] if jumps else [0, 1, 1, 0])
    assert len(ran.trace) == (2 if jumps else 3)


def test_comparisons_decide() -> None:
    """IF x > 5."""
    for x, expected in ((6, [0, 0, 1, 0]), (5, [0, 1, 1, 0])):
        head = with_scalar(GT, FLAG, FLAG + 1, 5)
        skipped, rest = mark(1), mark(2)
        scratch = place((FLAG, np.array([x], np.int8)))
        on_u85(head + branch(len(head) + 8 + len(skipped), True) + skipped + rest + STOP, scratch)
        assert trail(scratch) == expected


@pytest.mark.parametrize("rounds", [1, 2, 7, 100])
def test_a_loop_counts_down_through_memory(rounds: int) -> None:
    body = mark(0) + with_scalar(SUB, COUNTER, COUNTER, 1)
    scratch = place((COUNTER, np.array([rounds], np.int8)))
    start = time.process_time()
    ran = on_u85(body + branch(0, True) + STOP, scratch)
    assert trail(scratch) == [rounds, 0, 0, 0]
    assert taken(scratch, COUNTER, 1, "<i1") == [0]
    assert len(ran.trace) == 2 * rounds
    assert ran.position == len(body) + 8 + 4
    until_first_command = 2 * 500  # read latencies of the commands' memory
    assert ran.counters.total_cycles == until_first_command + sum(row.total_cycles for row in ran.trace)
    assert time.process_time() - start < 10


def test_a_loop_of_two_branches() -> None:
    """WHILE as Vela writes it: to the body if true, else, without condition, behind it; from the body back."""
    condition = with_scalar(GT, COUNTER, FLAG, 0)
    body = mark(0) + with_scalar(SUB, COUNTER, COUNTER, 1)
    body_at = len(condition) + 16
    behind = body_at + len(body) + 8
    data = condition + branch(body_at, True) + branch(behind) + body + branch(0) + mark(1) + STOP
    for rounds in (0, 1, 3):
        scratch = place((COUNTER, np.array([rounds], np.int8)))
        on_u85(data, scratch)
        assert trail(scratch) == [rounds, 1, 0, 0]


def test_only_registers_on_the_way_are_set() -> None:
    """Nothing is set behind the branch: the operation there is the one before, once more."""
    head = mark(0)
    scratch = place()
    on_u85(head + branch(len(head) + 8 + 4) + one(ELEMENTWISE, SUB) + one(ELEMENTWISE, ADD) + STOP, scratch)
    assert trail(scratch) == [2, 0, 0, 0]
    head = mark(0)
    moved = stream(({"OFM_BASE0": TRAIL + 3}, ELEMENTWISE, ADD), stop=False)
    scratch = place()
    on_u85(head + branch(len(head) + 8 + len(moved)) + moved + one(ELEMENTWISE, ADD) + STOP, scratch)
    assert trail(scratch) == [2, 0, 0, 0]


def test_commands_run_with_the_registers_of_the_way_that_led_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operation that the loop comes back to has no SET before it: each round it has the registers left over."""
    head = with_scalar(ADD, FLAG, TRAIL, 1)
    again = one(ELEMENTWISE, ADD)
    body = again + with_scalar(SUB, COUNTER, COUNTER, 2)
    data = head + body + branch(len(head), True) + STOP
    scratch = place((COUNTER, np.array([3], np.int8)))
    # Round 1: `again` repeats `head`, COUNTER is 1. From then on, `again` adds 2 to COUNTER: 3, and the loop ends
    # never. Without what was left over it would end after two rounds.
    monkeypatch.setattr(machine, "_MOST_STEPS", 500)
    with pytest.raises(UnsupportedCommand, match="steps"):
        on_u85(data, scratch)
    assert taken(scratch, COUNTER, 1, "<i1") == [1]
    assert trail(scratch) == [1, 0, 0, 0]


def test_endless_loops_end_soon_by_their_work(monkeypatch: pytest.MonkeyPatch) -> None:
    head = with_scalar(ADD, FLAG, FLAG + 1, 1)
    start = time.process_time()
    with pytest.raises(UnsupportedCommand, match="steps") as raised:
        on_u85(head + branch(0, True) + STOP, place())
    assert raised.value.name == "NPU_OP_BRANCH"
    assert time.process_time() - start < 60
    with pytest.raises(UnsupportedCommand, match="steps"):
        on_u85(branch(0) + STOP, place())
    # Fifty operations in each round: what counts is the work, not the branches.
    monkeypatch.setattr(machine, "_MOST_STEPS", 500)
    scratch = place()
    with pytest.raises(UnsupportedCommand, match="more than 500 steps") as raised:
        on_u85(with_scalar(ADD, COUNTER, COUNTER, 1, 32) * 50 + branch(0) + STOP, scratch)
    assert raised.value.name == "NPU_OP_BRANCH"
    assert taken(scratch, COUNTER, 1, "<i4") == [500]


@each("beyond", [0, 4, 1 << 20, (1 << 32) - 1 - 200])
@each("conditional", [False, True])
def test_targets_outside_are_branch_errors(beyond: int, conditional: bool) -> None:
    head = with_scalar(ADD, FLAG, FLAG + 1, 1)
    length = len(head) + 8 + 4
    with pytest.raises(BranchError) as raised:
        on_u85(head + branch(length + beyond, conditional) + STOP, place())
    assert raised.value.offset == len(head)
    assert isinstance(raised.value, CommandError)


@pytest.mark.parametrize("target", [1, 2, 3, 5])
def test_targets_inside_a_word_are_branch_errors(target: int) -> None:
    with pytest.raises(BranchError):
        on_u85(branch(target) + one(0x012) * 4 + STOP, place())


def test_only_what_was_done_on_the_way_counts() -> None:
    head = with_scalar(ADD, FLAG, FLAG + 1, 0)
    scratch = place()
    ran = on_u85(head + branch(1 << 20, True) + mark(1) + STOP, scratch)
    assert trail(scratch) == [0, 1, 0, 0]
    assert len(ran.trace) == 2
    copy = transfer((1, 0x400), (1, 0x500), 8)
    head = with_scalar(ADD, FLAG, FLAG + 1, 1) + stream((copy, DMA_START, 0), stop=False)
    skipped = mark(1)
    scratch = place()
    on_u85(head + branch(len(head) + 8 + len(skipped), True) + skipped + STOP, scratch)
    assert trail(scratch) == [0, 0, 0, 0]
    data = one(0x001, 0x0100) + branch(4 + 8 + 4) + one(0x001, 0x0200) + one(0x000, 0x8001)
    assert on_u85(data, place()).irq_mask == 0x8101


def test_a_target_inside_a_command_is_decoded_from_there() -> None:
    """The second word of a command may be any command: hardware cannot tell."""
    hidden = int.from_bytes(STOP, "little")
    data = branch(8 + 4) + stream(({"OP_SCALAR": hidden}, 0x012, 0), stop=False) + one(0x106)
    assert on_u85(data, place()).position == 16
    with pytest.raises(CommandError):
        on_u85(branch(8 + 4) + stream(({"OP_SCALAR": 0x106}, 0x012, 0)), place())


def two_elements() -> bytes:
    registers: dict[str, Setting] = {
        **feature_map("IFM", FLAG, (1, 1, 2), 8),
        **ofm(FLAG, (1, 1, 2), 8, 1 << 8),
    }
    return with_scalar(ADD, FLAG, FLAG, 1) + stream((registers, ELEMENTWISE, ADD), stop=False)


@pytest.mark.parametrize("head", [b"", two_elements()])
def test_a_condition_needs_a_single_result(head: bytes) -> None:
    """Before the first operation and behind one with more results, nobody knows what decides."""
    with pytest.raises(UnsupportedCommand, match="single result") as raised:
        on_u85(head + branch(0, True) + STOP, place())
    assert (raised.value.name, raised.value.offset) == ("NPU_OP_BRANCH", len(head))
    scratch = place()
    on_u85(head + branch(len(head) + 8) + STOP, scratch)  # without a condition it goes on


def test_what_fails_behind_a_branch_names_its_own_place() -> None:
    head = mark(0)
    bad = stream(({"OFM_REGION": 6}, ELEMENTWISE, ADD), stop=False)
    scratch = place()
    with pytest.raises(BusError):
        on_u85(head + branch(len(head) + 8) + bad + STOP, scratch)
    assert trail(scratch) == [1, 0, 0, 0]  # what came before is done
    with pytest.raises(CommandError) as raised:
        on_u85(head + branch(len(head) + 8) + one(0x106), scratch)
    assert raised.value.offset == len(head) + 8


def test_streams_without_a_stop_or_for_ethos_u55_are_errors() -> None:
    with pytest.raises(SdkError):
        on_u85(branch(8), place())
    with pytest.raises(CommandError, match="NPU_OP_STOP"):
        on_u85(branch(8) + one(0x012), place())
    with pytest.raises(CommandError, match="at byte 0"):
        run(branch(8) + STOP, place(), config=U55_128)
