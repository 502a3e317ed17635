"""What the processor did, part by part; its waits for memory; the registers of instructions."""

import numpy as np
import pytest

from ethosu_sdk.simulate.block_counts import Block, BlockCounts, Segment
from ethosu_sdk.simulate.cpu_cycles import LineWaits, MovedBytes, Span, spans_of, wait_cycles
from ethosu_sdk.simulate.cpu_pipeline import FLAGS, P0, Operands, operands_of
from tests.tables import each

NOP, WFI, WFE, STOP = b"\x00\xbf", b"\x30\xbf", b"\x20\xbf", b"\xfe\xe7"  # Armv8-M ARM, T1


def counts_of(segments: list[tuple[str, dict[int, int]]], codes: tuple[bytes, ...]) -> BlockCounts:
    """Segments by name with executions of the blocks that have `codes`."""
    found = tuple(
        Segment(name, np.array([*ran], np.int64), np.array([*ran.values()], np.int64))
        for name, ran in segments
    )
    sums = [sum(ran.get(place, 0) for _, ran in segments) for place in range(len(codes))]
    blocks = tuple(
        Block(place * 100, place * 100 + len(code), len(code) // 2, code, total)
        for place, (code, total) in enumerate(zip(codes, sums, strict=True))
    )
    return BlockCounts(blocks, found)


def test_an_inference_with_a_kernel_and_a_delegate() -> None:
    """Every mark in the order in which the firmware passes them; block n runs in segment n, n + 1 times."""
    names = [
        "",
        *("operator", "kernel", "runtime", "report"),
        *("operator", "copy_in", "driver_start", "wait", "interrupt", "back", "driver_stop", "report"),
        *("copy_out", "runtime", "report"),
        *("operator", "end"),
    ]
    counts = counts_of([(name, {n: n + 1}) for n, name in enumerate(names)], (NOP * 3,) * len(names))
    found = spans_of(counts, [0.5] * len(names))
    assert [(row.operator, row.part) for row in found] == [
        (None, "start_up"),
        (0, "runtime"),
        (0, "kernel"),
        (0, "runtime"),
        (None, "report"),
        (1, "runtime"),
        (1, "copy_in"),
        (1, "driver_start"),
        (1, "wait"),
        (1, "interrupt"),
        (1, "wait"),
        (1, "driver_stop"),
        (None, "report"),
        (1, "copy_out"),
        (1, "runtime"),
        (None, "report"),
        (2, "runtime"),
        (None, "after"),
    ]
    assert [row.instructions for row in found] == [3 * (n + 1) for n in range(len(names))]
    assert [row.cycles for row in found] == [(n + 1) / 2 for n in range(len(names))]


def test_waits_and_interrupts_within_interrupts() -> None:
    names = ["", "operator", "wait", "interrupt", "clock", "back", "back", "driver_stop"]
    counts = counts_of([(name, {0: 1}) for name in names], (NOP,))
    parts = [row.part for row in spans_of(counts, [1.0])]
    assert parts == ["start_up", "runtime", "wait", "interrupt", "clock", "interrupt", "wait", "driver_stop"]
    codes = (NOP, NOP + WFI, NOP + WFE, STOP, STOP + NOP)
    counts = counts_of([("", dict.fromkeys(range(5), 1000))], codes)
    assert spans_of(counts, [2.0] * 5) == [Span(None, "start_up", 3000, 4000.0)]


POLL = bytes.fromhex("00bf 9369 002b fbd0")  # nop; ldr r3, [r2, #24]; cmp r3, #0; beq to the nop
CHASE = bytes.fromhex("1b68 002b fcd1")  # ldr r3, [r3]; cmp r3, #0; bne to the ldr: walks through a list
COUNT = bytes.fromhex("1368 013b fcd1")  # ldr r3, [r2]; subs r3, #1; bne to the ldr
ONCE = bytes.fromhex("00bf 9369 002b fcd0")  # the same as POLL, to the instruction behind its start


@pytest.mark.parametrize(("code", "works"), [(POLL, False), (CHASE, True), (COUNT, True), (ONCE, True)])
def test_polling_is_waiting(code: bytes, works: bool) -> None:
    counts = counts_of([("", {0: 1})], (code,))
    assert counts.works().tolist() == [works]


# --- Waits for memory, against arithmetic by hand.

WORK = (MovedBytes(constant_bytes=100, arena_bytes=64), MovedBytes(code_bytes=33, arena_bytes=32))


def test_each_line_is_moved_once_and_tightly_coupled_memory_never_waits() -> None:
    assert wait_cycles(WORK, LineWaits()) == 0
    assert wait_cycles(WORK, LineWaits(code=7, constants=18, arena=5)) == 2 * 7 + 4 * 18 + (2 + 1) * 5
    assert wait_cycles(WORK, LineWaits(arena=5)) == 3 * 5


def test_code_is_fetched_where_it_first_runs_in_an_inference() -> None:
    """Blocks of 64, 32 and 4 bytes; the second lies in the first, the third in two lines. What ran before the
    inference, in the clock's interrupt, or while the firmware reports, does not count."""
    places = ((0x1000, 64), (0x1020, 32), (0x203E, 4))
    blocks = tuple(Block(start, start + size, size // 2, bytes(size), 3) for start, size in places)
    ran = [("", [0]), ("operator", [1]), ("clock", [0, 2]), ("back", []), ("kernel", [0, 2]), ("report", [2])]
    ran += [("runtime", [0]), ("end", [1])]
    segments = tuple(
        Segment(name, np.array(places, np.int64), np.ones(len(places), np.int64)) for name, places in ran
    )
    found = spans_of(BlockCounts(blocks, segments), [1.0] * len(blocks))
    assert [row.code_bytes for row in found] == [0, 32, 0, 0, 32 + 64, 0, 0, 0]


# --- Registers of instructions, by the architecture: Armv8-M Architecture Reference Manual (DDI 0553).

Q = {number: tuple(range(32 + 4 * number, 36 + 4 * number)) for number in range(8)}
SP, LR, PC = 13, 14, 15

CASES = {
    "add.w r0, r1, r2": Operands(written=(0,), values=(1, 2)),
    "adds r0, r1, #3": Operands(written=(0, FLAGS), values=(1,)),
    "adds r0, #4": Operands(written=(0, FLAGS), values=(0,)),  # the first operand is also the result
    "add r0, r1": Operands(written=(0,), values=(1, 0)),
    "movs r0, #4": Operands(written=(0, FLAGS)),
    "movt r0, #4": Operands(written=(0,), values=(0,)),  # keeps the low half
    "cmp r0, r1": Operands(written=(FLAGS,), values=(0, 1)),
    "beq #-20": Operands(values=(FLAGS,)),
    "bx lr": Operands(values=(LR,)),
    "eor.w r1, r2, r0, lsl #3": Operands(written=(1,), values=(2, 0), shifted=(0,)),
    "mla r3, r6, r2, r7": Operands(written=(3,), values=(6, 2), accumulators=(7,)),
    "smull r0, r1, r2, r3": Operands(written=(0, 1), values=(2, 3)),
    "smlal r0, r1, r2, r3": Operands(written=(0, 1), values=(2, 3), accumulators=(0, 1)),
    "ldr r0, [r1, r2, lsl #2]": Operands(written=(0,), addresses=(1, 2)),
    "ldr r0, [r1], #4": Operands(written=(0,), bases=(1,), addresses=(1,)),
    "ldrd r0, r1, [r2, #8]!": Operands(written=(0, 1), bases=(2,), addresses=(2,)),
    "ldr r0, [pc, #8]": Operands(written=(0,), addresses=(PC,)),
    "str r0, [r1, #4]": Operands(addresses=(1,), stored=(0,)),
    "push {r4, r5, lr}": Operands(bases=(SP,), addresses=(SP,), stored=(4, 5, LR)),
    "pop {r4, pc}": Operands(written=(4, PC), bases=(SP,), addresses=(SP,)),
    "ldm r0!, {r1, r2}": Operands(written=(1, 2), bases=(0,), addresses=(0,)),
    "vldrb.u8 q1, [r1], #16": Operands(written=Q[1], bases=(1,), addresses=(1,)),
    "vldrw.u32 q0, [r1, q2]": Operands(written=Q[0], addresses=(1, *Q[2])),  # a gather
    "vstrw.32 q1, [r2]": Operands(addresses=(2,), stored=Q[1]),
    "vmlava.s8 r4, q0, q1": Operands(written=(4,), values=Q[0] + Q[1], accumulators=(4,)),
    "vaddva.s8 r4, q0": Operands(written=(4,), values=Q[0], accumulators=(4,)),
    "vaddv.s8 r4, q0": Operands(written=(4,), values=Q[0]),
    "vfma.f32 q0, q1, q2": Operands(written=Q[0], values=Q[1] + Q[2], accumulators=Q[0]),
    "vmovnb.i32 q0, q1": Operands(written=Q[0], values=Q[1] + Q[0]),  # keeps the other half of each lane
    "vmov r0, r1, d0": Operands(written=(0, 1), values=(32, 33)),
    "vmov s3, r0": Operands(written=(35,), values=(0,)),  # the last lane of q0
    "vcmp.s32 gt, q2, r0": Operands(written=(P0,), values=(*Q[2], 0)),
    "vpsel q0, q1, q2": Operands(written=Q[0], values=(*Q[1], *Q[2], P0)),
    "dls lr, r3": Operands(written=(LR,), values=(3,)),
    "nop": Operands(),
    "": Operands(),
}


@each(("text", "expected"), CASES.items())
def test_operands_are_the_architectures(text: str, expected: Operands) -> None:
    assert operands_of(text) == expected
