"""A system of the user's own: its memory mode's name is the user's, and its figures are what cycles are for."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.firmware_build.executable import read_elf
from ethosu_sdk.program import pte
from ethosu_sdk.program.protocol import INPUT_IMAGE_NONCE_BYTES, INPUT_IMAGE_SYMBOL
from ethosu_sdk.run import input_image, uart
from tests import processes
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.records import read

pytestmark = [pytest.mark.torch, pytest.mark.toolchain, pytest.mark.qemu]
Record = dict[str, Any]

INI = """[System_Config.Board]
core_clock=250e6
axi0_port=Sram
axi1_port=OffChipFlash
Sram_clock_scale=0.5
Sram_burst_length=32
Sram_read_latency=20
Sram_write_latency=10
OffChipFlash_clock_scale=0.1
OffChipFlash_burst_length=64
OffChipFlash_read_latency=90
OffChipFlash_write_latency=90
[Memory_Mode.Tightly]
const_mem_area=Axi1
arena_mem_area=Axi0
cache_mem_area=Axi0
"""
CAVEAT = "for Ethos_U55_High_End_Embedded, not the system you compiled for"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that was compiled, built and profiled in one go."""
    folder = tmp_path_factory.mktemp("own system")
    (folder / "own.ini").write_text(INI)
    done = sdk_ok("profile", "zoo:digits_cnn", "--vela-config", "own.ini", "-v", "-o", "out", cwd=folder)
    assert "for Board with Tightly (own.ini)" in done.out
    assert "250 MHz (core_clock of Board in own.ini)" in done.out
    return folder


@pytest.fixture(scope="module")
def stranger(folder: Path) -> Path:
    """The same program with another digest: nothing on this machine knows its system."""
    path = folder / "strange" / "digits_cnn.pte"
    path.parent.mkdir()
    path.write_bytes((folder / "out" / "digits_cnn.pte").read_bytes() + b"\0")
    return path


def test_the_system_is_in_every_record(folder: Path) -> None:
    system = read(folder / "out" / "digits_cnn.compile.json")["system"]
    assert (system["name"], system["memory_mode"], system["clock_hz"]) == ("Board", "Tightly", 250e6)
    assert [row["bytes_per_cycle"] for row in system["memories"]] == [0.5 * 8, 0.1 * 8]
    assert [row["read_latency_cycles"] for row in system["memories"]] == [20, 90]
    for name in ("run", "profile"):
        assert read(folder / "out" / f"{name}.json")["priced"] == {"compiled_for": True, "system": system}
    profile = read(folder / "out" / "profile.json")
    assert (
        profile["totals"]["npu"]["cycles"][0]["value"]
        == (read(folder / "out" / "run.json")["npu"]["cycles"]["value"])
    )


def test_a_time_by_velas_estimate_is_velas_own(folder: Path) -> None:
    """Vela computes it from the clock of the user's file."""
    compiled = read(folder / "out" / "digits_cnn.compile.json")
    own = {row["name"]: row["value"] for row in compiled["delegates"][0]["estimates"]}
    assert own["core_clock"] == 250e6
    profile = read(folder / "out" / "profile.json")
    (estimated,) = (row for row in profile["totals"]["speed"] if row["source"] == "estimated")
    assert estimated["inference_s"] == pytest.approx(own["inference_time"], rel=1e-6)


def test_a_program_alone_is_found_in_the_cache(folder: Path) -> None:
    alone = folder / "alone"
    alone.mkdir()
    shutil.copy(folder / "out" / "digits_cnn.pte", alone)
    sdk_ok("run", "digits_cnn.pte", "-o", "out", cwd=alone)
    assert read(alone / "out" / "run.json")["priced"] == read(folder / "out" / "run.json")["priced"]


def test_an_unknown_system_has_no_headline(stranger: Path) -> None:
    done = sdk_ok("run", stranger, "--simulator", "host", "-o", stranger.parent, cwd=stranger.parent)
    assert CAVEAT in done.out
    done = sdk_ok("profile", stranger.parent, cwd=stranger.parent)
    profile = read(stranger.parent / "profile.json")
    assert profile["priced"]["compiled_for"] is False
    assert "clock" not in profile
    assert "speed" not in profile["totals"]
    assert f"cycles {CAVEAT} (modelled)" in done.out
    assert " ms" not in done.out
    assert "inferences/s" not in done.out
    sdk_ok("profile", stranger.parent, "--vela-config", "../own.ini", "-o", "given", cwd=stranger.parent)
    again = read(stranger.parent / "given" / "profile.json")
    assert again["priced"]["compiled_for"] is True
    assert again["totals"]["speed"]
    known = read(stranger.parent.parent / "out" / "profile.json")
    assert again["totals"]["npu"]["cycles"][0] == known["totals"]["npu"]["cycles"][0]
    assert again["totals"]["npu"]["cycles"][0] != profile["totals"]["npu"]["cycles"][0]


