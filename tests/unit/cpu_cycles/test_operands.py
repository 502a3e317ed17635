"""Registers of instructions, by the architecture: Armv8-M Architecture Reference Manual (DDI 0553)."""

from __future__ import annotations

import pytest

from ethosu_sdk.cpu_cycles.pipeline.operands import FLAGS, P0, Operands, operands_of

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


@pytest.mark.parametrize(("text", "expected"), CASES.items())
def test_operands_are_the_architectures(text: str, expected: Operands) -> None:
    assert operands_of(text) == expected
