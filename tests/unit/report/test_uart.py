import random

import pytest
from hypothesis import given, strategies as st

from ethosu_sdk.evidence import uart
from tests.unit.report import wire


def test_records_and_log_lines_are_parted() -> None:
    text = b"I [executorch:main.cpp:1 main()] hello\r\n" + wire.uart(wire.good_rows()) + b"\x04"
    log = uart.parse(text)
    assert log.problems == ()
    assert log.lines == ("I [executorch:main.cpp:1 main()] hello",)
    assert [record.type for record in log.records] == [name for name, _ in wire.good_rows()]
    assert log.of_type("memory") == [{"name": "scratch", "used_bytes": 10, "size_bytes": 20}]


def test_every_changed_byte_of_a_record_is_noticed() -> None:
    line = wire.line(0, "memory", {"name": "scratch", "used_bytes": 10, "size_bytes": 20}).rstrip()
    for position in range(len(line)):
        damaged = bytearray(line)
        damaged[position] ^= 1
        log = uart.parse(bytes(damaged))
        assert log.problems or not log.records, f"byte {position} changed unnoticed"


def test_a_missing_record_is_noticed() -> None:
    lines = wire.uart(wire.good_rows()).splitlines(keepends=True)
    log = uart.parse(b"".join(lines[:4] + lines[5:]))
    assert any("came instead of" in problem for problem in log.problems)


def test_a_record_inside_a_log_line_is_a_problem() -> None:
    log = uart.parse(b"I half a line " + wire.line(0, "inference", {"inference": 0, "delegate_calls": 0}))
    assert log.records == ()
    assert "does not start at the beginning of a line" in log.problems[0]


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("nonsense", {}),
        ("inference", {"inference": 0}),
        ("inference", {"inference": 0, "delegate_calls": 0, "more": 1}),
        ("inference", {"inference": -1, "delegate_calls": 0}),
        ("inference", {"inference": True, "delegate_calls": 0}),
        ("inference", {"inference": "0", "delegate_calls": 0}),
        ("inference", {"inference": 0.0, "delegate_calls": 0}),
    ],
)
def test_wrong_fields_are_refused(name: str, payload: dict[str, object]) -> None:
    log = uart.parse(wire.line(0, name, payload))
    assert log.records == ()
    assert len(log.problems) == 1


def test_a_payload_that_nests_without_end_is_refused() -> None:
    text = "[" * 100_000
    covered = f"0 npu {text}"
    import zlib

    line = f"~ethosu {covered} {len(text)} {zlib.crc32(covered.encode()):08x}".encode()
    assert "not JSON" in uart.parse(line).problems[0]


@given(st.binary(max_size=400), st.integers(0, 2**32))
def test_no_input_makes_the_parser_fail(noise: bytes, seed: int) -> None:
    good = bytearray(wire.uart(wire.good_rows()))
    place = random.Random(seed).randrange(len(good))
    uart.parse(bytes(good[:place]) + noise + bytes(good[place:]))
    uart.parse(b"~ethosu " + noise)
