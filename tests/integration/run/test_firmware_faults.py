"""Firmware with deliberate faults, built and run for real on both boards: each must be caught, none may be green.

Every test changes one line in a copy of the firmware tree and runs the command with it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import own_qemu
from tests.integration.cli import COMMAND, Outcome, sdk
from tests.integration.qemu.firmware.traces import qemu_processes
from tests.places import ROOT

PTE = ROOT / "tests" / "golden" / "pte" / "softmax.pte"
pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]

RUNNER = "app/runner.cpp"
INFER = "  delegate_calls_ = 0;\n"
OUTPUT_BYTES = "  const Bytes bytes{static_cast<const std::uint8_t*>(tensor->data), tensor->byte_count()};\n"
OUTPUT_START = "  records_.write(protocol::output, inference_, index,"
OUTPUT_PIECE = "    const std::size_t left = bytes.size() - offset;\n"
CODE = {"corstone-300": "pc=0x1000", "corstone-320": "pc=0x1200"}  # where a board's code begins


@dataclass(frozen=True)
class Workshop:
    """A firmware tree that may be changed, and a folder whose build is reused from test to test."""

    board: str
    firmware: Path
    folder: Path
    qemu: Mapping[str, str]  # the environment that names it

    def words(self, *options: str | Path) -> tuple[str | Path, ...]:
        on = ("--board", self.board, "--simulator", "qemu")
        return ("run", PTE, *on, "-o", self.folder / "out", *options)

    @property
    def environment(self) -> dict[str, str]:
        return {"ETHOSU_SDK_FIRMWARE": str(self.firmware), **self.qemu}

    def run(self, *options: str | Path, timeout_s: float = 240) -> Outcome:
        return sdk(*self.words(*options), cwd=self.folder, env=self.environment, timeout_s=timeout_s)

    def change(self, name: str, old: str, new: str) -> None:
        path = self.firmware / name
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{name} has {text.count(old)} places like {old!r}"
        path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture(scope="module", params=CODE)
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    qemu = own_qemu.environment(request.param, request)
    folder = tmp_path_factory.mktemp("firmware faults")
    shutil.copytree(ROOT / "firmware", folder / "firmware")
    return Workshop(request.param, folder / "firmware", folder, qemu)


@pytest.fixture
def workshop(shop: Workshop) -> Iterator[Workshop]:
    yield shop
    for name in (RUNNER,):
        shutil.copyfile(ROOT / "firmware" / name, shop.firmware / name)


def assert_caught(outcome: Outcome, workshop: Workshop, code: int, *words: str) -> None:
    assert outcome.code == code, outcome.err
    assert "Traceback" not in outcome.err
    for word in words:
        assert word in outcome.err, outcome.err
    if code == 6:
        assert not (workshop.folder / "out" / "run.json").exists()
        assert not (workshop.folder / "out" / "outputs.npz").exists()
    assert not list((workshop.folder / "out").glob(".*.part"))
    assert qemu_processes(workshop.folder) == []


def test_the_unchanged_firmware_is_green_and_repeats(workshop: Workshop) -> None:
    first = workshop.run()
    assert first.code == 0, first.err
    outputs = workshop.folder / "expected.npz"
    shutil.copyfile(workshop.folder / "out" / "outputs.npz", outputs)
    again = workshop.run("--expect", outputs)
    assert again.code == 0, again.err


def test_an_output_bit_changed_before_its_crc_misses_the_verdict(workshop: Workshop) -> None:
    assert workshop.run().code == 0
    outputs = workshop.folder / "expected.npz"
    shutil.copyfile(workshop.folder / "out" / "outputs.npz", outputs)
    workshop.change(
        RUNNER,
        OUTPUT_BYTES,
        f"  static_cast<std::uint8_t*>(tensor->data)[0] ^= 1;\n{OUTPUT_BYTES}",
    )
    outcome = workshop.run("--expect", outputs)
    assert_caught(outcome, workshop, 7, "1 of", "differ")
    assert '"status": "fail"' in (workshop.folder / "out" / "run.json").read_text()


def test_an_output_bit_changed_after_its_crc_is_a_broken_protocol(workshop: Workshop) -> None:
    workshop.change(
        RUNNER, OUTPUT_PIECE, f"{OUTPUT_PIECE}    const_cast<std::uint8_t*>(bytes.data())[0] ^= 1;\n"
    )
    assert_caught(workshop.run(), workshop, 6, "CRC of output 0")


def test_a_missing_output_record_is_caught(workshop: Workshop) -> None:
    workshop.change(RUNNER, OUTPUT_START, f"  if (index != 0)\n{OUTPUT_START}")
    assert_caught(workshop.run(), workshop, 6, "'output' records")


def test_a_wrong_model_identity_is_caught(workshop: Workshop) -> None:
    line = "  const char* const hex = digest;\n"
    workshop.change(RUNNER, line, f"  digest[0] = digest[0] == '0' ? '1' : '0';\n{line}")
    assert_caught(workshop.run(), workshop, 6, "model_sha256")


def test_an_early_exit_with_code_0_is_not_green(workshop: Workshop) -> None:
    workshop.change(RUNNER, INFER, f"{INFER}  return true;\n")
    assert_caught(workshop.run(), workshop, 6)


def test_a_fault_is_named_with_its_place(workshop: Workshop) -> None:
    workshop.change(RUNNER, INFER, f"{INFER}  *reinterpret_cast<volatile int*>(0xF0000000U) = 1;\n")
    assert_caught(workshop.run(), workshop, 6, "faulted", CODE[workshop.board])


def test_a_hang_ends_with_the_symbol(workshop: Workshop) -> None:
    workshop.change(RUNNER, INFER, f'{INFER}  asm volatile("cpsid i"); for (;;) {{ asm volatile(""); }}\n')
    assert_caught(workshop.run("--timeout", "3"), workshop, 6, "Runner", "Method 'forward' loaded")


def test_silence_half_way_through_an_output_is_caught(workshop: Workshop) -> None:
    workshop.change(RUNNER, OUTPUT_PIECE, f'{OUTPUT_PIECE}    for (;;) {{ asm volatile("wfi"); }}\n')
    assert_caught(workshop.run("--timeout", "3"), workshop, 6)


def slow_run(workshop: Workshop) -> subprocess.Popen[str]:
    """A run that would last for ever, once its QEMU is up."""
    workshop.change(RUNNER, INFER, f'{INFER}  for (;;) {{ asm volatile(""); }}\n')
    process = subprocess.Popen(
        [COMMAND, *workshop.words("--timeout", "60")],
        cwd=workshop.folder,
        env={**os.environ, **workshop.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not qemu_processes(workshop.folder):
        assert process.poll() is None, "the run ended early"
        assert time.monotonic() < deadline, "QEMU did not start"
        time.sleep(0.05)
    return process


def test_qemu_killed_from_outside_is_a_failed_simulation(workshop: Workshop) -> None:
    process = slow_run(workshop)
    for pid in qemu_processes(workshop.folder):
        os.kill(pid, signal.SIGKILL)
    out, _ = process.communicate(timeout=30)
    assert_caught(Outcome(process.returncode, "", out), workshop, 6, "QEMU")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_killed_run_leaves_no_qemu(workshop: Workshop, number: signal.Signals, code: int) -> None:
    process = slow_run(workshop)
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == code, out
    assert "Traceback" not in out
    deadline = time.monotonic() + 10
    while qemu_processes(workshop.folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert qemu_processes(workshop.folder) == []
    assert not (workshop.folder / "out" / "run.json").exists()