def test_firmware_goes_by_the_modes_areas_and_guesses_nothing(stranger: Path, folder: Path) -> None:
    assert_clear(sdk("build", stranger, "-o", "b", cwd=folder), 5, "memory mode 'Tightly'", "--vela-config")
    sdk_ok("build", stranger, "--vela-config", "own.ini", "-o", "b", cwd=folder)
    pools = {row["name"]: row["region"] for row in read(folder / "b" / "build.json")["memory"]["pools"]}
    assert (pools["model"], pools["scratch"]) == ("DDR", "SRAM")
    sdk_ok("run", folder / "out" / "digits_cnn.pte", "--resident", "-o", "r", cwd=folder)
    plain, resident = (read(folder / name / "run.json") for name in ("out", "r"))
    assert [row["sha256"] for row in resident["outputs"]] == [row["sha256"] for row in plain["outputs"]]
    # The traffic of constants and arena goes through the ports that the mode has them at.
    assert resident["npu"] == plain["npu"]
    assert_clear(sdk("run", stranger, "--resident", "-o", "s", cwd=folder), 5, "memory mode 'Tightly'")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("core_clock=250e6", "core_clock=nan", "core_clock in [System_Config.Board] of bad.ini is 'nan'"),
        ("Sram_clock_scale=0.5", "", "has no Sram_clock_scale"),
        ("core_clock=250e6", "inherit=System_Config.Board", "which is itself"),
        ("Config.Board]", "Config.Bored]", "no system configuration 'Board'"),
        (INI, "\0", "bad.ini"),
    ],
)
def test_a_wrong_file_is_an_error_of_input(folder: Path, old: str, new: str, words: str) -> None:
    (folder / "bad.ini").write_text(INI.replace(old, new))
    for command in ("profile", "report"):
        done = sdk(command, "out", "--vela-config", "bad.ini", "-o", folder / "no.html", cwd=folder)
        assert_clear(done, 3, words)


@pytest.mark.thorough
def test_a_run_is_verified_on_its_system(folder: Path) -> None:
    sdk_ok("verify", "out/run.json", cwd=folder)
    slower = INI.replace("OffChipFlash_read_latency=90", "OffChipFlash_read_latency=900")
    (folder / "slower.ini").write_text(slower)
    done = sdk("verify", "out/run.json", "--vela-config", "slower.ini", "--json", cwd=folder)
    assert "the run's cycles are for Board of own.ini" in done.out


def test_a_launcher_prices_the_file_that_it_is_given(folder: Path) -> None:
    """An FVP's command line tells nothing of a program, and the launcher has an option for the file."""
    elf = folder / "out" / "executor_runner.elf"
    tensors = pte.read(folder / "out" / "digits_cnn.pte").plan().input_tensors()
    nonce = bytes(INPUT_IMAGE_NONCE_BYTES)
    image = input_image.encode_image([tuple(bytes(row.nbytes) for row in tensors)], (), 1, nonce)
    (folder / "image.bin").write_bytes(image)
    place = f"image.bin@{read_elf(elf).symbols[INPUT_IMAGE_SYMBOL].address:#x}"

    def cycles(*options: str) -> int:
        words = ("FVP_Corstone_SSE-300_Ethos-U55", "-C", "mps3_board.uart0.out_file=uart.txt", *options)
        done = processes.run(
            [
                sys.executable,
                "-P",
                "-m",
                "ethosu_sdk.simulate.fvp_launcher",
                *words,
                "--data",
                place,
                "-a",
                str(elf),
            ],
            cwd=folder,
        )
        assert done.returncode == 0, done.stderr
        rows = uart.parse_uart((folder / "uart.txt").read_bytes()).records
        return sum(row.payload["cycles"] for row in rows if row.type == "pmu")

    assert cycles("--vela-config", "own.ini") == (read(folder / "out" / "run.json")["npu"]["cycles"]["value"])
    assert cycles() != cycles("--vela-config=own.ini")
