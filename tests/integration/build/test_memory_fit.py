"""The largest model that a memory holds, and one that is a byte larger: on the command line and on both boards.

The program is `x + x` on an Ethos-U85 in memory mode Sram_Only (tests/golden/pte); bytes behind it, which the
firmware carries and digests like any other, make it as large as wanted.
"""

import re
import shlex
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from ethosu_sdk.base import npz
from tests import own_qemu
from tests.integration.cli import Outcome, sdk, sdk_ok
from tests.places import GOLDEN_PTE
from tests.records import printed, read

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

GOLDEN = GOLDEN_PTE / "add_u85_segment.pte"
SRAM_ORIGIN = 0x31000000
SRAM_BYTES = {"corstone-300": 2 << 20, "corstone-320": 4 << 20}  # the FVPs'
SCRATCH_BYTES = 64  # of this program
X = np.array([1, -2, 3, (1 << 30) - 1, 0], np.int32)
TWICE = np.array([2, -4, 6, 2147483646, 0], np.int32)


@dataclass(frozen=True)
class Bench:
    """A folder with inputs and the outputs that they must give, and a board to try programs on."""

    board: str
    folder: Path
    environment: dict[str, str]

    @property
    def sram_bytes(self) -> int:
        return SRAM_BYTES[self.board]

    @property
    def largest(self) -> int:
        return self.sram_bytes - SCRATCH_BYTES

    def sdk(self, command: str, *words: str | Path) -> Outcome:
        return sdk(command, *words, "--board", self.board, cwd=self.folder, env=self.environment)

    def run(self, program: Path, *options: str) -> Outcome:
        given = ("--simulator", "qemu", "--inputs", "x.npz", "--expect", "twice.npz", "-o", "out", "--json")
        return self.sdk("run", program, *options, *given)


@pytest.fixture(params=SRAM_BYTES)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    npz.write_npz(tmp_path / "x.npz", {"input0": X})
    npz.write_npz(tmp_path / "twice.npz", {"output0": TWICE})
    return Bench(request.param, tmp_path, own_qemu.environment(request.param, request))


def program_of(size_bytes: int, folder: Path) -> Path:
    data = GOLDEN.read_bytes()
    path = folder / f"add_{size_bytes}.pte"
    path.write_bytes(data + b"\xa5" * (size_bytes - len(data)))
    return path


def test_the_largest_model_builds_and_runs(bench: Bench) -> None:
    """Its sections fill the memory to the last byte: nothing larger could be linked."""
    outcome = bench.run(program_of(bench.largest, bench.folder))
    record = printed(outcome)
    assert (record["status"], record["board"]) == ("pass", bench.board)
    with (bench.folder / "out" / "executor_runner.elf").open("rb") as stream:
        elf = ELFFile(stream)
        model, scratch = (elf.get_section_by_name(name).header for name in (".model", ".scratch"))
    assert (model.sh_addr, model.sh_size) == (SRAM_ORIGIN, bench.largest)
    assert scratch.sh_addr + scratch.sh_size == SRAM_ORIGIN + bench.sram_bytes
    sram = next(row for row in record["memory"]["regions"] if row["name"] == "SRAM")
    assert sram["used_bytes"] == sram["size_bytes"] == bench.sram_bytes


ONE_TOO_MANY = {  # model, sum, size of the memory
    "corstone-300": ("2,097,089", "2,097,168", "2,097,152"),
    "corstone-320": ("4,194,241", "4,194,320", "4,194,304"),
}


def test_one_byte_more_is_refused_with_the_arithmetic_and_what_would_fit(bench: Bench) -> None:
    path = program_of(bench.largest + 1, bench.folder)
    outcome = bench.sdk("build", path, "-o", "out")
    assert outcome.code == 5
    model, total, size = ONE_TOO_MANY[bench.board]
    assert (
        f"the model does not fit SRAM of {bench.board} in memory mode Sram_Only: model {model} + scratch 64 + "
        f"alignment 15 = {total} bytes, but it has {size} (16 too many)"
    ) in outcome.err
    assert "--memory-mode Shared_Sram" in outcome.err
    assert "--allow-spill" in outcome.err
    other = bench.board == "corstone-300"
    assert ("--board corstone-320, whose SRAM has 4,194,304 bytes" in " ".join(outcome.err.split())) == other
    assert not (bench.folder / "out" / "build.json").exists()
    assert not list((bench.folder / "out").glob("executor_runner.*"))
    (line,) = (row.removeprefix("try: ") for row in outcome.err.splitlines() if row.startswith("try: "))
    sdk_ok(*shlex.split(line)[1:], cwd=bench.folder)


def test_spilling_is_a_wish_and_the_record_tells_of_it(bench: Bench) -> None:
    outcome = bench.run(program_of(bench.largest + 1, bench.folder), "--allow-spill")
    record = printed(outcome)
    assert any("traffic figures are not those of Sram_Only" in note for note in record["notes"])
    built = read(bench.folder / "out" / "build.json")
    homes = {row["name"]: row["region"] for row in built["memory"]["pools"]}
    assert (homes["model"], homes["scratch"]) == ("DDR", "SRAM")


DDR_BYTES = 256 << 20  # of both boards


@pytest.mark.parametrize("board", SRAM_BYTES)
@pytest.mark.parametrize("command", ["build", "run"])
def test_too_much_planned_memory_is_refused_with_the_sum_of_ddr(
    board: str, command: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Planned memory is what a decoder's caches make large; here the file's one figure of it is forged."""
    data = (GOLDEN_PTE / "softmax.pte").read_bytes()
    planned, large = (struct.pack("<q", size) for size in (320, 300 << 20))
    assert data.count(planned) == 1
    (tmp_path / "large.pte").write_bytes(data.replace(planned, large))
    environment = own_qemu.environment(board, request)
    refused = sdk(command, "large.pte", "--board", board, "-o", "out", cwd=tmp_path, env=environment)
    assert refused.code == 5
    message = f"the planned does not fit DDR of {board}: "
    sums = refused.err.partition(message)[2].partition("too many)")[0]
    assert sums, refused.err
    terms, total, size, excess = re.fullmatch(
        r"(.*) = ([\d,]+) bytes, but it has ([\d,]+) \(([\d,]+) ", " ".join(sums.split()) + " "
    ).groups()  # type: ignore[union-attr]
    rows = {name: _number(value) for name, value in (row.rsplit(" ", 1) for row in terms.split(" + "))}
    assert rows["planned"] == 300 << 20
    assert rows["model"] == len(data)
    assert sum(rows.values()) == _number(total)
    assert _number(size) == DDR_BYTES
    assert _number(total) - DDR_BYTES == _number(excess) > 0
    assert "a shorter context or caches in int8" in " ".join(refused.err.split())
    assert not list((tmp_path / "out").glob("executor_runner.*"))


def _number(text: str) -> int:
    return int(text.replace(",", ""))
