"""The named board: its memories are judged, it is kept, and no option or record of another run is mixed in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import KeptFolder
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.places import GOLDEN_PTE
from tests.records import read, valid

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain, pytest.mark.torch]

# 1600 x 1600 weights, which Sram_Only has in SRAM: beyond the 2 MiB of Corstone-300, within the 4 MiB of SRAM0.
MODEL = """import torch

model = torch.nn.Linear(1600, 1600).eval()
example_inputs = (torch.rand(1, 1600),)
calibration = [example_inputs]
"""
IN_SRAM = ("--system", "alif-e8-hp", "--system-config", "RTSS_HP_SRAM_Only", "--io", "int8")
# The same board with less SRAM than the model takes.
SMALL = """like = "alif-e8-hp"
[memories.SRAM0]
kind = "sram"
size_bytes = 0x20_0000
npu = true
cached = true
read_cycles = 29
write_cycles = 29
cycles_of = "npu"
cpu_wait_cycles = 34.2
"""
# The system that the golden program was compiled for, on a board with clocks.
CLOCKED = (
    'like = "corstone-300-mps3"\nnpu_hz = 250_000_000\n[cpu]\ncore = "cortex-m55"\nclock_hz = 200_000_000\n'
)
ADD = GOLDEN_PTE / "add_u55.pte"


@pytest.fixture(scope="module")
def compiled(kept_folder: KeptFolder) -> Path:
    """The folder with linear.py, its program for the board's SRAM, and a smaller board."""

    def make(folder: Path) -> None:
        (folder / "linear.py").write_text(MODEL, encoding="utf-8")
        (folder / "small.toml").write_text(SMALL, encoding="utf-8")
        sdk_ok("compile", "linear.py", *IN_SRAM, "-o", "out", "-q", cwd=folder)

    return kept_folder("named-board", make, MODEL, SMALL)


@pytest.fixture
def work(compiled: Path, tmp_path: Path) -> Path:
    return shutil.copytree(compiled, tmp_path / "work")


def test_a_program_runs_that_fits_its_board_alone(work: Path) -> None:
    """The board is the program's, without --system; QEMU takes the room, and the page shows the board's memories."""
    sdk_ok("run", "out/linear.pte", "-q", cwd=work)
    record = valid(work / "out" / "run.json")
    memory = record["memory"]
    assert (memory["board"], record["time"]["place"]) == ("alif-e8-hp", "alif-e8-hp")
    uses = {row["role"]: row for row in memory["uses"]}
    assert uses["model"] == {
        "memory": "SRAM0",
        "role": "model",
        "used_bytes": record["model"]["bytes"],
        "size_bytes": 4 << 20,
    }
    assert uses["model"]["used_bytes"] > 2 << 20
    assert uses["code"]["memory"] == "MRAM"
    assert not {"harness", "firmware"} & uses.keys()
    assert "the simulator takes more room for the model" in " ".join(record["notes"])
    assert record["verdict"]["status"] == "pass"
    sdk_ok("report", "out", "-q", cwd=work)
    page = (work / "out" / "report.html").read_text(encoding="utf-8")
    assert "Memories of alif-e8-hp" in page
    assert "SRAM0 used" in page


def test_memories_that_are_not_ours_are_kept(work: Path) -> None:
    words = ("SRAM of corstone-300", "alif-e8-hp has room, but the memories of FVP", "--simulator qemu")
    assert_clear(sdk("run", "out/linear.pte", "--simulator", "fvp", cwd=work), 5, *words)


