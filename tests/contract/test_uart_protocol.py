"""The firmware-host protocol: what the firmware does with the generated header against the host's tables."""

import hashlib
import re
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from ethosu_sdk.base import proc, resources
from ethosu_sdk.firmware_build import cmake, generated_files, resident_firmware
from ethosu_sdk.program import protocol
from ethosu_sdk.program.execution_plan import Instruction
from ethosu_sdk.records.run import Operator
from ethosu_sdk.run import uart

FIRMWARE = resources.directory("firmware")
_KIND = re.compile(r'constexpr char (\w+)\[\] = "(\w+)";')
_REPORT = re.compile(r"^ +report\(([^,]+),", re.MULTILINE)  # calls, which are indented


def test_both_sides_know_the_same_instructions() -> None:
    text = (FIRMWARE / "runtime" / "method.hpp").read_text(encoding="utf-8")
    body = text.split("namespace instruction_kind {")[1].split("}")[0]
    assert {text for _, text in _KIND.findall(body)} == set(protocol.INSTRUCTION_KINDS)
    executor = (FIRMWARE / "runtime" / "executor.cpp").read_text(encoding="utf-8")
    assert set(_REPORT.findall(executor)) == {f"instruction_kind::{name}" for name, _ in _KIND.findall(body)}


def test_the_program_reader_and_the_record_know_the_same_instructions() -> None:
    calls = {row.kind for row in get_args(Instruction)}
    assert calls == set(protocol.INSTRUCTION_KINDS.values())
    assert set(get_args(get_type_hints(Operator)["kind"])) == set(protocol.INSTRUCTION_KINDS)


def test_no_record_is_declared_outside_of_the_generated_header() -> None:
    for path in FIRMWARE.rglob("*.[ch]pp"):
        text = path.read_text(encoding="utf-8")
        assert protocol.RECORD_PREFIX not in text, path
        assert not re.search(r"constexpr\s+(protocol::)?Record<", text), path


def test_the_image_is_found_by_the_same_name() -> None:
    pools = (FIRMWARE / "app" / "pools.cpp").read_text(encoding="utf-8")
    assert f"std::uint8_t {protocol.INPUT_IMAGE_SYMBOL}[" in pools
    assert f'ETHOSU_POOL("{protocol.INPUT_IMAGE_SYMBOL}")' in pools


def test_the_resident_firmware_has_the_symbols_that_the_host_looks_for() -> None:
    text = (FIRMWARE / "app" / "resident" / "loading.cpp").read_text(encoding="utf-8")
    for name in resident_firmware.SYMBOLS:
        assert f"std::uint8_t {name}[" in text
    device = (FIRMWARE / "app" / "device" / "main.cpp").read_text(encoding="utf-8")
    assert f"{protocol.DEVICE_MARK_SYMBOL}[" in device


@pytest.mark.toolchain
def test_the_host_reads_every_record_that_the_firmware_writes(tmp_path: Path) -> None:
    sources = [
        FIRMWARE / "tests" / "app" / "print_records.cpp",
        FIRMWARE / "board" / "host" / "board.cpp",
        *(FIRMWARE / "app" / f"{name}.cpp" for name in ("crc32", "record_writer", "sha256")),
        FIRMWARE / "base" / "text.cpp",
    ]
    program = tmp_path / "print_records"
    shared = tmp_path / "shared"
    cmake.mirror_sources(shared, generated_files.shared_sources())
    compiler = proc.find_tool("g++", hint="apt-get install g++")
    proc.run(
        [compiler, "-std=c++17", f"-I{FIRMWARE}", f"-I{shared}", *map(str, sources), "-o", str(program)],
        timeout_s=120,
    )
    output = proc.run([str(program)], timeout_s=10).output
    log = uart.parse_uart(output.encode())
    assert log.problems == ()
    assert log.lines == ()
    assert [record.type for record in log.records] == list(protocol.RECORD_TYPES)
    assert log.of_type("boot")[0]["firmware"] == 'a "name" \\ with\n\u00c3\u00a9'
    assert log.of_type("cpu")[0] == {"inference": 0, "instruction": 1, "cycles": 1 << 40}
    assert log.of_type("pmu")[0] == {
        "inference": 0,
        "instruction": 1,
        "cycles": 1 << 47,
        "overflow": 1 << 31,
        "counters": [[130, (1 << 32) - 1], [32, 0]],
    }
    assert log.of_type("data")[0]["base64"] == "AP8Qgw=="
    end = log.of_type("end")[0]
    assert end["records"] == len(log.records)
    covered = [line.removeprefix("~ethosu ").rsplit(" ", 2)[0] for line in output.splitlines()[:-1]]
    inner = hashlib.sha256("".join(f"{text}\n" for text in covered).encode()).digest()
    assert end["seal"] == hashlib.sha256(b"nonce" + inner).hexdigest()
