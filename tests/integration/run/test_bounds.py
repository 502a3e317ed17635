"""Files of some kilobytes that ask for more than any machine has: refused by name, or ended when the time is over.

Every command runs in a process of its own. None may take more than 2 GiB, whatever it is given.
"""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest

from tests.integration.cli import COMMAND
from tests.integration.hostile import MOST_BYTES, Watched, added, delegating, rows, shared_bytes, watched
from tests.places import GOLDEN_PTE
from tests.pte_files import changed, golden
from tests.unit.npu.streams import DMA_START, STOP, one, stream

HOST = ("--simulator", "host")
MIB = 1 << 20
ARENA = "execution_plan[0].non_const_buffer_sizes[1]"
SIZES = "execution_plan[0].values[{}].val.sizes[{}]"
HOUR = stream(*[added((1 << 12, 1 << 12, 1))] * 5000)  # work for an hour, in scratch memory of 16 MiB


def assert_refused(outcome: Watched, code: int, *words: str) -> None:
    """One clear error of that code, in little memory."""
    assert outcome.code == code, outcome.err
    assert outcome.err.count("error: ") == 1
    assert "Traceback" not in outcome.err
    assert "internal error" not in outcome.err
    for word in words:
        assert word in outcome.err, outcome.err
    assert outcome.peak_bytes < MOST_BYTES, outcome.peak_bytes


def large_softmax(path: Path, side: int, arena: int) -> Path:
    """The golden softmax with inputs and outputs of `side` x `side` float32, at `path`."""
    changes = [(SIZES.format(value, axis), side) for value in (0, 1) for axis in (0, 1)]
    offsets = [
        (f"execution_plan[0].values[{value}].val.allocation_info.memory_offset_low", 0) for value in (0, 1)
    ]
    path.write_bytes(changed(golden("softmax"), (ARENA, arena), *changes, *offsets))
    return path


@pytest.mark.parametrize("command", ["inspect", "build", "run"])
def test_an_arena_of_a_tebibyte(command: str, tmp_path: Path) -> None:
    path = tmp_path / "net.pte"
    path.write_bytes(changed(golden("softmax"), (ARENA, 1 << 40)))
    outcome = watched(command, path, cwd=tmp_path)
    assert_refused(outcome, 3, "plans 1,099,511,627,776 bytes of memory", "at most 4,294,967,296")


@pytest.mark.parametrize("simulator", ["host", "qemu"])
def test_inputs_of_gigabytes_are_not_made(simulator: str, tmp_path: Path) -> None:
    """32768 x 32768 float32 are 4 GiB; 30000 x 30000, within the limit of the format, a little less."""
    outcome = watched(
        "run",
        large_softmax(tmp_path / "net.pte", 30000, 3_600_000_000),
        "--simulator",
        simulator,
        cwd=tmp_path,
    )
    assert_refused(outcome, 3, "3,600,000,000 bytes of", "the limit is 536,870,912")
    outcome = watched("inspect", large_softmax(tmp_path / "net.pte", 32769, 1 << 32), cwd=tmp_path)
    assert_refused(outcome, 3, "more than 4 GiB")


def test_an_arena_of_the_host(tmp_path: Path) -> None:
    """What no board has, but an address space would: only where no firmware's plan refuses it."""
    path = tmp_path / "net.pte"
    path.write_bytes(changed(golden("softmax"), (ARENA, 4_000_000_000)))
    outcome = watched("run", path, *HOST, cwd=tmp_path)
    assert_refused(outcome, 3, "4,000,000,000 bytes of planned memory", "the limit is 536,870,912")


@pytest.mark.torch
def test_scratch_memory_of_gigabytes(tmp_path: Path) -> None:
    program = delegating(tmp_path / "net.pte", stream(added((1, 1, 20))), (1 << 32) - 16)
    outcome = watched("run", program, *HOST, cwd=tmp_path)
    assert_refused(outcome, 3, "4,294,967,280 bytes of scratch memory", "the limit is 536,870,912")


@pytest.mark.torch
@pytest.mark.parametrize(
    "commands",
    [
        pytest.param(HOUR, id="elementwise"),
        pytest.param(stream(*[rows(64, 60000, 1 << 20)] * 5000), id="rows of DMA"),
    ],
)
def test_the_host_simulator_keeps_the_time(commands: bytes, tmp_path: Path) -> None:
    program = delegating(tmp_path / "net.pte", commands, 16 * MIB)
    outcome = watched("run", program, *HOST, "--timeout", "1", cwd=tmp_path)
    assert_refused(outcome, 6, "the time limit was reached", "hint: --timeout gives it more time")
    assert (
        outcome.cpu_s < 60
    )  # most of it for the host runner, the first time; the work itself would take an hour


