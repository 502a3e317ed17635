"""Vela's debug database: from the command stream to the TOSA graph, and which tensor each operation writes.

The XML that Vela 5.1.0 writes with ``--enable-debug-db`` holds tables as CSV. The way through: a row of ``queue`` is
one NPU operation in the command stream, its offset counted in bytes from behind the driver actions' header, of many
that stand for one the last alone; it names a row of ``perf`` (what Vela scheduled) and one of ``optimised`` (what
Vela made of the graph), which names a row of ``source``: the operator of the TOSA block whose index is ``ext_key``.
Operations inside of branches (TOSA's COND_IF and WHILE_LOOP) name nothing.

``perf`` names the OFM of what was scheduled, which is the TOSA tensor's name unless Vela made the tensor itself;
``perf_debug`` has its shape and the time, ``tensors`` where each tensor lies meanwhile and how. Addresses are those
of the command stream, relative to their region.
"""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from ethosu_sdk.base.errors import BuildError

Row = dict[str, str]

UNKNOWN_OPERATOR = "Unknown"
_NO_ORIGIN = "0"  # the tables count from 1
_AXES = "NHWC"
_BRICKS = "NHCWB16"
_MOST_ELEMENTS = 1 << 26
DTYPES = {name: name.lower() for name in ("Int8", "UInt8", "Int16", "UInt16", "Int32")} | {"Bool8": "int8"}


def database_tables(xml: bytes) -> dict[str, list[Row]]:
    """The database's tables by name. BuildError when `xml` has another form."""
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise BuildError(f"Vela's debug database is not XML: {error}") from error
    return {
        table.get("name", ""): list(csv.DictReader(io.StringIO((table.text or "").strip())))
        for table in root.iter("table")
    }


@dataclass(frozen=True)
class ScheduledOperation:
    """An operation of the command stream: Vela's operator and name, and the offsets of its NPU operations, in bytes
    from behind the header of the driver actions. `cycles`, `macs` and `staging_bytes` (what is alive in the arena
    meanwhile) are Vela's estimates (None where it gives none). `tosa_index` is that of the TOSA operator behind it,
    None when Vela added it."""

    operator: str
    name: str
    offsets: tuple[int, ...]
    cycles: int | None
    macs: int | None
    staging_bytes: int | None
    tosa_index: int | None


def scheduled_operations(xml: bytes, stream: int | None = None) -> tuple[ScheduledOperation, ...]:
    """The operations of the command stream, in its order; of several streams, those of number `stream`, from 0. All
    operations inside of branches are one, whose operator is UNKNOWN_OPERATOR. BuildError when the database lacks a
    table."""
    database = database_tables(xml)
    with _known_format():
        scheduled, optimised, source = (
            {row["id"]: row for row in database[name]} for name in ("perf", "optimised", "source")
        )
        offsets: dict[tuple[str, str], list[int]] = {}
        streams = list(dict.fromkeys(row["cmdstream_id"] for row in database["queue"]))
        for row in database["queue"]:
            if stream is not None and row["cmdstream_id"] not in streams[stream : stream + 1]:
                continue
            key = ("", _NO_ORIGIN)
            if row["optimised_id"] != _NO_ORIGIN:
                key = (row["scheduled_id"], row["optimised_id"])
            offsets.setdefault(key, []).append(int(row["offset"]))
        optimised[_NO_ORIGIN] = {"operator": UNKNOWN_OPERATOR, "source_id": ""}
        return tuple(
            _operation(scheduled.get(key, {}), optimised[optimised_id], source, tuple(found))
            for (key, optimised_id), found in offsets.items()
        )


def misjudged_channels(xml: bytes) -> dict[int, tuple[int, int]]:
    """Of layers whose weights Vela encoded for another number of channels than they have: by the offset of each NPU
    operation, the layer's channels and those encoded. Vela does so where it fuses a transpose of the channels into a
    layer that writes a part of a tensor. BuildError when a table has another form."""
    database = database_tables(xml)
    with _known_format():
        rows = (row for row in database.get("perf_debug", ()) if row["weight_format"])
        wrong = {row["id"]: counts for row in rows if (counts := _channels(row)) is not None}
        return {
            int(row["offset"]): wrong[row["scheduled_id"]]
            for row in database["queue"]
            if row["scheduled_id"] in wrong
        }


