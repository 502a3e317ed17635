"""Which tensor each NPU operation writes, by Vela's debug database.

``perf`` names the OFM of what was scheduled, which is the TOSA tensor's name unless Vela made the tensor itself;
``perf_debug`` has its shape and the time, ``tensors`` where each tensor lies meanwhile and how. Addresses are those
of the command stream, relative to their region. ``queue`` has the NPU operations; of many that stand for one, the
last alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ethosu_sdk.aot.vela.debug_database import Row, tables
from ethosu_sdk.errors import BuildError

_BRICKS = "NHCWB16"
_MOST_ELEMENTS = 1 << 26
DTYPES = {
    "Int8": "int8",
    "UInt8": "uint8",
    "Int16": "int16",
    "UInt16": "uint16",
    "Int32": "int32",
    "Bool8": "int8",
}


@dataclass(frozen=True)
class WrittenTensor:
    """The OFM of a scheduled operation: `shape` is NHWC as it lies in memory, `dtype` NumPy's name, `bricks` NHCWB16.

    `span` are its first byte and the one behind its last; None when it has no address, as in a chaining buffer.
    `offsets` are those of its NPU operations in the command stream.
    """

    name: str
    shape: tuple[int, int, int, int]
    dtype: str
    bricks: bool
    span: tuple[int, int] | None
    offsets: tuple[int, ...]


def read(xml: bytes) -> tuple[WrittenTensor, ...]:
    """The tensors that scheduled operations write, in the order of the command stream. An operation that is fused
    into another has no NPU operation, and is left out.

    BuildError when the database has another form than Vela 5.1.0 gives it.
    """
    database = tables(xml)
    try:
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
    except (KeyError, ValueError) as error:
        raise BuildError(f"Vela's debug database does not have the format of Vela 5.1.0: {error}") from error


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
