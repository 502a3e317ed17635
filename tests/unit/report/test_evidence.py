import base64
import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.report import evidence, uart
from ethosu_sdk.report.uart import ProtocolError
from tests.unit.report import wire

EXPECTED = evidence.Expected(
    model_sha256="5" * 64,
    model_bytes=len(wire.MODEL),
    board="corstone-300",
    inferences=((wire.INPUT,),),
    outputs=1,
)
Rows = list[wire.Row]


def gather(rows: Rows, exit_code: int = 0) -> evidence.Evidence:
    return evidence.gather(uart.parse(wire.uart(rows)), EXPECTED, exit_code)


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


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (drop("boot"), "0 'boot' records"),
        (drop("end"), "0 'end' records"),
        (drop("inference"), "0 of 1 inferences"),
        (drop("output"), "0 'output' records"),
        (drop("data"), "0 bytes where 8"),
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
        (change("output", shape=[3, 3]), "bytes where"),
        (change("output", shape=[-1, -8]), "shape [-1, -8]"),
        (change("output", shape=["2", 4]), "shape"),
        (change("output", dtype="O"), "dtype 'O'"),
        (change("output", dtype="float32"), "bytes where"),
        (change("data", offset=1), "missing before byte"),
        (change("data", base64="%%%"), "not base64"),
        (change("end", status="error"), "status 'error'"),
        (change("end", records=3), "the firmware counted 3"),
        (change("end", inferences=2), "1 of 1 inferences"),
        (change("pmu", counters=[[1, 2, 3]]), "counters"),
        (flip_output_bit, "CRC of output 0"),
    ],
)
def test_what_is_missing_or_contradictory_is_refused(spoil: Callable[[Rows], Rows], reason: str) -> None:
    rows = spoil(copy.deepcopy(wire.good_rows()))
    with pytest.raises(ProtocolError) as caught:
        gather(rows)
    assert reason in caught.value.message
    assert caught.value.exit_code == 6


def test_the_last_log_lines_are_shown() -> None:
    log = uart.parse(b"I one\nI two\n")
    with pytest.raises(ProtocolError) as caught:
        evidence.gather(log, EXPECTED, 0)
    assert "| I two" in caught.value.message


def test_a_good_log_with_a_bad_exit_code_is_refused() -> None:
    with pytest.raises(ProtocolError, match="exit code 1"):
        gather(wire.good_rows(), exit_code=1)


def test_a_fault_is_named_even_when_everything_else_is_there() -> None:
    fault = dict.fromkeys(("pc", "lr", "sp", "xpsr", "cfsr", "hfsr", "address"), 0x10000123)
    rows = [*wire.good_rows(), ("fault", {"cause": "BusFault", **fault})]
    with pytest.raises(ProtocolError, match="BusFault at pc=0x10000123"):
        gather(rows)


def test_an_error_record_is_named() -> None:
    rows = [*wire.good_rows(), ("error", {"stage": "load", "code": "InvalidProgram", "detail": "value 7"})]
    with pytest.raises(ProtocolError, match="stopped in load: InvalidProgram: value 7"):
        gather(rows)


def test_an_extra_output_is_refused() -> None:
    rows = wire.good_rows()
    extra = dict(payload(rows, "output"), index=1)
    rows.insert(-1, ("output", extra))
    with pytest.raises(ProtocolError, match="more outputs"):
        gather(recount(rows))
