"""Cycles of the CPU in a run's record: whole, at their place, and never without what they come from."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.base import resources
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.integration.conftest import FinishedRun
from tests.integration.cpu_cycles.stand_ins import stand_in
from tests.places import GOLDEN_PTE
from tests.records import read, valid
from tests.tables import each

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]

CLOCK = ("--cpu-clock-mhz", "100")
CPU_HZ = 100e6
DELEGATED, ON_THE_CPU = GOLDEN_PTE / "add_u55.pte", GOLDEN_PTE / "softmax.pte"
DELEGATE_PARTS = ["runtime", "copy_in", "driver_start", "interrupt", "driver_stop", "copy_out", "runtime"]
KERNEL_PARTS = ["runtime", "kernel", "runtime"]
# A chain of additions, each of which needs the one before: on every core one cycle each.
ADDITIONS, TURNS = 10, 100
PLANTED = (
    f'asm volatile("movs r1, #{TURNS}\\n1:\\n.rept {ADDITIONS}\\nadds r0, r0, r0\\n.endr\\nsubs r1, #1\\nbne 1b" '
    '::: "r0", "r1", "cc");\n'
)
# Instructions for a character of Arm's runner: it prints its exit code after the character at which the simulator
# stops it, and the processor may or may not get there.
LAST_CHARACTER = 15
CLOCK_READS = 40  # instructions, at most, with which the firmware counts an operator's instructions


def record_of(*arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    sdk_ok(*arguments, "-o", "out", "-q", cwd=cwd, env=env)
    return valid(cwd / "out" / "run.json")


def parts(row: Mapping[str, Any], name: str = "cpu_parts") -> list[str]:
    return [part["part"] for part in row[name]]


def instructions(rows: list[dict[str, Any]], name: str = "") -> int:
    return sum(part["instructions"]["value"] for part in rows if part["part"] == (name or part["part"]))


@pytest.fixture
def record(finished_run: FinishedRun) -> dict[str, Any]:
    """Of a run whose cycles are counted."""
    return read(finished_run(DELEGATED, "--cpu-cycles") / "run.json")


def test_a_delegate_has_its_parts_in_the_order_of_time(record: dict[str, Any]) -> None:
    (delegate,) = record["operators"]
    assert parts(delegate) == DELEGATE_PARTS
    cpu = record["cpu"]
    assert cpu["core"] == "cortex-m55"
    assert {row["source"] for row in (cpu["cycles"], delegate["cpu_cycles"])} == {"modelled"}
    assert cpu["instructions"]["source"] == "counted"
    assert parts(cpu, "outside") == ["start_up", "report", "after"]
    assert 0 < delegate["cpu_cycles"]["value"] <= cpu["cycles"]["value"]
    assert "/cpu/cycles" not in [row["path"] for row in record["unavailable"]]


def test_two_runs_give_the_same(record: dict[str, Any], tmp_path: Path) -> None:
    """The host's clock decides when the firmware's own interrupts it, and that is in no figure of the inference."""
    records = (record, record_of("run", DELEGATED, "--cpu-cycles", cwd=tmp_path))
    first, second = ({**record["cpu"], "outside": None} for record in records)
    assert first == second
    assert records[0]["operators"] == records[1]["operators"]


def test_instructions_agree_with_those_of_the_guests_own_clock(finished_run: FinishedRun) -> None:
    """QEMU's clock under `-icount` and the plugin count the same without knowing of each other."""
    for name in ("softmax", "choice", "counter"):
        folder = finished_run(GOLDEN_PTE / f"{name}.pte", command="profile")
        record = read(folder / "run.json")
        kernels = [row for row in record["operators"] if row["kind"] == "kernel"]
        assert kernels
        for row in kernels:
            assert parts(row) == KERNEL_PARTS
            assert 0 <= row["instructions"]["value"] - instructions(row["cpu_parts"]) <= CLOCK_READS
        profile = valid(folder / "profile.json")
        assert profile["totals"]["cpu"]["cycles"] == record["cpu"]["cycles"]


def test_devices_do_not_change_the_counts(record: dict[str, Any], finished_run: FinishedRun) -> None:
    """With `-icount`, as `profile` has it, QEMU leaves a block at every access to a device; a run does not."""
    profiled = read(finished_run(DELEGATED, command="profile") / "run.json")
    assert record["cpu"]["parts"] == profiled["cpu"]["parts"]
    assert record["operators"][0]["cpu_parts"] == profiled["operators"][0]["cpu_parts"]


def test_a_planted_loop_is_seen_at_its_place(tmp_path: Path) -> None:
    """In the cycles, and in the time."""
    firmware = tmp_path / "firmware"
    shutil.copytree(resources.directory("firmware"), firmware)
    source = firmware / "kernels" / "operators" / "softmax.cpp"
    text = source.read_text(encoding="utf-8")
    place = text.index("{\n", text.index("Status softmax_out(")) + 2
    source.write_text(text[:place] + PLANTED + text[place:], encoding="utf-8")
    env = {"ETHOSU_SDK_FIRMWARE": str(firmware)}
    before = record_of("run", ON_THE_CPU, *CLOCK, cwd=tmp_path)
    after = record_of("run", ON_THE_CPU, *CLOCK, cwd=tmp_path, env=env)
    more = {
        name: instructions(after["cpu"]["parts"], name) - instructions(before["cpu"]["parts"], name)
        for name in ("kernel", "runtime")
    }
    planted = TURNS * (ADDITIONS + 2) + 1
    # The function may also save the registers.
    assert planted <= more["kernel"] <= planted + 6
    assert more["runtime"] == 0
    longer = after["cpu"]["cycles"]["value"] - before["cpu"]["cycles"]["value"]
    assert TURNS * ADDITIONS <= longer <= 1.5 * planted
    for part, later in zip(before["time"]["parts"], after["time"]["parts"], strict=True):
        assert part["what"] == later["what"]
        least = TURNS * ADDITIONS / CPU_HZ if part["what"] == "kernel" else 0
        assert -1e-12 <= later["duration_s"] - part["duration_s"] - least <= least + 20 / CPU_HZ


