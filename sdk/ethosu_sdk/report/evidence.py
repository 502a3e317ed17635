"""Records → proof that the run happened as it should. A run passes on positive evidence alone."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.report.protocol import PROTOCOL_VERSION
from ethosu_sdk.report.uart import ProtocolError, UartLog

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
_TAIL = 12


@dataclass(frozen=True)
class Expected:
    """What the host knows before the run and the firmware must confirm."""

    model_sha256: str
    model_bytes: int
    board: str
    inferences: tuple[tuple[bytes, ...], ...]  # the raw inputs of each inference
    outputs: int


@dataclass(frozen=True)
class PmuSample:
    """Counters around one delegate call."""

    inference: int
    instruction: int
    cycles: int
    overflow: int
    counters: tuple[tuple[int, int], ...]  # (event number, value)


@dataclass(frozen=True)
class Operator:
    """One executed instruction of the first inference."""

    instruction: int
    kind: str
    name: str


@dataclass(frozen=True)
class Evidence:
    """A complete and consistent run, as the firmware reported it."""

    outputs: tuple[tuple[npt.NDArray[Any], ...], ...]  # [inference][output]
    npu: dict[str, int] | None  # ID and CONFIG as read
    memory: tuple[dict[str, Any], ...]
    pmu: tuple[PmuSample, ...]
    operators: tuple[Operator, ...]
    delegate_calls: int


def gather(log: UartLog, expected: Expected, exit_code: int) -> Evidence:
    """The run's evidence; ProtocolError, with the last UART lines, for anything missing or contradictory."""
    try:
        return _gather(log, expected, exit_code)
    except ProtocolError as error:
        lines = "\n".join(f"  | {line}" for line in log.lines[-_TAIL:])
        raise ProtocolError(f"{error.message}\nlast UART lines:\n{lines}", error.hint) from error


def _gather(log: UartLog, expected: Expected, exit_code: int) -> Evidence:
    _refuse_reported_failures(log)
    if log.problems:
        raise ProtocolError(f"the firmware's records are damaged: {log.problems[0]}", "see uart.log")
    _check_identity(log, expected)
    _check_end(log, expected, exit_code)
    _check_inputs(log, expected)
    announced, pieces = _by_tensor(log, "output"), _by_tensor(log, "data")
    outputs = tuple(
        tuple(
            _output(announced.get(key, []), pieces.get(key, []), f"output {key[1]} of inference {key[0]}")
            for key in ((inference, index) for index in range(expected.outputs))
        )
        for inference in range(len(expected.inferences))
    )
    if len(log.of_type("output")) != len(expected.inferences) * expected.outputs:
        raise ProtocolError("the firmware sent more outputs than the model has")
    npu = log.of_type("npu")
    return Evidence(
        outputs=outputs,
        npu=npu[0] if npu else None,
        memory=tuple(log.of_type("memory")),
        pmu=tuple(_pmu(row) for row in log.of_type("pmu")),
        operators=tuple(
            Operator(row["instruction"], row["kind"], row["name"]) for row in log.of_type("operator")
        ),
        delegate_calls=sum(row["delegate_calls"] for row in log.of_type("inference")),
    )


def _refuse_reported_failures(log: UartLog) -> None:
    for fault in log.of_type("fault"):
        raise ProtocolError(
            f"the firmware faulted: {fault['cause']} at pc={fault['pc']:#010x}, lr={fault['lr']:#010x} "
            f"(CFSR={fault['cfsr']:#010x}, HFSR={fault['hfsr']:#010x}, address={fault['address']:#010x})",
            "`arm-none-eabi-addr2line -e executor_runner.elf ADDRESS` names the line",
        )
    for row in log.of_type("error"):
        raise ProtocolError(f"the firmware stopped in {row['stage']}: {row['code']}: {row['detail']}")


def _single(log: UartLog, name: str) -> dict[str, Any]:
    rows = log.of_type(name)
    if len(rows) != 1:
        raise ProtocolError(f"{len(rows)} '{name}' records where one is due")
    return rows[0]


