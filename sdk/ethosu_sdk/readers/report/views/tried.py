"""What `advise --try` got: a row for each change, the program as it is first, and the lines that make the change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ethosu_sdk.readers.advise import tried_tables
from ethosu_sdk.readers.report.views import advice_rows
from ethosu_sdk.records.advice import Figure, Judge, MetricName, SimulatorName, Trial, Tried
from ethosu_sdk.results import trial_verdict
from ethosu_sdk.tables import times

_JUDGED: dict[Judge, MetricName] = {
    "fit": "NPU cycles",
    "time of an inference": "time of an inference",
    "NPU and CPU cycles": "total cycles",
    "NPU cycles": "NPU cycles",
}
_SIMULATORS: dict[SimulatorName, str] = {"qemu": "QEMU", "host": "the host simulator", "fvp": "Arm's FVP"}
_OUTPUTS = "outputs, SQNR to float"
_WORDS = (
    "SQNR to float is the signal-to-noise ratio of the outputs beside those of the floating-point model. "
    "Outputs are equal where no element differs from those of the program as it is, close where at most "
    f"{trial_verdict.CLOSE_DB:g} dB is lost, lossy where more is lost or the change computes something else "
    f"by design, and broken where more is lost and less than {trial_verdict.BROKEN_DB:g} dB are left."
)
_BYTES: Sequence[MetricName] = ("SRAM", "flash")


def of(tried: Tried) -> dict[str, Any]:
    """The table of all trials, those that help with their lines, and how they were judged."""
    columns = _columns(tried)
    return {
        "head": f"Each change was compiled and run on {_SIMULATORS[tried.simulator]}, and is judged by "
        f"{tried_tables.JUDGES[tried.judged_by]}. The best one is first.",
        "columns": ["difference", _title(columns[0]), *(f"{name}, bytes" for name in columns[1:]), _OUTPUTS],
        "words": _WORDS,
        "before": _before(tried, columns),
        "rows": [_row(row, tried, columns) for row in tried.trials],
        "left": tried.left,
        "details": [
            {"title": tried_tables.title(row, tried), "rows": advice_rows.of(tried_tables.pairs(row))}
            for row in tried.trials
            if tried_tables.helps(row)
        ],
    }


def best(tried: Tried) -> dict[str, str] | None:
    """The change that helps most, for the first figures of the page; None where none helps."""
    row = next((row for row in tried.trials if tried_tables.helps(row)), None)
    if row is None:
        return None
    if tried.judged_by == "fit":
        text = "it fits" if row.fits else tried_tables.STATES[row.state]
    else:
        text = _difference(row.gain) or tried_tables.STATES[row.state]
    metric: MetricName = "SRAM" if tried.judged_by == "fit" else _JUDGED[tried.judged_by]
    found = next((figure for figure in row.figures if figure.metric == metric), None)
    values = "" if found is None else f"{_step(found)}: "
    outputs = f"; outputs {row.outputs.state}" if row.outputs is not None else ""
    note = f"{values}{row.change}{outputs}{_more_sram(row) if metric != 'SRAM' else ''}"
    return {"name": "best change that was tried", "text": text, "note": note, "part": "advice"}


def _more_sram(row: Trial) -> str:
    """What a change costs in SRAM, where it costs any."""
    found = next((figure for figure in row.figures if figure.metric == "SRAM"), None)
    if found is None or not found.before or found.after <= found.before:
        return ""
    return f"; {_step(found)} ({found.after / found.before - 1:+.1%})".replace("%)", " %)")


def _step(row: Figure) -> str:
    unit = "" if row.metric == "time of an inference" else f" {row.unit}"
    return f"{row.metric} {_value(row.metric, row.before)} → {_value(row.metric, row.after)}{unit}"


def _columns(tried: Tried) -> list[MetricName]:
    """What is judged by, then bytes."""
    return [_JUDGED[tried.judged_by], *_BYTES]


def _title(name: MetricName) -> str:
    return "inference" if name == "time of an inference" else f"{name}, modelled"


def _before(tried: Tried, columns: Sequence[MetricName]) -> list[str]:
    """The cells of the program as it is."""
    known = {
        figure.metric: figure.before
        for row in tried.trials
        for figure in row.figures
        if figure.before is not None
    }
    own = next((row.outputs.sqnr_before_db for row in tried.trials if row.outputs is not None), None)
    ratio = "" if own is None else f"{own:.1f} dB"
    return ["", *(_value(name, known.get(name)) for name in columns), ratio]


def _row(row: Trial, tried: Tried, columns: Sequence[MetricName]) -> dict[str, Any]:
    known = {figure.metric: figure.after for figure in row.figures}
    return {
        "change": row.change,
        "note": row.name,
        "helps": tried_tables.helps(row),
        "result": _result(row, tried),
        "reason": "" if row.fits is False else " ".join((row.reason or "").split()),
        "cells": [_difference(row.gain), *(_value(name, known.get(name)) for name in columns), _outputs(row)],
    }


def _result(row: Trial, tried: Tried) -> str:
    if row.fits is False:
        return "does not fit"
    if tried.judged_by == "fit" and row.fits and row.state != "broken":
        return "fits"
    return tried_tables.STATES[row.state]


def _difference(gain: float | None) -> str:
    return "" if gain is None else f"{round(-100 * gain, 1) + 0.0:+.1f} %"


def _value(name: MetricName, value: float | None) -> str:
    if value is None:
        return ""
    return times.milliseconds(value / 1e3) if name == "time of an inference" else f"{value:,.0f}"


def _outputs(row: Trial) -> str:
    outputs = row.outputs
    if outputs is None:
        return ""
    ratio = "" if outputs.sqnr_after_db is None else f", {outputs.sqnr_after_db:.1f} dB"
    return f"{outputs.state}{ratio}"


def parts(tried: Tried | None) -> Iterator[str]:
    """The names of the single changes in trials that help."""
    for row in tried.trials if tried is not None else ():
        if tried_tables.helps(row):
            yield from row.parts