def test_what_the_board_has_no_room_for_is_refused_before_it_is_executed(work: Path) -> None:
    """The same for a program, a build of it, and a model: that one right after Vela, its files written."""
    words = ("the model does not fit SRAM0 of small", "it has 2,097,152", "compile it again for small")
    assert_clear(sdk("run", "out/linear.pte", "--system", "small.toml", cwd=work), 5, *words)
    assert not (work / "out" / "executor_runner.elf").exists()
    own = ("--system", "small.toml", *IN_SRAM[2:])
    outcome = sdk("run", "linear.py", *own, "-o", "other", cwd=work)
    assert_clear(outcome, 5, *words)
    for late in ("host", "firmware"):
        assert late not in outcome.err.partition("error:")[0]
    check = valid(work / "other" / "linear.compile.json")["check"]
    assert check == {"status": "left-out", "reason": "it does not fit the board"}
    sdk_ok("validate", "other", cwd=work)
    assert_clear(sdk("build", "other/linear.pte", cwd=work), 5, *words)
    sdk_ok("run", "other/linear.pte", "--allow-spill", "-q", cwd=work)
    record = read(work / "other" / "run.json")
    assert record["memory"]["board"] == "small"
    assert any("does not fit SRAM0 of small" in note for note in record["notes"])


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("run", "out/linear.pte", "--target", "ethos-u99"), "--target ethos-u99"),
        (("profile", "out/linear.pte", "--memory-mode", "Shared_Sram"), "--memory-mode Shared_Sram"),
        (("debug", "out/linear.pte", "--quantize", "none"), "--quantize none"),
        (("debug", "out/linear.pte", "--system", "alif-e7-hp"), "--system alif-e7-hp"),
        (("advise", "out/linear.pte", "--system-config", "RTSS_HP_SRAM_MRAM"), "--system-config RTSS_HP"),
        (
            ("generate", "out/linear.pte", "--tokens", "1", "--target", "ethos-u55-64"),
            "--target ethos-u55-64",
        ),
        (("run", "out/linear.pte", "--no-check"), "--no-check"),
        (("run", "out/linear.pte", "--extra-vela-flag=--optimise=Size"), "--extra-vela-flag --optimise=Size"),
    ],
)
def test_no_option_of_compile_is_dropped_beside_a_program(
    compiled: Path, tmp_path: Path, command: tuple[str, ...], words: str
) -> None:
    outcome = sdk(*command, "-o", tmp_path / "out", cwd=compiled)
    assert_clear(outcome, 2, "linear.pte is compiled already, for ethos-u55-256, RTSS_HP_SRAM_Only", words)
    assert not (tmp_path / "out").exists()


def test_options_that_say_what_the_program_is_are_taken(work: Path) -> None:
    same = ("--target", "ethos-u55-256", "--memory-mode", "Sram_Only", "--quantize", "int8", "--io", "int8")
    sdk_ok("run", "out/linear.pte", *same, "--simulator", "host", "-q", cwd=work)


def test_a_later_run_knows_what_the_first_knew(tmp_path: Path) -> None:
    """Board, clocks and counts of a run of which the program knows none; pages of the first go."""
    (tmp_path / "clocked.toml").write_text(CLOCKED, encoding="utf-8")
    sdk_ok("profile", ADD, "--system", "clocked.toml", "-o", "out", "-q", cwd=tmp_path)
    sdk_ok("report", "out", "-q", cwd=tmp_path)
    before = read(tmp_path / "out" / "run.json")
    (tmp_path / "clocked.toml").unlink()
    sdk_ok("run", ADD, "-o", "out", "-q", cwd=tmp_path)
    after = valid(tmp_path / "out" / "run.json")
    for key in ("time", "priced", "memory", "cpu"):
        assert after[key] == before[key]
    assert after["time"]["place"] == after["memory"]["board"] == "clocked"
    left = {path.name for path in (tmp_path / "out").iterdir()}
    assert not left & {"profile.json", "profile.csv", "report.html"}
    sdk_ok("validate", "out", cwd=tmp_path)


def test_the_harness_is_not_the_models(tmp_path: Path) -> None:
    outcome = sdk_ok("build", ADD, "-o", "out", cwd=tmp_path)
    assert "of corstone-300, without the harness" in outcome.out
    sdk_ok("run", ADD, "-o", "out", "-q", cwd=tmp_path)
    memory = read(tmp_path / "out" / "run.json")["memory"]
    in_ddr = {row["role"]: row["used_bytes"] for row in memory["uses"] if row["memory"] == "DDR"}
    (whole,) = (row["used_bytes"] for row in memory["regions"] if row["name"] == "DDR")
    assert in_ddr.pop("harness") == 1 << 20
    assert in_ddr["model"] == ADD.stat().st_size
    assert sum(in_ddr.values()) + (1 << 20) <= whole
    assert f"{sum(in_ddr.values()):,}" in outcome.out
