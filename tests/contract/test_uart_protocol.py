"""The firmware-host protocol, declared twice: the firmware's literals against the host's tables."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import get_args

import pytest

from ethosu_sdk import firmware_build, proc, pte, resources
from ethosu_sdk.evidence import protocol, uart
from ethosu_sdk.firmware_build import firmware, resident

FIRMWARE = resources.directory("firmware")
HEADER = (FIRMWARE / "app" / "protocol.hpp").read_text(encoding="utf-8")
KINDS = {"number": int, "text": str, "list": list}

_RECORD = re.compile(r'constexpr Record<(\d+)> \w+\{\s*"(\w+)",\s*\{(.*?)\}\};', re.DOTALL)
_FIELD = re.compile(r'\{"(\w+)", Kind::(\w+)\}')
_KIND = re.compile(r'constexpr char (\w+)\[\] = "(\w+)";')
_REPORT = re.compile(r"^ +report\(([^,]+),", re.MULTILINE)  # calls, which are indented
_CONSTANT = re.compile(r'constexpr [\w:]+ (\w+)(?:\[\])? = "?([^";]+)"?;')

# Name in protocol.hpp → the host's value.
CONSTANTS: dict[str, int | str] = {
    "version": protocol.PROTOCOL_VERSION,
    "record_prefix": protocol.RECORD_PREFIX,
    "data_chunk_bytes": protocol.DATA_CHUNK_BYTES,
    "input_image_magic": protocol.INPUT_IMAGE_MAGIC,
    "input_image_version": protocol.INPUT_IMAGE_VERSION,
    "input_image_header_bytes": protocol.INPUT_IMAGE_HEADER_BYTES,
    "input_image_alignment": protocol.INPUT_IMAGE_ALIGNMENT,
    "input_image_max_events": protocol.INPUT_IMAGE_MAX_EVENTS,
    "input_image_max_event_groups": protocol.INPUT_IMAGE_MAX_EVENT_GROUPS,
    "input_image_event_groups_at": protocol.INPUT_IMAGE_EVENT_GROUPS_AT,
    "input_image_nonce_at": protocol.INPUT_IMAGE_NONCE_AT,
    "input_image_nonce_bytes": protocol.INPUT_IMAGE_NONCE_BYTES,
    "input_image_options_at": protocol.INPUT_IMAGE_OPTIONS_AT,
    "input_image_counts_cycles": protocol.INPUT_IMAGE_COUNTS_CYCLES,
    "input_image_resets_state": protocol.INPUT_IMAGE_RESETS_STATE,
    "input_image_pieces_at": protocol.INPUT_IMAGE_PIECES_AT,
    "program_header_magic": protocol.PROGRAM_HEADER_MAGIC,
    "program_header_version": protocol.PROGRAM_HEADER_VERSION,
    "status_ok": "ok",
    "status_error": "error",
}


def firmware_records() -> dict[str, list[tuple[str, type]]]:
    records = {}
    for count, name, body in _RECORD.findall(HEADER):
        fields = [(field, KINDS[kind]) for field, kind in _FIELD.findall(body)]
        assert len(fields) == int(count), name
        records[name] = fields
    return records


def test_both_sides_know_the_same_records_with_the_same_fields() -> None:
    host = {
        name: [(field.name, field.kind) for field in row.fields]
        for name, row in protocol.RECORD_TYPES.items()
    }
    assert firmware_records() == host


def test_both_sides_know_the_same_constants() -> None:
    found = {
        name: text if isinstance(CONSTANTS.get(name), str) else int(text, 0)
        for name, text in _CONSTANT.findall(HEADER)
    }
    assert found == CONSTANTS


def test_both_sides_know_the_same_instructions() -> None:
    text = (FIRMWARE / "runtime" / "method.hpp").read_text(encoding="utf-8")
    body = text.split("namespace instruction_kind {")[1].split("}")[0]
    assert {text for _, text in _KIND.findall(body)} == set(protocol.INSTRUCTION_KINDS)
    executor = (FIRMWARE / "runtime" / "executor.cpp").read_text(encoding="utf-8")
    assert set(_REPORT.findall(executor)) == {f"instruction_kind::{name}" for name, _ in _KIND.findall(body)}


def test_the_program_reader_and_the_record_know_the_same_instructions() -> None:
    calls = {row.kind for row in get_args(pte.Instruction)}
    assert calls == set(protocol.INSTRUCTION_KINDS.values())
    path = resources.directory("schemas") / "run-result.v1.schema.json"
    operators = json.loads(path.read_text(encoding="utf-8"))["properties"]["operators"]
    assert set(operators["items"]["properties"]["kind"]["enum"]) == set(protocol.INSTRUCTION_KINDS)


def test_no_record_is_declared_outside_of_the_header() -> None:
    for path in FIRMWARE.rglob("*.[ch]pp"):
        if path.name != "protocol.hpp":
            text = path.read_text(encoding="utf-8")
            assert protocol.RECORD_PREFIX not in text, path
            assert not re.search(r"constexpr\s+(protocol::)?Record<", text), path


def test_the_image_is_found_by_the_same_name() -> None:
    assert firmware.INPUT_IMAGE_SYMBOL == protocol.INPUT_IMAGE_SYMBOL
    pools = (FIRMWARE / "app" / "pools.cpp").read_text(encoding="utf-8")
    assert f"std::uint8_t {protocol.INPUT_IMAGE_SYMBOL}[" in pools
    assert f'ETHOSU_POOL("{protocol.INPUT_IMAGE_SYMBOL}")' in pools


def test_the_resident_firmware_has_the_symbols_that_the_host_looks_for() -> None:
    text = (FIRMWARE / "app" / "resident" / "main.cpp").read_text(encoding="utf-8")
    names = (protocol.INPUT_IMAGE_SYMBOL, protocol.PROGRAM_HEADER_SYMBOL, protocol.PROGRAM_MEMORY_SYMBOL)
    assert set(resident.SYMBOLS) == set(names)
    for name in names:
        assert f"std::uint8_t {name}[" in text


@pytest.mark.parametrize("name", firmware_build.BOARDS)
def test_boards_call_themselves_what_the_host_expects(name: str) -> None:
    header = (FIRMWARE / "board" / name / "memory_map.hpp").read_text(encoding="utf-8")
    assert f'constexpr char name[] = "{name}";' in header


@pytest.mark.toolchain
def test_the_host_reads_every_record_that_the_firmware_writes(tmp_path: Path) -> None:
    sources = [
        FIRMWARE / "tests" / "app" / "print_records.cpp",
        FIRMWARE / "board" / "host" / "board.cpp",
        *(FIRMWARE / "app" / f"{name}.cpp" for name in ("crc32", "record_writer", "sha256")),
        FIRMWARE / "base" / "text.cpp",
    ]
    program = tmp_path / "print_records"
    compiler = proc.find_tool("g++", hint="apt-get install g++")
    proc.run([compiler, "-std=c++17", f"-I{FIRMWARE}", *map(str, sources), "-o", str(program)], timeout_s=120)
    output = proc.run([str(program)], timeout_s=10).output
    log = uart.parse(output.encode())
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
