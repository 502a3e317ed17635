"""The time of an inference: whole, in order, on the clocks asked for, and never without what it comes from."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli import sdk, sdk_ok
from tests.integration.conftest import FinishedRun
from tests.places import GOLDEN_PTE
from tests.records import read, valid

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]
Record = dict[str, Any]

DELEGATED, ON_THE_CPU = GOLDEN_PTE / "add_u55.pte", GOLDEN_PTE / "softmax.pte"
CLOCK = ("--cpu-clock-mhz", "100")
# The option's; core_clock of Ethos_U55_High_End_Embedded in Vela's own vela.ini.
CPU_HZ, NPU_HZ = 100e6, 500e6
# As a board of the user's: its own clocks, the system that the golden program was compiled for.
BOARD = (
    'like = "corstone-300-mps3"\nnpu_hz = 250_000_000\n[cpu]\ncore = "cortex-m55"\nclock_hz = 200_000_000\n'
)
# Pooling by a stride above 3 is no operator of an Ethos-U55: there are two delegates.
TWO = """import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Conv2d(3, 8, 3), torch.nn.Conv2d(8, 8, 3)

    def forward(self, x):
        return self.last(torch.nn.functional.avg_pool2d(self.first(x), 7, 7))

model = Model().eval()
example_inputs = (torch.rand(1, 3, 40, 40),)
"""


def record_of(
    *arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None, name: str = "run"
) -> Record:
    sdk_ok(*arguments, "-o", "out", cwd=cwd, env=env)
    return valid(cwd / "out" / f"{name}.json")


def assert_whole(time: Record) -> None:
    """No gap, no overlap, and the sums are those of the parts."""
    end = 0.0
    for part in time["parts"]:
        assert part["start_s"] == pytest.approx(end, rel=1e-12)
        end = part["start_s"] + part["duration_s"]
    total = time["total"]
    assert total["duration_s"] == pytest.approx(end, rel=1e-12)
    assert sum(time["sums"].values()) == pytest.approx(end)
    assert sum(time["shares"].values()) == pytest.approx(100)
    assert total["least_s"] < total["duration_s"] < total["most_s"]


def reason(record: Record) -> str:
    (found,) = (row["reason"] for row in record["unavailable"] if row["path"] == "/time")
    return str(found)


def test_it_is_the_cycles_of_both_processors_by_their_clocks(finished_run: FinishedRun) -> None:
    record = read(finished_run(DELEGATED, *CLOCK) / "run.json")
    time = record["time"]
    assert_whole(time)
    cpu_s, npu_s = record["cpu"]["cycles"]["value"] / CPU_HZ, record["npu"]["cycles"]["value"] / NPU_HZ
    assert time["sums"]["npu_s"] == pytest.approx(npu_s)
    assert time["total"]["duration_s"] == pytest.approx(cpu_s + npu_s)
    assert time["clocks"]["cpu"] == {"hz": CPU_HZ, "source": "--cpu-clock-mhz"}
    assert time["clocks"]["npu"]["hz"] == NPU_HZ
    names = [part["what"] for part in time["parts"]]
    assert names[names.index("npu") - 1 :][:3] == ["driver_start", "npu", "interrupt"]
    assert names.count("npu") == 1


def test_a_faster_cpu_shortens_its_parts_alone(finished_run: FinishedRun) -> None:
    slow, fast = (
        read(finished_run(DELEGATED, "--cpu-clock-mhz", mhz) / "run.json")["time"] for mhz in ("100", "400")
    )
    for before, after in zip(slow["parts"], fast["parts"], strict=True):
        assert before["what"] == after["what"]
        ratio = 1 if before["on"] == "NPU" else 4
        assert before["duration_s"] == pytest.approx(ratio * after["duration_s"])


def test_a_board_profile_gives_both_clocks_and_its_name(tmp_path: Path) -> None:
    (tmp_path / "my-board.toml").write_text(BOARD)
    outcome = sdk_ok("profile", DELEGATED, "--system", "my-board.toml", "-v", "-o", "out", cwd=tmp_path)
    assert " on my-board (modelled, " in outcome.out
    (rate,) = re.findall(r"([\d,.]+) inferences/s", outcome.out)  # of CPU and NPU, none of the NPU alone
    run, profile = (read(tmp_path / "out" / f"{name}.json") for name in ("run", "profile"))
    for record in (run, profile):
        assert record["priced"]["compiled_for"]
        time = record["time"]
        assert_whole(time)
        assert {name: row["hz"] for name, row in time["clocks"].items()} == {"cpu": 200e6, "npu": 250e6}
    assert profile["time"]["parts"] == run["time"]["parts"]
    assert float(rate.replace(",", "")) == pytest.approx(1 / run["time"]["total"]["duration_s"], abs=0.06)
    estimate = next(row["value"] for row in profile["totals"]["npu"]["cycles"] if row["source"] == "modelled")
    assert profile["time"]["sums"]["npu_s"] == pytest.approx(estimate / 250e6)
    engines = profile["time"]["engines"]
    assert engines["weight_decoder_percent"] == 0  # an addition has no weights
    assert 0 < engines["memory_percent"] <= 100
    span = profile["time"]["total"]["duration_s"] * 250e6
    assert engines["active_cycles"] + engines["idle_cycles"] == pytest.approx(span, abs=1)
    assert engines["active_cycles"] == estimate
    # Two operands of 24 bytes and a sum, in beats of 8 bytes.
    assert profile["memories"][0]["bursts"] == [
        {"direction": "read", "bytes": 24, "count": 2},
        {"direction": "write", "bytes": 24, "count": 1},
    ]


def test_a_board_with_the_cpus_memories_has_its_waits(tmp_path: Path) -> None:
    """softmax moves 4 x 10 floats from SRAM and to it: 10 lines of 34.2 cycles. Its code comes from MRAM, 93.1
    cycles a line. At another clock than the profile's, nobody knows the waits."""
    outcome = sdk_ok("run", ON_THE_CPU, "--system", "alif-e8-hp", "-v", "-o", "out", cwd=tmp_path)
    assert "(code in MRAM, constants in MRAM, arena in SRAM0)" in " ".join(outcome.out.split())
    record = read(tmp_path / "out" / "run.json")
    time = record["time"]
    assert_whole(time)
    moved = {part["part"]: part["moved"] for part in record["cpu"]["parts"]}
    assert moved["kernel"]["arena_bytes"] == 2 * 4 * 10 * 4
    lines = {name: row["code_bytes"] // 32 for name, row in moved.items()}
    (kernel,) = (part for part in time["parts"] if part["what"] == "kernel")
    assert kernel["waits_s"] == pytest.approx((10 * 34.2 + lines["kernel"] * 93.1) / 400e6)
    assert time["waits"]["duration_s"] == pytest.approx((10 * 34.2 + sum(lines.values()) * 93.1) / 400e6)
    assert time["total"]["most_s"] == pytest.approx(time["total"]["duration_s"] / 0.8)

    shutil.copy(ON_THE_CPU, tmp_path / "out")
    profile = record_of("profile", "out", "--system", "alif-e8-hp", cwd=tmp_path, name="profile")
    assert profile["time"]["waits"] == time["waits"]
    faster = record_of(
        "profile", "out", "--system", "alif-e8-hp", "--cpu-clock-mhz", "500", cwd=tmp_path, name="profile"
    )
    slower = record_of("profile", "out", *CLOCK, cwd=tmp_path, name="profile")
    for other in (faster, slower):
        assert "waits" not in other["time"]
        (why,) = (row["reason"] for row in other["unavailable"] if row["path"] == "/time/waits")
        assert "another clock than the profile" in why
        assert other["time"]["total"]["most_s"] == pytest.approx(other["time"]["total"]["duration_s"] / 0.35)


def test_another_system_is_no_headline(tmp_path: Path) -> None:
    """The user's board has other memories than the program was compiled for."""
    (tmp_path / "slow.toml").write_text(
        BOARD.replace("[cpu]", '[systems]\nSlow = ["Shared_Sram"]\n[cpu]')
        + "[system_configs.Slow]\ncore_clock = 500e6\naxi0_port = 'Sram'\naxi1_port = 'OffChipFlash'\n"
        "Sram_clock_scale = 0.1\nSram_read_latency = 500\nOffChipFlash_clock_scale = 0.1\n"
    )
    outcome = sdk_ok("run", DELEGATED, "--system", "slow.toml", "-o", "out", cwd=tmp_path)
    (row,) = (row for row in outcome.out.splitlines() if row.startswith("time "))
    assert row.endswith("for Slow, not the system you compiled for")


def test_two_delegates_and_an_operator_between(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(TWO)
    record = record_of("run", "two.py", "--as-written", *CLOCK, cwd=tmp_path)
    time = record["time"]
    assert_whole(time)
    jobs = [place for place, part in enumerate(time["parts"]) if part["on"] == "NPU"]
    assert len(jobs) == 2
    between = time["parts"][jobs[0] + 1 : jobs[1]]
    kernels = [part["name"] for part in between if part["what"] == "kernel"]
    assert any("avg_pool2d" in name for name in kernels)
    assert time["sums"]["cpu_between_npu_s"] == pytest.approx(sum(part["duration_s"] for part in between))
    assert [time["parts"][place]["duration_s"] for place in jobs] == pytest.approx(
        [row["npu_cycles"]["value"] / NPU_HZ for row in record["operators"] if row["kind"] == "delegate"]
    )


@pytest.mark.parametrize("missing", ["plugin", "llvm", "clock", "cpu-cycles"])
def test_without_its_parts_there_is_no_time_in_any_record(
    missing: str, finished_run: FinishedRun, tmp_path: Path
) -> None:
    env, words = {
        "plugin": ({"ETHOSU_SDK_QEMU_PLUGIN": str(tmp_path / "nowhere.so")}, "scripts/setup"),
        "llvm": ({"PATH": f"{tmp_path}:/usr/bin:/bin"}, "llvm-19"),
        "clock": ({}, "the CPU's clock is not known: --system NAME or --cpu-clock-mhz"),
        "cpu-cycles": ({}, "--cpu-cycles"),
    }[missing]
    (tmp_path / "llvm-mca-19").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "llvm-mca-19").chmod(0o755)
    if missing == "cpu-cycles":
        records = [read(finished_run(DELEGATED) / "run.json")]
    else:
        clock = () if missing == "clock" else CLOCK
        records = [record_of("profile", DELEGATED, *clock, cwd=tmp_path, env=env, name="profile")]
        records.append(read(tmp_path / "out" / "run.json"))
    for record in records:
        assert "time" not in record
        assert words in reason(record)


def test_timing_adapters_belong_to_no_board(tmp_path: Path) -> None:
    record = record_of("run", DELEGATED, *CLOCK, "--memory-timing", "executorch", cwd=tmp_path)
    assert "time" not in record
    assert "timing adapters" in reason(record)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--cpu-clock-mhz", "0"), 2, "--cpu-clock-mhz"),
        (("--cpu-clock-mhz", "nan"), 2, "--cpu-clock-mhz"),
        (("--system", "alif-e8"), 2, "did you mean 'alif-e8-h"),
        (("--system", "alif-e8-hp"), 2, "alif-e8-hp has no ethos-u55-128"),
        (("--system", "bad.toml"), 3, "bad.toml"),
        (("--system", "absent.toml"), 3, "absent.toml"),
    ],
)
def test_what_cannot_be_priced(arguments: tuple[str, ...], code: int, words: str, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[cpu]\nclock_hz = -1\n")
    outcome = sdk("run", DELEGATED, *arguments, "-o", "out", cwd=tmp_path)
    assert outcome.code == code
    assert words in " ".join(outcome.err.split())
    assert "Traceback" not in outcome.err


@pytest.mark.torch
def test_mobilenet_v2_on_alif_ensemble_e8(tmp_path: Path) -> None:
    """Published, for Cortex-M55 and Ethos-U55-256 at 400 MHz: a method's execution takes about 19 ms
    (pytorch/executorch, docs/source/zephyr_alif_tutorial.md), of which quantize_per_tensor has 1,365,831 cycles (the
    same network in Arm's learning path, CMSIS-NN with Helium); the rest is the NPU's. The firmware's kernel is
    faster: it waits for the same memory, and converts one block while it moves another."""
    method_s, quantize_s = 19e-3, 1_365_831 / 400e6
    record = record_of("run", "zoo:mobilenet_v2", "--system", "alif-e8-hp", cwd=tmp_path)
    assert record["priced"]["compiled_for"]
    time = record["time"]
    assert_whole(time)
    assert time["place"] == "alif-e8-hp"
    assert time["sums"]["npu_s"] == pytest.approx(method_s - quantize_s, rel=0.15)
    name = "quantized_decomposed::quantize_per_tensor.out"
    assert time["largest"]["name"] == name
    (quantize,) = (part for part in time["parts"] if part.get("name") == name)
    assert 0.7 * quantize_s < quantize["duration_s"] < quantize_s
    assert time["total"]["duration_s"] == pytest.approx(method_s, rel=0.20)
