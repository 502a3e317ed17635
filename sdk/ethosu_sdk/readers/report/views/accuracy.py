"""Accuracy: outputs of the run beside the model's, and layer by layer where `debug` has looked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ethosu_sdk.readers.report.inputs import DEBUG, Inputs
from ethosu_sdk.readers.report.views.operations import origin
from ethosu_sdk.records import Record

_AGAINST = ("quantised", "float")


def of(inputs: Inputs) -> dict[str, Any]:
    """Rows of the outputs and of the layers, with the findings of `debug`; empty if no record has them."""
    debug = inputs.record(DEBUG)
    return {
        "outputs": [_output(row) for row in inputs.run.get("reference", {}).get("outputs", ())],
        "layers": [_layer(row) for row in debug.get("layers", ())],
        "findings": list(_findings(debug)),
    }


def _output(row: Record) -> tuple[Any, ...]:
    error = row.get("max_abs_error")
    return row["index"], row["elements"], row["equal"], "" if error is None else f"{error:.4g}", _db(row)


def _layer(row: Record) -> tuple[Any, ...]:
    used = row.get("range", {}).get("used_share")
    return (
        row["index"],
        row["tensor"],
        origin({key: row[key] for key in ("tosa", "source") if key in row}),
        row["dtype"],
        "" if used is None else f"{used:.0%}",
        *(_distance(row.get(against)) for against in _AGAINST),
        row.get("reason", ""),
    )


def _distance(found: Record | None) -> str:
    if found is None:
        return ""
    return "equal" if not found["differing"] else _db(found)


def _db(row: Record) -> str:
    return f"{row['sqnr_db']:.1f} dB" if "sqnr_db" in row else ""


def _findings(debug: Record) -> Iterator[str]:
    for row in debug.get("comparisons", ()):
        against = f"{row['layers']:,} layers beside the {row['against']} model"
        for name, words in (
            ("first_break", "the first that breaks is"),
            ("largest_drop", "the largest drop is in"),
        ):
            if name in row:
                yield f"{against}: {words} {row[name]['layer']} ({row[name]['tensor']})"
        if "first_break" not in row:
            yield f"{against}: none breaks"
    for row in debug.get("advice", ()):
        yield f"layer {row['layer']}: {row['remedy']} ({row['sqnr_db']:.1f} dB by itself)"
