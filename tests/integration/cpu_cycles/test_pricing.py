"""The price list: instruction timings and loops that others published, and blocks of every form."""

from __future__ import annotations

import os
import stat
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from ethosu_sdk.base import cache, tools
from ethosu_sdk.base.errors import ToolError, UsageError
from ethosu_sdk.simulate import cpu_cycles, llvm_figures
from ethosu_sdk.simulate.block_counts import Block
from tests.integration.cpu_cycles.assembler import assemble
from tests.integration.cpu_cycles.stand_ins import stand_in
from tests.tables import each

pytestmark = pytest.mark.toolchain

M55, M85 = "cortex-m55", "cortex-m85"
BOTH = (M55, M85)


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> object:
    with cache.elsewhere(tmp_path_factory.mktemp("cache")):
        yield


def block(text: str, start: int = 0x1000, executions: int = 100) -> Block:
    code = assemble(text)
    return Block(start, start + len(code), text.count(";") + 1, code, executions)


def turn(text: str, core: str, end: str = "le") -> float:
    """Cycles of one turn of the low-overhead loop with the body `text`."""
    size = len(assemble(text))
    body = block(f"{text}; {end} lr, #-{size + 4}")
    return cpu_cycles.cycles_of([body], core)[0]


# Cycles of one turn of a loop whose instructions wait for each other: the sum of their latencies. These are those of
# Arm's Software Optimization Guides (Cortex-M55: 102692, Cortex-M85: 107950), as SLOTHY's public models have them
# (github.com/slothy-optimizer/slothy, targets/arm_v81m).
CHAINS = [
    ("vadd.i32 q0, q1, q2; vadd.i32 q1, q0, q2", BOTH, 4),  # one unit, two cycles each: no overlap
    ("vadd.i32 q0, q1, q2; vmul.i32 q1, q0, q2", BOTH, 3),  # 1 + 2
    ("vmul.i32 q0, q1, q2; vmul.i32 q1, q0, q2", BOTH, 4),  # 2 + 2
    ("vqrdmulh.s32 q0, q1, q2; vshr.s32 q1, q0, #3", BOTH, 3),  # 2 + 1
    ("vrshl.s32 q0, q1, q2; vmul.i32 q1, q0, q2", BOTH, 4),  # 2 + 2
    ("vmul.f32 q0, q1, q2; vadd.f32 q1, q0, q2", (M55,), 4),  # 2 + 2
    ("vmul.f32 q0, q1, q2; vadd.f32 q1, q0, q2", (M85,), 5),  # 3 + 2
    ("vfma.f32 q0, q1, q2; vadd.f32 q1, q0, q2", (M55,), 4),  # 2 + 2
    ("add.w r0, r1, r2; eor.w r1, r0, r2", BOTH, 2),  # 1 + 1
    ("mul r0, r1, r2; mul r1, r0, r2", BOTH, 4),  # 2 + 2
    (
        "eor.w r0, r1, r2; eor.w r1, r2, r0, lsl #3",
        (M85,),
        3,
    ),  # the shifted operand is wanted a cycle earlier
    ("ldrd r0, r1, [r2]; add.w r2, r1, r3", (M55,), 3),  # 2 + 1
    ("ldr.w r0, [r0]; nop.w", (M55,), 2),  # a chain of pointers
]


@pytest.mark.parametrize(("text", "cores", "expected"), CHAINS)
def test_latencies_are_those_of_arms_guides(text: str, cores: tuple[str, ...], expected: int) -> None:
    assert [turn(text, core) for core in cores] == [expected] * len(cores)


# Cycles of one turn where no result is waited for.
THROUGHPUTS = [
    ("vldrb.u8 q1, [r1], #16; vldrb.u8 q2, [r5], #16", BOTH, 4),  # one load path of 64 bits
    ("vldrb.u8 q1, [r1], #16; vmul.i32 q2, q3, q4", BOTH, 2),  # beats of two units overlap
    ("vldrw.u32 q1, [r1], #16; vstrw.32 q2, [r2], #16", (M55,), 4),  # one path for both
    ("vldrw.u32 q1, [r1], #16; vstrw.32 q2, [r2], #16", (M85,), 2),  # one each
    ("ldrd r0, r1, [r2]; ldrd r3, r4, [r2]", BOTH, 2),
    ("add.w r0, r4, r5; add.w r1, r4, r5; add.w r2, r4, r5; add.w r3, r4, r5", (M55,), 4),
    ("add.w r0, r4, r5; add.w r1, r4, r5; add.w r2, r4, r5; add.w r3, r4, r5", (M85,), 2),
    # ARMScheduleM55.td: two 16-bit instructions of which one is a move, ADD, SUB or extension
    ("movs r0, #1; ands r1, r2; movs r3, #1; ands r4, r2", (M55,), 2),
    ("ands r0, r2; ands r1, r2; ands r4, r2; ands r3, r2", (M55,), 4),
]


