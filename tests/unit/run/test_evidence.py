"""Evidence of a run: the log and its records, and what goes to the firmware."""

import base64
import copy
import random
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from msgspec import structs

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.run import evidence, input_image, uart
from ethosu_sdk.run.repeats import Changed
from ethosu_sdk.run.uart import ProtocolError
from tests.tables import each
from tests.unit.run import wire

EXPECTED = evidence.ExpectedRun(
    model_sha256="5" * 64,
    model_bytes=len(wire.MODEL),
    board="corstone-300",
    steps=wire.steps_of_bytes(((wire.INPUT,),)),
    outputs=1,
)
Rows = list[wire.Row]


def gather(rows: Rows, exit_code: int = 0, expected: evidence.ExpectedRun = EXPECTED) -> evidence.Evidence:
    return evidence.evidence_of_run(uart.parse_uart(wire.uart(rows)), expected, exit_code)


def payload(rows: Rows, name: str) -> dict[str, Any]:
    return next(row for kind, row in rows if kind == name)


def test_a_complete_run_gives_its_outputs_and_counters() -> None:
    found = gather(wire.good_rows())
    np.testing.assert_array_equal(found.outputs[0][0], np.array([[-6, 0, 1, 2], [3, 4, 5, 6]], np.int8))
    assert found.pmu[0].cycles == 1234
    assert found.pmu[0].counters == ((130, 55), (32, 0))
    assert found.delegate_calls == 1
    assert found.npu == {"id": 0x10064001, "config": 0x1807}


def recount(rows: Rows) -> Rows:
    for name, row in rows:
        if name == "end":
            row["records"] = len(rows)
    return rows


def drop(name: str) -> Callable[[Rows], Rows]:
    return lambda rows: recount([row for row in rows if row[0] != name])


def change(name: str, **values: object) -> Callable[[Rows], Rows]:
    def apply(rows: Rows) -> Rows:
        payload(rows, name).update(values)
        return rows

    return apply


def flip_output_bit(rows: Rows) -> Rows:
    damaged = bytearray(wire.OUTPUT[:6])
    damaged[3] ^= 1
    payload(rows, "data")["base64"] = base64.b64encode(bytes(damaged)).decode()
    return rows


@each(
    ("spoil", "reason"),
    [
        (drop("boot"), "0 'boot' records"),
        (drop("end"), "0 'end' records"),
        (drop("inference"), "0 of 1 inferences"),
        (drop("output"), "0 'output' records"),
        (drop("data"), "0 bytes, but 8"),
        (drop("input"), "0 inputs reached"),
        (drop("method"), "0 'method' records"),
        (change("boot", model_sha256="6" * 64), "model_sha256 is 666"),
        (change("boot", model_bytes=3), "model_bytes is 3"),
        (change("boot", protocol=9), "protocol is 9"),
        (change("boot", board="corstone-320"), "board is corstone-320"),
        (change("method", outputs=2), "2 outputs"),
        (change("input", crc32="00000000"), "changed on its way"),
        (change("input", bytes=7), "changed on its way"),
        (change("inference", inference=1), "of 1 inferences"),
        (change("output", shape=[3, 3]), "bytes, but"),
        (change("output", shape=[-1, -8]), "shape is [-1, -8]"),
        (change("output", shape=["2", 4]), "shape"),
        (change("output", dtype="O"), "dtype 'O'"),
        (change("output", dtype="float32"), "bytes, but"),
        (change("data", offset=1), "missing before byte"),
        (change("data", base64="%%%"), "not base64"),
        (change("end", status="error"), "status 'error'"),
        (change("end", records=3), "the firmware counted 3"),
        (change("end", inferences=2), "1 of 1 inferences"),
        (change("pmu", counters=[[1, 2, 3]]), "counters"),
        (change("operator", kind="jump_false"), "unknown kind"),
        (change("operator", kind=""), "unknown kind"),
        (flip_output_bit, "CRC of output 0"),
    ],
)
def test_what_is_missing_or_contradictory_is_refused(spoil: Callable[[Rows], Rows], reason: str) -> None:
    rows = spoil(copy.deepcopy(wire.good_rows()))
    with pytest.raises(ProtocolError) as caught:
        gather(rows)
    assert reason in caught.value.message
    assert caught.value.exit_code == 6


