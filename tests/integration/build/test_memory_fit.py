"""The largest model that a memory holds, and one that is a byte larger: on the command line and on the board.

The program is `x + x` on an Ethos-U85 in memory mode Sram_Only (tests/golden/pte); bytes behind it, which the
firmware carries and digests like any other, make it as large as wanted.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from ethosu_sdk import npz, schema
from tests.integration.cli import sdk
from tests.places import GOLDEN_PTE

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

GOLDEN = GOLDEN_PTE / "add_u85_segment.pte"
SRAM_ORIGIN, SRAM_BYTES = 0x31000000, 2 << 20  # Corstone-300, the FVP's
SCRATCH_BYTES = 64  # of this program
LARGEST = SRAM_BYTES - SCRATCH_BYTES
X = np.array([1, -2, 3, (1 << 30) - 1, 0], np.int32)
TWICE = np.array([2, -4, 6, 2147483646, 0], np.int32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    npz.write_npz(tmp_path / "x.npz", {"input0": X})
    npz.write_npz(tmp_path / "twice.npz", {"output0": TWICE})
    return tmp_path


def program_of(size_bytes: int, folder: Path) -> Path:
    data = GOLDEN.read_bytes()
    path = folder / f"add_{size_bytes}.pte"
    path.write_bytes(data + b"\xa5" * (size_bytes - len(data)))
    return path


def test_the_largest_model_builds_and_runs(folder: Path) -> None:
    """Its sections fill the memory to the last byte: nothing larger could be linked."""
    path = program_of(LARGEST, folder)
    options = ("--inputs", "x.npz", "--expect", "twice.npz", "-o", "out", "--json")
    outcome = sdk("run", path, *options, cwd=folder)
    assert outcome.code == 0, outcome.err
    record = json.loads(outcome.out)
    assert record["status"] == "pass"
    with (folder / "out" / "executor_runner.elf").open("rb") as stream:
        elf = ELFFile(stream)
        model, scratch = (elf.get_section_by_name(name).header for name in (".model", ".scratch"))
    assert (model.sh_addr, model.sh_size) == (SRAM_ORIGIN, LARGEST)
    assert scratch.sh_addr + scratch.sh_size == SRAM_ORIGIN + SRAM_BYTES
    sram = next(row for row in record["memory"]["regions"] if row["name"] == "SRAM")
    assert sram["used_bytes"] == sram["size_bytes"] == SRAM_BYTES


def test_one_byte_more_is_refused_with_the_arithmetic_and_what_would_fit(folder: Path) -> None:
    path = program_of(LARGEST + 1, folder)
    outcome = sdk("build", path, "--board", "corstone-300", "-o", "out", cwd=folder)
    assert outcome.code == 5
    assert (
        "the model does not fit SRAM of corstone-300 in memory mode Sram_Only: model 2,097,089 + scratch 64 + "
        "alignment 15 = 2,097,168 bytes, but it has 2,097,152 (16 too many)"
    ) in outcome.err
    assert "--memory-mode Shared_Sram" in outcome.err
    assert "--allow-spill" in outcome.err
    assert not (folder / "out" / "build.json").exists()
    assert not list((folder / "out").glob("executor_runner.*"))
    (line,) = (row.removeprefix("try: ") for row in outcome.err.splitlines() if row.startswith("try: "))
    again = sdk(*shlex.split(line)[1:], cwd=folder)
    assert again.code == 0, again.err


def test_spilling_is_a_wish_and_the_record_tells_of_it(folder: Path) -> None:
    path = program_of(LARGEST + 1, folder)
    options = ("--allow-spill", "--inputs", "x.npz", "--expect", "twice.npz", "-o", "out", "--json")
    outcome = sdk("run", path, *options, cwd=folder)
    assert outcome.code == 0, outcome.err
    record = json.loads(outcome.out)
    assert schema.problems(record) == []
    assert any("traffic figures are not those of Sram_Only" in note for note in record["notes"])
    built = json.loads((folder / "out" / "build.json").read_text(encoding="utf-8"))
    homes = {row["name"]: row["region"] for row in built["memory"]["pools"]}
    assert (homes["model"], homes["scratch"]) == ("DDR", "SRAM")


@pytest.mark.parametrize(
    ("name", "options", "message", "instead"),
    [
        (
            "add_u85_segment",
            ("run", "--board", "corstone-320"),
            "qemu cannot run corstone-320",
            "--simulator fvp",
        ),
        (
            "add_u55",
            ("build", "--board", "corstone-320"),
            "corstone-320 has no ethos-u55",
            "--board corstone-300",
        ),
        ("add_u55", ("build", "--board", "corstone-310"), "corstone-310", "did you mean"),
    ],
)
def test_a_board_that_cannot_be_is_a_usage_error(
    name: str, options: tuple[str, ...], message: str, instead: str, tmp_path: Path
) -> None:
    command, *rest = options
    outcome = sdk(command, GOLDEN.with_name(f"{name}.pte"), *rest, "-o", "out", cwd=tmp_path)
    assert outcome.code == 2
    assert message in outcome.err
    assert instead in outcome.err