@pytest.mark.parametrize("missing", ["plugin", "llvm"])
def test_without_what_counts_or_prices_there_is_nothing(missing: str, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "llvm-mca-19").write_text("#!/bin/sh\nexit 1\n")
    (tools / "llvm-mca-19").chmod(0o755)
    env = {
        "plugin": {"ETHOSU_SDK_QEMU_PLUGIN": str(tmp_path / "nowhere.so")},
        "llvm": {"PATH": f"{tools}:/usr/bin:/bin"},
    }[missing]
    record = record_of("run", DELEGATED, "--cpu-cycles", cwd=tmp_path, env=env)
    assert record["cpu"] == {}
    assert not any(name.startswith("cpu_") for row in record["operators"] for name in row)
    (reason,) = (row["reason"] for row in record["unavailable"] if row["path"] == "/cpu/cycles")
    assert {"plugin": "scripts/setup", "llvm": "apt-get install llvm-19"}[missing] in reason


def test_it_is_not_done_unasked(finished_run: FinishedRun) -> None:
    record = read(finished_run(DELEGATED) / "run.json")
    assert record["cpu"] == {}
    (reason,) = (row["reason"] for row in record["unavailable"] if row["path"] == "/cpu/cycles")
    assert "--cpu-cycles" in reason


def test_the_resident_firmware_has_the_same_parts(tmp_path: Path) -> None:
    record = record_of("run", DELEGATED, "--cpu-cycles", "--resident", cwd=tmp_path)
    assert parts(record["operators"][0]) == DELEGATE_PARTS


def test_arms_runner_has_totals_alone(tmp_path: Path) -> None:
    record = record_of("run", DELEGATED, "--cpu-cycles", "--runtime", "executorch", cwd=tmp_path)
    again = record_of("run", DELEGATED, "--cpu-cycles", "--runtime", "executorch", cwd=tmp_path)
    for figure, most in (("instructions", LAST_CHARACTER), ("cycles", 2 * LAST_CHARACTER)):
        once, twice = (row["cpu"]["outside"][0][figure]["value"] for row in (record, again))
        assert once > 1_000_000
        assert abs(once - twice) <= most
    assert record["cpu"].keys() == {"core", "outside"}
    assert parts(record["cpu"], "outside") == ["run"]
    (reason,) = (row["reason"] for row in record["unavailable"] if row["path"] == "/cpu/cycles")
    assert "/cpu/outside" in reason


OwnTool = Callable[[str, str], dict[str, str]]


@pytest.fixture
def own_tool(finished_run: FinishedRun, tmp_path_factory: pytest.TempPathFactory) -> OwnTool:
    """``own_tool(program, script)``: an environment with a stand-in, whose prices are kept apart from others'."""
    finished_run(DELEGATED, "--cpu-cycles")  # the firmware is there

    def made(program: str, script: str) -> dict[str, str]:
        folder = tmp_path_factory.mktemp("bin")
        stand_in(folder / program, Path(str(shutil.which(program))), script)
        return {"PATH": f"{folder}:{os.environ['PATH']}"}

    return made


def price_files() -> set[Path]:
    return set(Path(os.environ["ETHOSU_SDK_CACHE"], "cpu-cycles").glob("*.json"))


@each(
    ("program", "script", "words"),
    [
        ("llvm-mc-19", "exit 1", "llvm-mc-19 did not print every instruction"),
        ("llvm-mca-19", "answer | sed 's/Latency\": [0-9]*/Latency\": -1/'", ">= 0"),
        ("llvm-mca-19", "answer | sed 's/Latency\": [0-9]*/Latency\": 900000/'", "<= 100"),
    ],
    ids=["nothing", "negative", "huge"],
)
def test_a_broken_tool_prices_nothing(
    program: str, script: str, words: str, own_tool: OwnTool, tmp_path: Path
) -> None:
    """It tells its version as the real one does. What it says is not kept, either."""
    before = price_files()
    env = own_tool(program, script)
    outcome = sdk("run", DELEGATED, "--cpu-cycles", "-o", "out", cwd=tmp_path, env=env)
    assert_clear(outcome, 4, words, "llvm-19")
    assert price_files() == before


def test_changed_prices_are_asked_again(own_tool: OwnTool, record: dict[str, Any], tmp_path: Path) -> None:
    """Changed in a bit of each; and a pipe in their place is not waited for."""
    env, before = own_tool("llvm-mca-19", "answer"), price_files()
    first = record_of("run", DELEGATED, "--cpu-cycles", cwd=tmp_path, env=env)
    (prices,) = price_files() - before
    stored = prices.read_bytes()
    try:
        prices.write_bytes(stored.replace(b'"latency":1', b'"latency":3'))
        outcome = sdk_ok("run", DELEGATED, "--cpu-cycles", "-o", "again", cwd=tmp_path, env=env)
        assert "is not as it was stored" in " ".join(outcome.err.split())
        assert prices.read_bytes() == stored
        again = valid(tmp_path / "again" / "run.json")
        assert first["cpu"]["parts"] == again["cpu"]["parts"] == record["cpu"]["parts"]
        prices.unlink()
        os.mkfifo(prices)
        outcome = sdk_ok("run", DELEGATED, "--cpu-cycles", "-o", "out", cwd=tmp_path, env=env, timeout_s=60)
        assert "the CPU's prices are not cached" in " ".join(outcome.err.split())
    finally:
        prices.unlink()
