"""Accuracy: outputs of the run beside the model's, and layer by layer where `debug` has looked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ethosu_sdk.readers.report.inputs import Inputs
from ethosu_sdk.records.debug import Debug, Distance, Layer
from ethosu_sdk.records.run import ReferenceOutput
from ethosu_sdk.results import source_place


def of(inputs: Inputs) -> dict[str, Any]:
    """Rows of the outputs and of the layers, with the findings of `debug`; empty if no record has them."""
    found, debug = inputs.run.reference, inputs.debug
    return {
        "reference": reference(inputs),
        "outputs": [_output(row) for row in (found.outputs if found is not None else ())],
        "layers": [_layer(row) for row in (debug.layers if debug is not None else ())],
        "findings": list(_findings(debug)) if debug is not None else [],
    }


def reference(inputs: Inputs) -> str:
    """Which model's outputs those of the run are beside: `compile` keeps those of the model that it lowers."""
    compiled = inputs.compiled
    if compiled is None:
        return "the model in PyTorch"
    is_quantised = compiled.prequantized or compiled.options.quantize != "none"
    return f"the {'quantised' if is_quantised else 'floating-point'} model in PyTorch"


def _output(row: ReferenceOutput) -> tuple[Any, ...]:
    error = row.max_abs_error
    noise = "equal" if row.equal == row.elements else _db(row)
    return row.index, row.elements, row.equal, "" if error is None else f"{error:.4g}", noise


def _layer(row: Layer) -> tuple[Any, ...]:
    operator = row.tosa.operator if row.tosa is not None else ""
    return (
        row.index,
        row.tensor,
        ", ".join(filter(None, (operator, source_place.place(row.source)))),
        row.dtype,
        "" if row.range is None else f"{row.range.used_share:.0%}",
        *(_distance(found) for found in (row.quantised, row.float)),
        row.reason or "",
    )


def _distance(found: Distance | None) -> str:
    if found is None:
        return ""
    return "equal" if not found.differing else _db(found)


def _db(row: Distance | ReferenceOutput) -> str:
    return f"{row.sqnr_db:.1f} dB" if row.sqnr_db is not None else ""


def _findings(debug: Debug) -> Iterator[str]:
    for row in debug.comparisons:
        against = f"{row.layers:,} layers beside the {row.against} model"
        for step, words in (
            (row.first_break, "the first that breaks is"),
            (row.largest_drop, "the largest drop is in"),
        ):
            if step is not None:
                yield f"{against}: {words} {step.layer} ({step.tensor})"
        if row.first_break is None:
            yield f"{against}: none breaks"
    for advice in debug.advice:
        yield f"layer {advice.layer}: {advice.remedy} ({advice.sqnr_db:.1f} dB by itself)"
