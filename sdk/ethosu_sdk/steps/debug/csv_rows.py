"""debug.csv: a row for each layer, one figure in each column."""

from __future__ import annotations

from collections.abc import Sequence

from ethosu_sdk.records.debug import Layer
from ethosu_sdk.records.kind import Part
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
    *("rounding_db", "clipping_db", "weights_db", "shares_scale_with"),
    *(f"{against}_{name}" for against in (QUANTISED, FLOAT) for name in _DISTANCE),
)


def row(entry: Layer) -> dict[str, object]:
    """A layer of the record by COLUMNS; what it does not have is empty."""
    found = _members(entry, _PLAIN) | _members(entry.range, _RANGE)
    found |= _members(entry.own, ("rounding_db", "clipping_db"))
    for against, distance in ((QUANTISED, entry.quantised), (FLOAT, entry.float)):
        found |= {f"{against}_{name}": value for name, value in _members(distance, _DISTANCE).items()}
    known = entry.quantisation
    return found | {
        "operations": " ".join(entry.operations.names),
        "vela_operator": entry.vela.operator if entry.vela is not None else None,
        "tosa_operator": entry.tosa.operator if entry.tosa is not None else None,
        "node": entry.pytorch.node if entry.pytorch is not None else None,
        **_members(entry.source, ("module", "file", "line")),
        "shape": "x".join(map(str, entry.shape)),
        "scale": known.scale if known is not None else None,
        "weights_db": entry.weights.sqnr_db if entry.weights is not None else None,
        "shares_scale_with": entry.shared.module or entry.shared.node if entry.shared is not None else None,
        "quantised_zero_point": known.zero_point if known is not None else None,
    }


def _members(part: Part | None, names: Sequence[str]) -> dict[str, object]:
    """The members `names` of `part`, None where there is none."""
    return {name: getattr(part, name, None) for name in names}
