"""What a schema cannot state of the figures of operations and layers: rules of :mod:`ethosu_sdk.schema`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ethosu_sdk.records import Record

# What every operation on the NPU has: the command stream alone tells it.
_ON_THE_NPU = ("delegate", "offset", "macs", "cycles", "stages", "utilisation", "bound_by", "traffic")


def cycles(row: Record, source: str) -> int | None:
    """Cycles from `source`, the sum where a row stands for several operations; None where there are none."""
    found = [int(part["value"]) for part in row.get("cycles", ()) if part["source"] == source]
    return sum(found) if found else None


def npu_operations_are_whole(record: Record) -> list[str]:
    """An operation on the NPU has its place in a command stream, and the figures that come with it."""
    return [
        f"operation {row['index']} runs on the NPU and has no {name}"
        for row in record["operations"]
        if row["runs_on"] == "NPU"
        for name in _ON_THE_NPU
        if name not in row
    ]


def cycles_are_given_once(record: Record) -> list[str]:
    """Of each operation, delegate and inference a source says its cycles once."""
    return [
        f"{what} has cycles '{source}' {count} times"
        for what, row in _with_cycles(record)
        for source, count in Counter(part["source"] for part in row.get("cycles", ())).items()
        if count > 1
    ]


def _with_cycles(record: Record) -> Iterator[tuple[str, Record]]:
    yield from ((f"operation {row['index']}", row) for row in record["operations"])
    yield from ((f"delegate {row['index']}", row) for row in record["delegates"])
    yield "the inference", record["totals"]["npu"]


def profile_adds_up(record: Record) -> list[str]:
    """A delegate's modelled cycles are those of its operations and its start."""
    found = []
    for delegate in record["delegates"]:
        whole = cycles(delegate, "modelled")
        if "start_cycles" not in delegate or whole is None:
            continue
        rows = [row for row in record["operations"] if row.get("delegate") == delegate["index"]]
        calls = delegate["calls"]
        parts = calls * delegate["start_cycles"]
        parts += sum(row["calls"] * (cycles(row, "modelled") or 0) for row in rows)
        if parts != calls * whole:
            found.append(f"delegate {delegate['index']} takes {calls * whole} cycles, its operations {parts}")
    return found


def debug_layers_exist(record: Record) -> list[str]:
    """Layers are numbered as they stand, and findings name one of them by number and tensor."""
    layers = record["layers"]
    found = [
        f"layer {row['index']} stands at {place}" for place, row in enumerate(layers) if row["index"] != place
    ]
    if record["counts"]["layers"] != len(layers):
        found.append(f"{record['counts']['layers']} layers are counted, {len(layers)} are there")
    findings = [
        row[name] for row in record["comparisons"] for name in ("first_break", "largest_drop") if name in row
    ]
    for row in (*findings, *record["advice"]):
        number = row["layer"]
        if number >= len(layers):
            found.append(f"there is no layer {number}")
        elif row.get("tensor", layers[number]["tensor"]) != layers[number]["tensor"]:
            found.append(f"layer {number} is not {row['tensor']}")
    return found