@pytest.mark.parametrize(("text", "cores", "expected"), THROUGHPUTS)
def test_throughputs_are_those_of_the_cores(text: str, cores: tuple[str, ...], expected: int) -> None:
    assert [turn(text, core) for core in cores] == [expected] * len(cores)


@pytest.mark.parametrize("core", BOTH)
def test_int8_products_of_four_rows_take_ten_cycles_a_turn(core: str) -> None:
    """Arm-Examples/Helium-Optimization: CMSIS-NN's matrix product takes 10 cycles a turn on Cortex-M55."""
    rows = zip(("r4", "r6", "r8", "r10"), ("r1", "r5", "r7", "r9"), ("q1", "q2", "q3", "q4"), strict=True)
    products = "; ".join(f"vldrb.u8 {q}, [{p}], #16; vmlava.s8 {a}, q0, {q}" for a, p, q in rows)
    text = f"vaddva.s8 r2, q0; {products}; vldrb.u8 q0, [r0], #16"
    assert turn(text, core) == 10
    assert turn(text, core, end="letp") == 10


@pytest.mark.parametrize("core", BOTH)
def test_registers_of_a_list_count(core: str) -> None:
    two, eight = (
        cpu_cycles.cycles_of([block(f"push {registers}; nop")], core)[0]
        for registers in ("{r4, r5}", "{r4, r5, r6, r7, r8, r9, r10, r11}")
    )
    assert eight - two == 3  # two registers a cycle


@pytest.mark.parametrize("core", BOTH)
def test_divisions_stop_the_pipeline(core: str) -> None:
    """Cortex-M33 TRM: 2 to 11 cycles; LLVM has 7 for Cortex-M85, and for Cortex-M55 the least, 2."""
    assert 6 <= turn("udiv r0, r1, r2; sdiv r3, r4, r5", core) / 2 <= 8


def test_ends_of_low_overhead_loops_cost_nothing_and_branches_do() -> None:
    body = "add.w r0, r0, r1; add.w r2, r2, r1"
    size = len(assemble(body))
    loop, branch = block(f"{body}; le lr, #-{size + 4}"), block(f"{body}; bne #-{size + 4}")
    last = replace(block("nop", start=branch.end), executions=1)
    assert cpu_cycles.cycles_of([loop], M55)[0] == 2
    taken = cpu_cycles.cycles_of([branch, last], M55)[0]
    assert 4.9 < taken <= 5  # the branch, and the refill 99 times in a hundred


def test_a_branch_that_is_never_taken_costs_no_refill() -> None:
    start = block("cmp r0, #0; beq #64")
    after = block("nop", start=start.end, executions=100)
    seldom = replace(after, executions=0)
    assert cpu_cycles.cycles_of([start, after], M55)[0] == 2
    assert cpu_cycles.cycles_of([start, seldom], M55)[0] == 4
    predicted = cpu_cycles.cycles_of([start, after], M85)[0]
    half = cpu_cycles.cycles_of([start, replace(after, executions=50)], M85)[0]
    assert half - predicted == pytest.approx(3.5)  # wrong at most half of the time, 7 cycles each


def test_predicated_instructions_are_priced_like_others() -> None:
    """An instruction's price does not depend on the IT or VPT block that it stands in."""
    plain = llvm_figures.figures_of(
        list(llvm_figures.split_instructions(assemble("add r0, r1; vadd.i32 q0, q1, q2"))),
        llvm_figures.core_of(M85),
    )
    inside = llvm_figures.figures_of(
        list(llvm_figures.split_instructions(assemble("it eq; addeq r0, r1; vpst; vaddt.i32 q0, q1, q2"))),
        llvm_figures.core_of(M85),
    )
    assert all(inside[encoding] == row for encoding, row in plain.items())
    assert {row.text for row in inside.values()} > {"it eq", "vpst"}
    assert all(row.units for row in inside.values() if row.text == "vpst")


@pytest.mark.parametrize("core", BOTH)
def test_code_that_llvm_does_not_know_counts_a_cycle_an_instruction(core: str) -> None:
    unknown = bytes.fromhex("ffffffff")
    code = unknown + assemble("add.w r0, r1, r2")
    (cycles,) = cpu_cycles.cycles_of([Block(0, len(code), 2, code, 1)], core)
    assert cycles == 2


def test_warnings_of_llvm_leave_every_known_instruction_its_figures() -> None:
    """llvm-mc writes its lines in blocks and its warnings at once: mixed, a warning would cut a line."""
    known = [struct.pack("<HH", 0xF240 | number >> 12, number & 0xFF) for number in range(256)]  # movw r0
    unknown = [struct.pack("<HH", 0xFFFF, 0xFF00 | number) for number in range(256)]
    mixed = [encoding for pair in zip(known, unknown, strict=True) for encoding in pair]
    found = llvm_figures.figures_of(mixed, llvm_figures.core_of(M55))
    assert [found[encoding].text for encoding in known] == [f"movw r0, #{number}" for number in range(256)]
    assert not any(found[encoding].text for encoding in unknown)