def test_what_ended_a_run_is_named() -> None:
    with pytest.raises(ProtocolError, match="exit code 1"):
        gather(wire.good_rows(), exit_code=1)
    fault = dict.fromkeys(("pc", "lr", "sp", "xpsr", "cfsr", "hfsr", "address"), 0x10000123)
    rows = [*wire.good_rows(), ("fault", {"cause": "BusFault", **fault})]
    with pytest.raises(ProtocolError, match="BusFault at pc=0x10000123"):
        gather(rows)
    rows = [*wire.good_rows(), ("error", {"stage": "load", "code": "InvalidProgram", "detail": "value 7"})]
    with pytest.raises(ProtocolError, match="stopped in load: InvalidProgram: value 7"):
        gather(rows)
    log = uart.parse_uart(b"I one\nI two\n")
    with pytest.raises(ProtocolError) as caught:
        evidence.evidence_of_run(log, EXPECTED, 0)
    assert "| I two" in caught.value.message


def test_outputs_and_bytes_that_nobody_announced_are_refused() -> None:
    rows = wire.good_rows()
    extra = dict(payload(rows, "output"), index=1)
    rows.insert(-1, ("output", extra))
    with pytest.raises(ProtocolError, match="more outputs"):
        gather(recount(rows))
    rows = repeated_rows(2)
    rows.insert(-1, ("data", {"inference": 7, "index": 0, "offset": 0, "base64": ""}))
    with pytest.raises(ProtocolError, match="did not announce"):
        gather(recount(rows), expected=repeating(2))


# --- repeats


def repeated_rows(repeats: int) -> Rows:
    """A run of several repeats: only the first sends the output's bytes."""
    rows = wire.good_rows()
    once = ("input", "pmu", "inference", "output", "data")
    head = [row for row in rows if row[0] not in (*once, "end")]
    body = []
    for number in range(repeats):
        for name, row in copy.deepcopy(rows):
            if name in once and not (name == "data" and number):
                body.append((name, row | {"inference": number}))
    end = ("end", {"status": "ok", "inferences": repeats, "records": 0})
    return recount([*head, *body, end])


def repeating(repeats: int, event_groups: int = 1) -> evidence.ExpectedRun:
    return structs.replace(EXPECTED, repeats=repeats, event_groups=event_groups)


def of_inference(rows: Rows, name: str, inference: int) -> dict[str, Any]:
    return next(row for kind, row in rows if kind == name and row["inference"] == inference)


def test_repeats_send_their_output_once_or_when_it_changed() -> None:
    found = gather(repeated_rows(4), expected=repeating(4))
    assert len(found.outputs) == 1
    assert found.changed_outputs == found.changed_counters == ()
    assert found.delegate_calls == 4
    rows = repeated_rows(3)
    of_inference(rows, "output", 1)["crc32"] = "00000001"
    with pytest.raises(ProtocolError, match="output 0 of inference 1 has 0 bytes"):
        gather(rows, expected=repeating(3))


def test_a_repeat_with_another_output_is_named() -> None:
    rows = repeated_rows(4)
    other = bytes([9, *wire.OUTPUT[1:]])
    of_inference(rows, "output", 2)["crc32"] = f"{zlib.crc32(other):08x}"
    place = rows.index(("output", of_inference(rows, "output", 2)))
    piece = {"inference": 2, "index": 0, "offset": 0, "base64": base64.b64encode(other).decode()}
    rows.insert(place + 1, ("data", piece))
    # The one after it is the first's again: its bytes come again.
    whole = base64.b64encode(wire.OUTPUT).decode()
    rows.insert(-1, ("data", {"inference": 3, "index": 0, "offset": 0, "base64": whole}))
    found = gather(recount(rows), expected=repeating(4))
    assert found.changed_outputs == (Changed(set=0, repeat=2, index=0),)
    np.testing.assert_array_equal(found.outputs[0][0].reshape(-1)[0], np.int8(-6))


