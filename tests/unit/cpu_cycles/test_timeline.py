"""From segments to what the processor did, part by part."""

from __future__ import annotations

import numpy as np
import pytest

from ethosu_sdk.cpu_cycles.blocks import Block
from ethosu_sdk.cpu_cycles.counts import BlockCounts, Segment
from ethosu_sdk.cpu_cycles.timeline import Span, spans

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
    found = spans(counts, [0.5] * len(names))
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


def test_the_clocks_interrupt_in_the_npus_returns_to_it() -> None:
    names = ["", "operator", "wait", "interrupt", "clock", "back", "back", "driver_stop"]
    counts = counts_of([(name, {0: 1}) for name in names], (NOP,))
    parts = [row.part for row in spans(counts, [1.0])]
    assert parts == ["start_up", "runtime", "wait", "interrupt", "clock", "interrupt", "wait", "driver_stop"]


POLL = bytes.fromhex("00bf 9369 002b fbd0")  # nop; ldr r3, [r2, #24]; cmp r3, #0; beq to the nop
CHASE = bytes.fromhex("1b68 002b fcd1")  # ldr r3, [r3]; cmp r3, #0; bne to the ldr: walks through a list
COUNT = bytes.fromhex("1368 013b fcd1")  # ldr r3, [r2]; subs r3, #1; bne to the ldr
ONCE = bytes.fromhex("00bf 9369 002b fcd0")  # the same as POLL, to the instruction behind its start


@pytest.mark.parametrize(("code", "works"), [(POLL, False), (CHASE, True), (COUNT, True), (ONCE, True)])
def test_polling_is_waiting(code: bytes, works: bool) -> None:
    counts = counts_of([("", {0: 1})], (code,))
    assert counts.works().tolist() == [works]


def test_waiting_costs_nothing() -> None:
    codes = (NOP, NOP + WFI, NOP + WFE, STOP, STOP + NOP)
    counts = counts_of([("", dict.fromkeys(range(5), 1000))], codes)
    assert spans(counts, [2.0] * 5) == [Span(None, "start_up", 3000, 4000.0)]