@contextlib.contextmanager
def _known_format() -> Iterator[None]:
    try:
        yield
    except (KeyError, ValueError) as error:
        raise BuildError(f"Vela's debug database does not have the format of Vela 5.1.0: {error}") from error


def _channels(row: Row) -> tuple[int, int] | None:
    """A layer's channels and those its weights are encoded for, where they differ: Vela takes the last axis in
    memory."""
    order = row["transpose_type"]
    if set(order) != set(_AXES):
        return None
    part, whole = ([int(row[f"ofm_{what}_{axis}"]) for axis in _AXES.lower()] for what in ("slice", "shape"))
    channels, encoded = part[order.index("C")], part[-1]
    return None if part in (whole, [0] * len(_AXES)) or channels == encoded else (channels, encoded)


def _operation(
    scheduled: Row, optimised: Row, source: Mapping[str, Row], offsets: tuple[int, ...]
) -> ScheduledOperation:
    origin = source.get(optimised["source_id"])
    name = scheduled.get("name", "")
    return ScheduledOperation(
        operator=scheduled.get("operator") or optimised["operator"],
        name="" if name.startswith("#") else name,  # a serial number of Vela's process: it says nothing
        offsets=offsets,
        cycles=_number(scheduled, "op_cycles"),
        macs=_number(scheduled, "mac_count"),
        staging_bytes=_number(scheduled, "staging_usage"),
        tosa_index=int(origin["ext_key"]) if origin and int(origin["ext_key"]) >= 0 else None,
    )


def _number(row: Row, key: str) -> int | None:
    return int(row[key]) if row.get(key) else None


@dataclass(frozen=True)
class WrittenTensor:
    """The OFM of a scheduled operation: `shape` is NHWC as it lies in memory, `dtype` NumPy's name, `bricks` NHCWB16.
    `span` are its first byte and the one behind its last; None when it has no address, as in a chaining buffer.
    `offsets` are those of its NPU operations in the command stream."""

    name: str
    shape: tuple[int, int, int, int]
    dtype: str
    bricks: bool
    span: tuple[int, int] | None
    offsets: tuple[int, ...]


def read_written_tensors(xml: bytes) -> tuple[WrittenTensor, ...]:
    """The tensors that scheduled operations write, in the order of the command stream. An operation that is fused
    into another has no NPU operation, and is left out. BuildError when the database has another form than Vela 5.1.0
    gives it."""
    database = database_tables(xml)
    with _known_format():
        details = {row["id"]: row for row in database["perf_debug"]}
        scheduled = {row["id"]: row for row in database["perf"]}
        offsets: dict[str, list[int]] = {}
        for row in database["queue"]:
            if row["scheduled_id"] in scheduled:
                offsets.setdefault(row["scheduled_id"], []).append(int(row["offset"]))
        lying: dict[str, list[Row]] = {}
        for row in database["tensors"]:
            lying.setdefault(row["name"], []).append(row)
        return tuple(
            tensor
            for key, found in offsets.items()
            if key in details
            for tensor in _tensor(scheduled[key]["name"], details[key], lying, tuple(found))
        )


def _tensor(
    name: str, row: Row, lying: Mapping[str, list[Row]], offsets: tuple[int, ...]
) -> Iterator[WrittenTensor]:
    n, h, w, c = (int(row[f"ofm_shape_{axis}"]) for axis in "nhwc")
    if min(n, h, w, c) <= 0 or n * h * w * c > _MOST_ELEMENTS or row["ofm_dtype"] not in DTYPES:
        return
    time = int(row["time_index"])
    places = [
        (int(place["start_address"], 16), int(place["end_address"], 16))
        for place in lying.get(name, ())
        if int(place["start_time"]) <= time <= int(place["end_time"])
    ]
    yield WrittenTensor(
        name=name,
        shape=(n, h, w, c),
        dtype=DTYPES[row["ofm_dtype"]],
        bricks=row["ofm_format"] == _BRICKS,
        span=places[0] if places else None,
        offsets=offsets,
    )