@pytest.mark.parametrize(
    ("change", "repeat"),
    [({"cycles": 1235}, 1), ({"overflow": 1}, 2), ({"counters": [[130, 56], [32, 0]]}, 3)],
)
def test_a_repeat_that_counted_something_else_is_named(change: dict[str, Any], repeat: int) -> None:
    rows = repeated_rows(4)
    of_inference(rows, "pmu", repeat).update(change)
    found = gather(rows, expected=repeating(4))
    assert found.changed_counters == (Changed(set=0, repeat=repeat, index=0),)


def test_groups_of_events_differ_but_their_cycles_must_not() -> None:
    rows = repeated_rows(4)
    for number in (1, 3):
        of_inference(rows, "pmu", number)["counters"] = [[48, 7]]
    assert gather(rows, expected=repeating(4, 2)).changed_counters == ()
    assert len(gather(rows, expected=repeating(4)).changed_counters) == 2
    of_inference(rows, "pmu", 3)["cycles"] = 1
    assert gather(rows, expected=repeating(4, 2)).changed_counters == (Changed(0, 3, 0),)


@pytest.mark.parametrize("name", ["input", "inference", "output"])
def test_a_repeat_that_is_not_reported_whole_is_refused(name: str) -> None:
    rows = repeated_rows(3)
    rows.remove((name, of_inference(rows, name, 1)))
    with pytest.raises(ProtocolError):
        gather(recount(rows), expected=repeating(3))


def test_an_instruction_that_calls_nothing_is_named_by_its_kind() -> None:
    rows = wire.good_rows()
    payload(rows, "operator").update(kind="jump", name="")
    assert gather(rows).operators[0] == evidence.ExecutedInstruction(
        payload(rows, "operator")["instruction"], "jump", "JumpFalseCall"
    )


def test_a_log_of_another_run_or_changed_behind_its_crc_is_refused() -> None:
    """Every record is whole, but the firmware was given another nonce."""
    other = structs.replace(EXPECTED, nonce=b"0123456789abcdef")
    with pytest.raises(ProtocolError, match="not from this run"):
        gather(wire.good_rows(), expected=other)
    lines = wire.uart(wire.good_rows()).splitlines(keepends=True)
    number, (name, row) = next((i, row) for i, row in enumerate(wire.good_rows()) if row[0] == "pmu")
    lines[number] = wire.line(number, name, {**row, "cycles": row["cycles"] - 1})
    log = uart.parse_uart(b"".join(lines))
    assert log.problems == ()
    with pytest.raises(ProtocolError, match="not from this run"):
        evidence.evidence_of_run(log, EXPECTED, 0)


def test_jobs_are_those_that_the_simulator_saw() -> None:
    evidence.crosscheck_jobs(gather(wire.good_rows()), [1234])
    with pytest.raises(ProtocolError, match="counters of 0 of its 1"):
        evidence.crosscheck_jobs(gather(drop("pmu")(wire.good_rows())), [1234])


