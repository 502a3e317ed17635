"""Cycles of the CPU in a run's record: whole, at their place, and never without what they come from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk import resources, schema
from tests.integration.cli import sdk
from tests.places import GOLDEN_PTE

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]

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
    outcome = sdk(*arguments, "-o", "out", "-q", cwd=cwd, env=env)
    assert outcome.code == 0, outcome.err
    record: dict[str, Any] = json.loads((cwd / "out" / "run.json").read_text(encoding="utf-8"))
    assert schema.problems(record) == []
    return record


def parts(row: Mapping[str, Any], name: str = "cpu_parts") -> list[str]:
    return [part["part"] for part in row[name]]


def instructions(rows: list[dict[str, Any]], name: str = "") -> int:
    return sum(part["instructions"]["value"] for part in rows if part["part"] == (name or part["part"]))


def test_a_delegate_has_its_parts_in_the_order_of_time(tmp_path: Path) -> None:
    record = record_of("run", DELEGATED, "--cpu-cycles", cwd=tmp_path)
    (delegate,) = record["operators"]
    assert parts(delegate) == DELEGATE_PARTS
    cpu = record["cpu"]
    assert cpu["core"] == "cortex-m55"
    assert {row["source"] for row in (cpu["cycles"], delegate["cpu_cycles"])} == {"modelled"}
    assert cpu["instructions"]["source"] == "counted"
    assert parts(cpu, "outside") == ["start_up", "report", "after"]
    assert 0 < delegate["cpu_cycles"]["value"] <= cpu["cycles"]["value"]
    assert "/cpu/cycles" not in [row["path"] for row in record["unavailable"]]


def test_two_runs_give_the_same(tmp_path: Path) -> None:
    """The host's clock decides when the firmware's own interrupts it, and that is in no figure of the inference."""
    records = [record_of("run", DELEGATED, "--cpu-cycles", cwd=tmp_path) for _ in range(2)]
    first, second = ({**record["cpu"], "outside": None} for record in records)
    assert first == second
    assert records[0]["operators"] == records[1]["operators"]


def test_instructions_agree_with_those_of_the_guests_own_clock(tmp_path: Path) -> None:
    """QEMU's clock under `-icount` and the plugin count the same without knowing of each other."""
    for name in ("softmax", "choice", "counter"):
        folder = tmp_path / name
        folder.mkdir()
        outcome = sdk("profile", GOLDEN_PTE / f"{name}.pte", "-o", "out", "-q", cwd=folder)
        assert outcome.code == 0, outcome.err
        record = json.loads((folder / "out" / "run.json").read_text(encoding="utf-8"))
        kernels = [row for row in record["operators"] if row["kind"] == "kernel"]
        assert kernels
        for row in kernels:
            assert parts(row) == KERNEL_PARTS
            assert 0 <= row["instructions"]["value"] - instructions(row["cpu_parts"]) <= CLOCK_READS
        profile = json.loads((folder / "out" / "profile.json").read_text(encoding="utf-8"))
        assert schema.problems(profile) == []
        assert profile["totals"]["cpu"]["cycles"] == record["cpu"]["cycles"]


def test_devices_do_not_change_the_counts(tmp_path: Path) -> None:
    """With `-icount`, as `profile` has it, QEMU leaves a block at every access to a device; a run does not."""
    run = record_of("run", DELEGATED, "--cpu-cycles", cwd=tmp_path)
    profiled = record_of("profile", DELEGATED, cwd=tmp_path)
    assert run["cpu"]["parts"] == profiled["cpu"]["parts"]
    assert run["operators"][0]["cpu_parts"] == profiled["operators"][0]["cpu_parts"]


def test_a_planted_loop_is_seen_at_its_place(tmp_path: Path) -> None:
    firmware = tmp_path / "firmware"
    shutil.copytree(resources.directory("firmware"), firmware)
    source = firmware / "kernels" / "operators" / "softmax.cpp"
    text = source.read_text(encoding="utf-8")
    place = text.index("{\n", text.index("Status softmax_out(")) + 2
    source.write_text(text[:place] + PLANTED + text[place:], encoding="utf-8")
    before = record_of("run", ON_THE_CPU, "--cpu-cycles", cwd=tmp_path)
    after = record_of(
        "run", ON_THE_CPU, "--cpu-cycles", cwd=tmp_path, env={"ETHOSU_SDK_FIRMWARE": str(firmware)}
    )
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


def test_it_is_not_done_unasked(tmp_path: Path) -> None:
    record = record_of("run", DELEGATED, cwd=tmp_path)
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
