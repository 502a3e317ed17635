"""debug.csv: a row for each layer, one figure in each column."""

from __future__ import annotations

from ethosu_sdk.records import Record
from ethosu_sdk.steps.debug.findings import FLOAT, QUANTISED

_PLAIN = ("index", "name", "delegate", "tensor", "dtype", "zero_point", "reason")
_RANGE = ("least", "largest", "low_share", "high_share", "used_share", "distinct")
_DISTANCE = (
    *("elements", "differing", "sqnr_db", "cosine"),
    *("largest_error", "largest_error_steps", "mean_error"),
)
COLUMNS = (
    *_PLAIN,
    *("operations", "vela_operator", "tosa_operator", "node", "module", "file", "line", "shape"),
    *("scale", "quantised_zero_point"),
    *_RANGE,
    *("rounding_db", "clipping_db"),
    *(f"{against}_{name}" for against in (QUANTISED, FLOAT) for name in _DISTANCE),
)


def row(entry: Record) -> dict[str, object]:
    """A layer of the record by COLUMNS; what it does not have is empty."""
    found: dict[str, object] = {name: entry.get(name) for name in _PLAIN}
    found |= {name: entry.get("range", {}).get(name) for name in _RANGE}
    found |= {name: entry.get("own", {}).get(name) for name in ("rounding_db", "clipping_db")}
    for against in (QUANTISED, FLOAT):
        distance = entry.get(against, {})
        found |= {f"{against}_{name}": distance.get(name) for name in _DISTANCE}
    return found | {
        "operations": " ".join(entry["operations"]["names"]),
        "vela_operator": entry.get("vela", {}).get("operator"),
        "tosa_operator": entry.get("tosa", {}).get("operator"),
        "node": entry.get("pytorch", {}).get("node"),
        **{name: entry.get("source", {}).get(name) for name in ("module", "file", "line")},
        "shape": "x".join(map(str, entry["shape"])),
        "scale": entry.get("quantisation", {}).get("scale"),
        "quantised_zero_point": entry.get("quantisation", {}).get("zero_point"),
    }