@pytest.mark.parametrize(
    ("cycles", "message"),
    [
        ([], "ran 0 jobs"),
        ([1234, 1234], "ran 2 jobs"),
        ([1235], "1234 cycles for NPU job 0, .* counted 1235"),
    ],
)
def test_what_the_simulator_did_not_see_is_refused(cycles: list[int], message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        evidence.crosscheck_jobs(gather(wire.good_rows()), cycles)


# --- pieces


def rows_in_pieces(jobs: int) -> Rows:
    """Two repeats; the second ran its delegate call in so many jobs."""
    rows = repeated_rows(2)
    (at,) = [i for i, (name, row) in enumerate(rows) if name == "pmu" and row["inference"] == 1]
    job = rows[at][1]
    rows[at : at + 1] = [("pmu", {**job, "cycles": 400 + number}) for number in range(jobs)]
    return recount(rows)


def in_pieces(count: int) -> evidence.ExpectedRun:
    return structs.replace(EXPECTED, repeats=2, pieces={0: count})


def test_pieces_are_kept_apart_and_another_output_is_named() -> None:
    found = gather(rows_in_pieces(3), expected=in_pieces(3))
    assert [row.cycles for row in found.pieces] == [400, 401, 402]
    assert (found.changed_counters, found.changed_outputs) == ((), ())
    assert (found.delegate_calls, found.jobs) == (2, 4)
    evidence.crosscheck_jobs(found, [1234, 400, 401, 402])
    rows = rows_in_pieces(3)
    of_inference(rows, "output", 1)["crc32"] = "00000000"
    with pytest.raises(ProtocolError):
        gather(rows, expected=in_pieces(3))  # without its bytes it is no evidence


@pytest.mark.parametrize("jobs", [0, 2, 4])
def test_pieces_that_are_missing_or_too_many_are_refused(jobs: int) -> None:
    with pytest.raises(ProtocolError, match=f"reports {jobs} NPU jobs, but its delegates have 3 pieces"):
        gather(rows_in_pieces(jobs), expected=in_pieces(3))


def test_jobs_of_pieces_that_the_npu_did_not_run_are_refused() -> None:
    found = gather(rows_in_pieces(3), expected=in_pieces(3))
    with pytest.raises(
        ProtocolError, match="4 delegate calls and pieces of them, but the simulator's NPU ran 3"
    ):
        evidence.crosscheck_jobs(found, [1234, 400, 401])
    with pytest.raises(ProtocolError, match="reports 402 cycles for NPU job 3"):
        evidence.crosscheck_jobs(found, [1234, 400, 401, 403])


# --- The log and its records.


def test_records_and_log_lines_are_parted() -> None:
    text = b"I [executorch:main.cpp:1 main()] hello\r\n" + wire.uart(wire.good_rows()) + b"\x04"
    log = uart.parse_uart(text)
    assert log.problems == ()
    assert log.lines == ("I [executorch:main.cpp:1 main()] hello",)
    assert [record.type for record in log.records] == [name for name, _ in wire.good_rows()]
    assert log.of_type("memory") == [{"name": "scratch", "used_bytes": 10, "size_bytes": 20}]


def test_changed_bytes_and_endless_payloads_are_noticed() -> None:
    line = wire.line(0, "memory", {"name": "scratch", "used_bytes": 10, "size_bytes": 20}).rstrip()
    for position in range(len(line)):
        damaged = bytearray(line)
        damaged[position] ^= 1
        log = uart.parse_uart(bytes(damaged))
        assert log.problems or not log.records, f"byte {position} changed unnoticed"
    text = "[" * 100_000
    covered = f"0 npu {text}"
    import zlib

    line = f"~ethosu {covered} {len(text)} {zlib.crc32(covered.encode()):08x}".encode()
    assert "not JSON" in uart.parse_uart(line).problems[0]


def test_missing_and_misplaced_records_are_noticed() -> None:
    lines = wire.uart(wire.good_rows()).splitlines(keepends=True)
    log = uart.parse_uart(b"".join(lines[:4] + lines[5:]))
    assert any("came instead of" in problem for problem in log.problems)
    log = uart.parse_uart(
        b"I half a line " + wire.line(0, "inference", {"inference": 0, "delegate_calls": 0})
    )
    assert log.records == ()
    assert "does not start at the beginning of a line" in log.problems[0]


@each(
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
    log = uart.parse_uart(wire.line(0, name, payload))
    assert log.records == ()
    assert len(log.problems) == 1


@given(st.binary(max_size=400), st.integers(0, 2**32))
def test_no_input_makes_the_parser_fail(noise: bytes, seed: int) -> None:
    good = bytearray(wire.uart(wire.good_rows()))
    place = random.Random(seed).randrange(len(good))
    uart.parse_uart(bytes(good[:place]) + noise + bytes(good[place:]))
    uart.parse_uart(b"~ethosu " + noise)


# --- What goes to the firmware.

TABLE = 1216


def test_the_layout_of_images_and_their_pieces_is_the_protocols() -> None:
    sets = [[b"abc", bytes(20)], [b"def", b"\1" * 20]]
    image = input_image.encode_image(sets, [[130, 32], [48]], repeats=5, nonce=bytes(range(16)))
    words = struct.unpack_from("<16I", image)
    assert image[:4] == b"EUI1"
    assert words[1] == 5
    assert words[2] == len(image)
    assert words[3] == zlib.crc32(image[16:])
    assert words[4:8] == (2, 2, 5, 2)
    assert image[32:48] == bytes(range(16))
    assert words[12:] == (0,) * 4
    assert struct.unpack_from("<9I", image, 64) == (2, 130, 32, 0, 0, 0, 0, 0, 0)
    assert struct.unpack_from("<9I", image, 100) == (1, 48, 0, 0, 0, 0, 0, 0, 0)
    assert image[136:TABLE] == bytes(TABLE - 136)
    pieces = [input_image.StreamPiece(2, b"12345678"), input_image.StreamPiece(0, b"abcd" * 5)]
    plain = input_image.encode_image([[b"abc"]])
    image = input_image.encode_image([[b"abc"]], repeats=2, pieces=pieces)
    assert len(image) == len(plain) + input_image.bytes_of_pieces(pieces)
    table, count = struct.unpack_from("<2I", image, 52)
    assert (table, count) == (len(plain), 2)
    for number, piece in enumerate(pieces):
        delegate, offset, size = struct.unpack_from("<3I", image, table + 12 * number)
        assert delegate == piece.delegate
        assert offset % 16 == 0
        assert image[offset : offset + size] == piece.commands


@given(
    st.integers(0, 4).flatmap(
        lambda inputs: st.lists(
            st.lists(st.binary(max_size=70), min_size=inputs, max_size=inputs), min_size=1, max_size=5
        )
    ),
    st.lists(st.lists(st.integers(0, 1023), min_size=1, max_size=8), max_size=32),
)
def test_every_input_is_found_through_the_table(sets: list[list[bytes]], groups: list[list[int]]) -> None:
    image = input_image.encode_image(sets, groups)
    end = TABLE + 8 * len(sets) * len(sets[0])
    for number, data in enumerate(data for row in sets for data in row):
        offset, size = struct.unpack_from("<2I", image, TABLE + 8 * number)
        assert offset % 16 == 0
        assert offset >= end
        assert image[offset : offset + size] == data
        end = offset + size
    assert end <= len(image) < end + 16


def test_an_image_without_inputs_and_the_programs_header() -> None:
    image = input_image.encode_image([[]])
    assert struct.unpack_from("<I", image, 8)[0] == len(image) == TABLE
    header = input_image.encode_program_header(960)
    assert header[:4] == b"EUP1"
    assert struct.unpack("<5I", header)[1:] == (2, 960, 0, zlib.crc32(header[:16]))
    header = input_image.encode_program_header(960, 3)
    assert struct.unpack("<5I", header)[1:] == (2, 960, 3, zlib.crc32(header[:16]))


@pytest.mark.parametrize(
    ("groups", "repeats", "reason"),
    [
        ([range(9)], 1, "9 PMU events"),
        ([[1], []], 1, "0 PMU events"),
        ([[1]] * 33, 1, "33 groups"),
        ([], 0, "0 repeats"),
        ([], 1 << 32, "4294967296 repeats"),
    ],
)
def test_what_has_no_room_is_refused(groups: list[list[int]], repeats: int, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        input_image.encode_image([[b""]], groups, repeats)