@pytest.mark.qemu
@pytest.mark.toolchain
def test_qemu_keeps_the_time_within_a_job(tmp_path: Path) -> None:
    """One operation that takes longer than the time: memory is asked for once."""
    one_operation = stream(rows(1, 60000, 1 << 20), *[added((1 << 10, 1 << 12, 1))] * 2000)
    program = delegating(tmp_path / "net.pte", one_operation, 1 << 22)
    outcome = watched("run", program, "--allow-spill", "--timeout", "1", cwd=tmp_path)
    assert_refused(outcome, 6, "the time limit was reached during an NPU job")


@pytest.mark.torch
def test_a_row_of_64_mebibytes(tmp_path: Path) -> None:
    program = delegating(tmp_path / "net.pte", stream(added((1, 1 << 13, 1 << 13))), 64 * MIB)
    outcome = watched("run", program, *HOST, cwd=tmp_path)
    assert_refused(outcome, 6, "a row that takes 67,108,864 elements at once")


@pytest.mark.torch
def test_more_operations_than_any_model_has(tmp_path: Path) -> None:
    commands = stream(rows(1, 1, 0), stop=False) + one(DMA_START) * (1 << 17) + STOP
    outcome = watched("run", delegating(tmp_path / "net.pte", commands, 64), *HOST, cwd=tmp_path)
    assert_refused(outcome, 6, "more than 65,536 operations")


@pytest.mark.torch
def test_an_interrupt_reaches_a_job(tmp_path: Path) -> None:
    program = delegating(tmp_path / "net.pte", HOUR, 16 * MIB)
    argv = [COMMAND, "run", str(program), "-v", *HOST]
    with subprocess.Popen(argv, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as command:
        assert command.stderr is not None
        assert any("building the host runner" in line for line in command.stderr)
        time.sleep(3)
        assert command.poll() is None
        command.send_signal(signal.SIGINT)
        assert command.wait(timeout=30) == 130


NPZ = {
    "--inputs": ("input0", "holds 1,000,000 inferences, but the limit of a run is 65,536"),
    "--expect": ("output0", "holds 1,000,000 inferences, but the limit of a run is 65,536"),
}


@pytest.mark.parametrize("option", NPZ)
def test_an_archive_of_too_many_inferences(option: str, tmp_path: Path) -> None:
    """Some kilobytes that inflate to megabytes: five numbers each, an object for every one of them."""
    name, words = NPZ[option]
    archive = shared_bytes(tmp_path / "many.npz", (name,), (1_000_000, 5))
    outcome = watched("run", GOLDEN_PTE / "add_u55.pte", *HOST, option, archive, cwd=tmp_path)
    assert_refused(outcome, 3, words)


def test_the_archive_beside_a_program(tmp_path: Path) -> None:
    program = tmp_path / "net.pte"
    program.write_bytes(golden("add_u55"))
    shared_bytes(tmp_path / "net.io.npz", ("input0", "output0"), (1_000_000, 5))
    assert_refused(watched("run", program, *HOST, cwd=tmp_path), 3, "arrays that share their bytes")


@pytest.mark.parametrize("count", [140_000_000])
def test_an_archive_that_inflates(count: int, tmp_path: Path) -> None:
    archive = shared_bytes(tmp_path / "in.npz", tuple(f"input{i}" for i in range(6)), (count, 1))
    outcome = watched("run", GOLDEN_PTE / "add_u55.pte", *HOST, "--inputs", archive, cwd=tmp_path)
    assert_refused(outcome, 3, str(archive))


def test_records_and_logs_without_end(tmp_path: Path) -> None:
    endless = tmp_path / "endless"
    endless.touch()
    os.truncate(endless, 1 << 40)
    for command in ("validate", "summary", "parse-log"):
        assert_refused(watched(command, endless, cwd=tmp_path), 3, "too large")
        assert_refused(watched(command, "/dev/zero", cwd=tmp_path), 3, "is a device")
    (tmp_path / "lines.log").write_bytes(b"ab\n" * (20 * MIB))
    assert_refused(watched("parse-log", "lines.log", cwd=tmp_path), 3, "more than 1,048,576 lines")


def test_a_record_of_a_million_mistakes(tmp_path: Path) -> None:
    wrong = '{"schema": "run-result/1", "operators": [' + "0," * 2_000_000 + "0]}"
    (tmp_path / "run.json").write_text(wrong)
    assert_refused(watched("validate", "run.json", cwd=tmp_path), 3, "is not a valid record")


def test_a_machine_without_memory(tmp_path: Path) -> None:
    """NumPy's own error, of an allocation within the limits that this machine refuses.

    The 512 MiB alone are more than the shell allows, so no machine's own share decides which step fails.
    """
    program = delegating(tmp_path / "net.pte", struct.pack("<I", 0xFFFF_0000), 512 * MIB)
    script = 'export OPENBLAS_NUM_THREADS=1; ulimit -v 450000; exec "$0" "$@"'
    argv = ["bash", "-c", script, COMMAND, "run", program, *HOST]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    said = done.stderr
    assert done.returncode == 5, said
    assert "error: there is not enough memory for this step: running 1 inference on the host" in said, said
    assert "hint: free some memory" in done.stderr