def _check_identity(log: UartLog, expected: Expected) -> None:
    boot = _single(log, "boot")
    for name, wanted in (
        ("protocol", PROTOCOL_VERSION),
        ("board", expected.board),
        ("model_bytes", expected.model_bytes),
        ("model_sha256", expected.model_sha256),
    ):
        if boot[name] != wanted:
            raise ProtocolError(
                f"the firmware's {name} is {boot[name]}, but {wanted} was to run", "build the firmware again"
            )
    method = _single(log, "method")
    if method["outputs"] != expected.outputs:
        raise ProtocolError(
            f"the firmware's method has {method['outputs']} outputs, the file {expected.outputs}"
        )


def _check_end(log: UartLog, expected: Expected, exit_code: int) -> None:
    end = _single(log, "end")
    done = [row["inference"] for row in log.of_type("inference")]
    if log.records[-1].type != "end" or end["records"] != len(log.records):
        raise ProtocolError(f"{len(log.records)} records arrived, the firmware counted {end['records']}")
    if done != list(range(len(expected.inferences))) or end["inferences"] != len(done):
        raise ProtocolError(f"{len(done)} of {len(expected.inferences)} inferences were reported done")
    if end["status"] != "ok" or exit_code != 0:
        raise ProtocolError(f"the run ended with status '{end['status']}' and exit code {exit_code}")


def _check_inputs(log: UartLog, expected: Expected) -> None:
    reported = {(row["inference"], row["index"]): row for row in log.of_type("input")}
    wanted = {
        (inference, index): data
        for inference, inputs in enumerate(expected.inferences)
        for index, data in enumerate(inputs)
    }
    if set(reported) != set(wanted):
        raise ProtocolError(f"{len(reported)} inputs reached the firmware where {len(wanted)} were sent")
    for key, data in wanted.items():
        row = reported[key]
        if row["bytes"] != len(data) or row["crc32"] != f"{zlib.crc32(data):08x}":
            raise ProtocolError(f"input {key[1]} of inference {key[0]} changed on its way to the firmware")


def _by_tensor(log: UartLog, name: str) -> dict[tuple[int, int], list[dict[str, Any]]]:
    """The records of one type, grouped by (inference, output index)."""
    found: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in log.of_type(name):
        found.setdefault((row["inference"], row["index"]), []).append(row)
    return found


def _output(rows: list[dict[str, Any]], chunks: list[dict[str, Any]], where: str) -> npt.NDArray[Any]:
    if len(rows) != 1:
        raise ProtocolError(f"{len(rows)} 'output' records for {where}")
    data = _joined(chunks, where)
    row = rows[0]
    shape = row["shape"]
    if row["dtype"] not in DTYPES or not all(type(size) is int and size >= 0 for size in shape):
        raise ProtocolError(f"{where} has dtype {row['dtype']!r} and shape {shape!r}")
    dtype = np.dtype(row["dtype"])
    if len(data) != row["bytes"] or len(data) != dtype.itemsize * math.prod(shape):
        raise ProtocolError(f"{where} has {len(data)} bytes where {row['bytes']} were announced")
    if f"{zlib.crc32(data):08x}" != row["crc32"]:
        raise ProtocolError(f"the CRC of {where} does not match its bytes")
    return np.frombuffer(data, dtype).reshape(shape)


def _joined(chunks: Sequence[dict[str, Any]], where: str) -> bytes:
    data = bytearray()
    for chunk in chunks:
        if chunk["offset"] != len(data):
            raise ProtocolError(f"a piece of {where} is missing before byte {chunk['offset']}")
        try:
            data += base64.b64decode(chunk["base64"], validate=True)
        except (binascii.Error, ValueError) as error:
            raise ProtocolError(f"a piece of {where} is not base64") from error
    return bytes(data)


def _pmu(row: dict[str, Any]) -> PmuSample:
    pairs = row["counters"]
    if not all(
        isinstance(pair, list) and len(pair) == 2 and all(type(v) is int for v in pair) for pair in pairs
    ):
        raise ProtocolError(f"a 'pmu' record's counters are {pairs!r}")
    return PmuSample(
        row["inference"],
        row["instruction"],
        row["cycles"],
        row["overflow"],
        tuple((p[0], p[1]) for p in pairs),
    )