@pytest.mark.parametrize("code", [b"", b"\x00", b"\x00\xf0\x01"])
def test_cut_code_is_no_error(code: bytes) -> None:
    assert cpu_cycles.cycles_of([Block(0, len(code), 1, code, 1)], M55) in ([0.0], [1.0])


def test_other_cores_are_refused() -> None:
    with pytest.raises(UsageError, match="cortex-m33"):
        cpu_cycles.cycles_of([block("nop")], "cortex-m33")


def test_a_loop_end_alone_is_no_error(tmp_path: Path) -> None:
    with cache.elsewhere(tmp_path):  # nothing else is asked for, and llvm-mca has no figures for it
        assert cpu_cycles.cycles_of([block("letp lr, #-44")], M55) == [0.0]


def test_prices_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    some = block("vmla.i32 q0, q1, r5; vhadd.s8 q0, q1, q2")
    with cache.elsewhere(tmp_path):
        first = cpu_cycles.cycles_of([some], M85)

        def refuse(*_: object) -> None:
            raise AssertionError("LLVM was asked again")

        monkeypatch.setattr(llvm_figures, "figures_of", refuse)
        assert cpu_cycles.cycles_of([some], M85) == first
        with pytest.raises(AssertionError, match="asked again"):
            cpu_cycles.cycles_of([block("vhsub.s8 q0, q1, q2")], M85)


def test_a_damaged_cache_is_made_again(tmp_path: Path) -> None:
    some = block("vhadd.s8 q0, q1, q2")
    with cache.elsewhere(tmp_path):
        first = cpu_cycles.cycles_of([some], M85)
        for path in tmp_path.rglob("*.json"):
            path.write_text("{")
        assert cpu_cycles.cycles_of([some], M85) == first


_ANSWERS = [
    ("llvm-mc-19", "exit 0", "every instruction"),
    ("llvm-mc-19", "exit 3", "exit status 3"),
    ("llvm-mc-19", "echo garbage; exit 1", "every instruction"),
    ("llvm-mc-19", "answer | head -n 3", "every instruction"),
    ("llvm-mc-19", "answer | grep -v vhadd", "every instruction"),
    ("llvm-mc-19", "answer | sed 's/\\[0x/[0x1/'", "every instruction"),
    ("llvm-mc-19", "answer | sed 's/vhadd.s8.*@/gibberish @/'", "llvm-mca-19 did not answer"),
    ("llvm-mca-19", "exit 0", "did not answer"),
    ("llvm-mca-19", "echo '{}'", "did not answer"),
    ("llvm-mca-19", "echo '[1, 2'", "did not answer"),
    ("llvm-mca-19", "answer | sed 's/Latency\": [0-9]*/Latency\": NaN/'", "did not answer"),
    ("llvm-mca-19", "answer | sed 's/Latency\": [0-9]*/Latency\": 1.5/'", "did not answer"),
    ("llvm-mca-19", "answer | sed 's/Usage\": [0-9]*/Usage\": 1e300/'", "did not answer"),
    ("llvm-mca-19", "answer | sed 's/ResourceIndex\": [0-9]*/ResourceIndex\": 99/'", "did not answer"),
    ("llvm-mca-19", 'answer | sed \'s/Name": "0"/Name": "1"/\'', "did not answer"),
    ("llvm-mca-19", "answer | sed 's/vhadd/vadd/'", "did not answer"),
    ("llvm-mca-19", 'answer | sed \'s/CPUName": .*/CPUName": "x",/\'', "did not answer"),
]


@each(("program", "script", "words"), _ANSWERS)
def test_answers_that_are_no_figures_are_refused(
    program: str, script: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stand-ins of broken tools: they tell their version, and then something else."""
    some = block("vhadd.s8 q0, q1, q2")
    real = tools.require(program).path
    assert real is not None
    stand_in(tmp_path / program, real, script)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    tools.probe.cache_clear()
    try:
        with cache.elsewhere(tmp_path / "cache"), pytest.raises(ToolError, match=words):
            cpu_cycles.cycles_of([some], M85)
        assert {path.name for path in (tmp_path / "cache").rglob("*.json")} <= {"versions.json"}
    finally:
        tools.probe.cache_clear()


def test_without_llvm_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    tools.probe.cache_clear()
    try:
        with pytest.raises(ToolError) as found:
            cpu_cycles.cycles_of([block_without_assembler()], M55)
        assert "llvm-19" in found.value.hint
    finally:
        tools.probe.cache_clear()


def block_without_assembler() -> Block:
    return Block(0, 2, 1, b"\x00\xbf", 1)


@pytest.mark.timeout(60)
def test_nobody_waits_for_a_pipe_in_place_of_the_price_list(tmp_path: Path) -> None:
    with cache.elsewhere(tmp_path):
        cycles = turn("add.w r0, r1, r2", M55)
        (place,) = tmp_path.glob("cpu-cycles/*.json")
        place.unlink()
        os.mkfifo(place)
        assert turn("add.w r0, r1, r2", M55) == cycles
        assert stat.S_ISFIFO(place.stat().st_mode)
