"""What a schema cannot state of the figures of operations and layers: rules of :mod:`ethosu_sdk.schema`."""

from __future__ import annotations

from ethosu_sdk.records import Record


def profile_adds_up(record: Record) -> list[str]:
    """A delegate's modelled cycles are those of its operations and its start."""
    found = []
    for delegate in record["delegates"]:
        whole = _modelled_cycles(delegate)
        if "start_cycles" not in delegate or whole is None:
            continue
        rows = [row for row in record["operations"] if row.get("delegate") == delegate["index"]]
        calls = delegate["calls"]
        parts = calls * delegate["start_cycles"]
        parts += sum(row["calls"] * (_modelled_cycles(row) or 0) for row in rows)
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


def _modelled_cycles(row: Record) -> float | None:
    return next((part["value"] for part in row["cycles"] if part["source"] == "modelled"), None)
