"""The inference: what the CPU and the NPU do, one after the other, in milliseconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair

from ethosu_sdk.page.plot import Plot, drawn, named, short
from ethosu_sdk.readers.report.inputs import Inputs
from ethosu_sdk.records.parts.time_line import TimeLine
from ethosu_sdk.tables import times

_TITLE = "Inference"
_PROCESSORS = ("CPU", "NPU")
# What the parts of a time line are drawn as: so many have colours of their own.
_PARTS = {
    "kernel": "kernel",
    "npu": "NPU",
    "runtime": "runtime",
    "copy_in": "copy",
    "copy_out": "copy",
    "driver_start": "driver",
    "driver_stop": "driver",
    "interrupt": "driver",
}
_ROW_PIXELS = 34
_MOST = 1000  # parts: more are finer than a pixel, and slow to draw


def of(inputs: Inputs, name: str) -> Plot:
    """The time line of the profile, else of the run."""
    records = [row for row in (inputs.profile, inputs.run) if row is not None and row.time is not None]
    if not records:
        reasons = [row.reason for row in inputs.run.unavailable if row.path == "/time"]
        return Plot(
            name, _TITLE, f"There is no time of the inference: {next(iter(reasons), 'no record has it')}."
        )
    time, priced = records[0].time, records[0].priced
    assert time is not None  # records
    caveat = priced.caveat if priced is not None else ""
    text = f"{times.line(time)}. {f'It is {caveat}. ' if caveat else ''}{'; '.join(time.total.band)}."
    if len(time.parts) > _MOST:
        text += f" The {_MOST:,} longest of {len(time.parts):,} parts are drawn."
    return drawn(name, _TITLE, text, _chart(), parts=list(_bars(time)))


def _bars(time: TimeLine) -> Iterator[dict[str, Any]]:
    for row in sorted(time.parts, key=lambda row: -row.duration_s)[:_MOST]:
        yield {
            "on": row.on,
            "start": row.start_s * 1e3,
            "end": row.end_s * 1e3,
            "ms": row.duration_s * 1e3,
            "part": _PARTS[row.what],
            "name": short(row.label),
        }


def _chart() -> Any:
    return (
        altair.Chart(named("parts"))
        .mark_rect()
        .encode(
            x=altair.X("start:Q", title="ms", scale=altair.Scale(nice=False, zero=True)),
            x2="end:Q",
            y=altair.Y("on:N", sort=_PROCESSORS, title=None, scale=altair.Scale(domain=_PROCESSORS)),
            color=altair.Color(
                "part:N",
                title=None,
                scale=altair.Scale(domain=list(dict.fromkeys(_PARTS.values()))),
                legend=altair.Legend(orient="top"),
            ),
            tooltip=[
                altair.Tooltip("name:N"),
                altair.Tooltip("part:N"),
                altair.Tooltip("start:Q", format=",.4f", title="start, ms"),
                altair.Tooltip("ms:Q", format=",.4f", title="duration, ms"),
            ],
        )
        .properties(width="container", height=_ROW_PIXELS * len(_PROCESSORS))
    )
