"""Reads the records of the SDK's own firmware from a saved log, without knowing the run's inputs."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ethosu_sdk import protocol
from ethosu_sdk.evidence.uart import UartLog
from ethosu_sdk.files import hashing

Payload = dict[str, Any]


@dataclass(frozen=True)
class OwnOutput:
    """One output tensor; `sha256` is empty, with a `problem`, when its bytes did not arrive as announced."""

    inference: int
    index: int
    dtype: str
    shape: tuple[int, ...]
    sha256: str
    problem: str


@dataclass(frozen=True)
class OwnLog:
    """What the records say. `complete`: from the first to the end record, counted, with a good status."""

    boot: Payload | None
    method: Payload | None
    npu: Payload | None
    pools: tuple[Payload, ...]
    pmu: tuple[Payload, ...]
    outputs: tuple[OwnOutput, ...]
    inferences: int
    delegate_calls: int
    problems: tuple[str, ...]
    complete: bool


def summarise(log: UartLog) -> OwnLog:
    """Everything in `log` that speaks for itself; contradictions and damage are among the problems."""
    pieces: dict[tuple[int, int], list[Payload]] = {}
    for row in log.of_type("data"):
        pieces.setdefault((row["inference"], row["index"]), []).append(row)
    outputs = _outputs(log.of_type("output"), pieces)
    failed = [f"{row['stage']}: {row['code']}: {row['detail']}" for row in log.of_type("error")]
    failed += [f"fault: {row['cause']} at pc {row['pc']:#010x}" for row in log.of_type("fault")]
    problems = (*log.problems, *failed, *(row.problem for row in outputs if row.problem))
    inferences = log.of_type("inference")
    return OwnLog(
        boot=_first(log, "boot"),
        method=_first(log, "method"),
        npu=_first(log, "npu"),
        pools=tuple(log.of_type("memory")),
        pmu=tuple(log.of_type("pmu")),
        outputs=outputs,
        inferences=len(inferences),
        delegate_calls=sum(row["delegate_calls"] for row in inferences),
        problems=problems,
        complete=not problems and _ended_well(log),
    )


def _first(log: UartLog, name: str) -> Payload | None:
    return next(iter(log.of_type(name)), None)


def _ended_well(log: UartLog) -> bool:
    if not log.records or log.records[0].type != "boot" or log.records[-1].type != "end":
        return False
    end = log.records[-1].payload
    return bool(
        end["status"] == protocol.STATUS_OK
        and end["records"] == len(log.records)
        and end["inferences"] == len(log.of_type("inference"))
    )


def _outputs(
    announced: Sequence[Payload], pieces: Mapping[tuple[int, int], Sequence[Payload]]
) -> tuple[OwnOutput, ...]:
    """A repeated inference that gave the same output announces it again, but does not send its bytes again."""
    found: list[OwnOutput] = []
    arrived: dict[tuple[object, ...], str] = {}
    for row in announced:
        identity = (row["index"], row["dtype"], tuple(row["shape"]), row["bytes"], row["crc32"])
        chunks = pieces.get((row["inference"], row["index"]), ())
        if chunks or identity not in arrived:
            output = _output(row, chunks)
            arrived[identity] = output.sha256
        else:
            output = _described(row, arrived[identity], "")
        found.append(output)
    return tuple(found)


def _output(row: Payload, chunks: Sequence[Payload]) -> OwnOutput:
    where = f"output {row['index']} of inference {row['inference']}"
    content, problem = bytearray(), ""
    for piece in chunks:
        if piece["offset"] != len(content):
            problem = f"a piece of {where} is out of order"
        try:
            content += base64.b64decode(piece["base64"], validate=True)
        except (binascii.Error, ValueError):
            problem = f"a piece of {where} is not base64"
    if not problem and (len(content) != row["bytes"] or f"{zlib.crc32(content):08x}" != row["crc32"]):
        problem = (
            f"{where} did not arrive as announced: {len(content)} of {row['bytes']} bytes, or a wrong CRC"
        )
    return _described(row, "" if problem else hashing.sha256_bytes(content), problem)


def _described(row: Payload, sha256: str, problem: str) -> OwnOutput:
    shape = tuple(size for size in row["shape"] if isinstance(size, int))
    return OwnOutput(row["inference"], row["index"], row["dtype"], shape, sha256, problem)
