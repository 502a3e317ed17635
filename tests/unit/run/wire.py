"""Records as a firmware would send them, written from the protocol's text and not with the SDK's own code."""

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ethosu_sdk.program.feeds import Steps

Row = tuple[str, dict[str, Any]]


def line(sequence: int, name: str, payload: dict[str, Any]) -> bytes:
    text = json.dumps(payload, separators=(",", ":"))
    covered = f"{sequence} {name} {text}"
    return f"~ethosu {covered} {len(text)} {zlib.crc32(covered.encode()):08x}\r\n".encode()


def uart(rows: Iterable[Row]) -> bytes:
    lines: list[bytes] = []
    for sequence, (name, payload) in enumerate(rows):
        sealed = {**payload, "seal": payload.get("seal", seal(lines))} if name == "end" else payload
        lines.append(line(sequence, name, sealed))
    return b"".join(lines)


def seal(lines: Iterable[bytes], nonce: bytes = bytes(16)) -> str:
    covered = (text.removeprefix(b"~ethosu ").rsplit(b" ", 2)[0] + b"\n" for text in lines)
    return hashlib.sha256(nonce + hashlib.sha256(b"".join(covered)).digest()).hexdigest()


def steps_of_bytes(sets: Sequence[Sequence[bytes]]) -> Steps:
    """Steps whose inputs are all given, as raw bytes by set and input."""
    columns = zip(*sets, strict=True) if sets else ()
    return Steps(len(sets), tuple(tuple(np.frombuffer(row, np.uint8) for row in rows) for rows in columns))


MODEL = b"a model"
INPUT = bytes(range(8))
OUTPUT = bytes([250, 0, 1, 2, 3, 4, 5, 6])


def row(record: str, **payload: Any) -> Row:
    return record, payload


def good_rows() -> list[Row]:
    """A complete run: one inference, one int8 input, one int8 output of eight elements in two pieces."""
    first, second = OUTPUT[:6], OUTPUT[6:]
    crc_of_input, crc_of_output = (f"{zlib.crc32(data):08x}" for data in (INPUT, OUTPUT))
    rows = [
        row("boot", protocol=6, firmware="0.1.0", board="corstone-300", model_bytes=7, model_sha256="5" * 64),
        row("npu", id=0x10064001, config=0x1807),
        ("method", {"name": "forward", "inputs": 1, "outputs": 1, "delegates": 1}),
        ("memory", {"name": "scratch", "used_bytes": 10, "size_bytes": 20}),
        row("input", inference=0, index=0, bytes=8, crc32=crc_of_input),
        ("operator", {"inference": 0, "instruction": 0, "kind": "delegate", "name": "EthosUBackend"}),
        row("pmu", inference=0, instruction=0, cycles=1234, overflow=0, counters=[[130, 55], [32, 0]]),
        row("inference", inference=0, delegate_calls=1),
        row("output", inference=0, index=0, dtype="int8", shape=[2, 4], bytes=8, crc32=crc_of_output),
        row("data", inference=0, index=0, offset=0, base64=base64.b64encode(first).decode()),
        row("data", inference=0, index=0, offset=6, base64=base64.b64encode(second).decode()),
    ]
    return [*rows, ("end", {"status": "ok", "inferences": 1, "records": len(rows) + 1})]
