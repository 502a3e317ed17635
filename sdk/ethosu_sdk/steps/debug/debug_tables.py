"""What `ethosu-sdk debug` shows on a terminal, made from its record alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.console.fitting import Ranked
from ethosu_sdk.console.terminal import escape
from ethosu_sdk.plain_text import counted
from ethosu_sdk.records.debug import Debug, Distance, Layer, Own, Step
from ethosu_sdk.results import source_place
from ethosu_sdk.steps.debug.findings import BITS, FLOAT, QUANTISED

_MOST_ROWS = 100  # of a program with more layers, the worst are shown
_EQUAL = "equal"
_NAMES = {QUANTISED: "the quantised model", FLOAT: "the float model"}
# Columns of the layers that a narrow terminal has no room for, the first one first.
_GIVE_WAY = ("shape", "type", "at limits", "used", "clipping", "rounding", "steps", "quantised dB")


def tables(record: Debug, folder: Path, rows: int | None) -> list[RenderableType]:
    """Layers, findings and files. `rows` limits the layers to those with the least SQNR."""
    shown = _chosen(record.layers, rows or _MOST_ROWS)
    return [_layers(shown, len(record.layers)), "", _findings(record, folder)]


def _chosen(layers: Sequence[Layer], most: int) -> list[Layer]:
    """The layers with the least SQNR, the worst first; all of them in their own order where there are no more than
    `most`."""
    if len(layers) <= most:
        return list(layers)
    return sorted(layers, key=lambda row: min(_figures(row), default=float("inf")))[:most]


def _figures(row: Layer) -> Iterator[float]:
    for distance in (row.quantised, row.float):
        if distance is not None and distance.sqnr_db is not None:
            yield distance.sqnr_db


def _layers(rows: Sequence[Layer], count: int) -> Table:
    title = counted(count, "layer") if len(rows) == count else f"the worst {len(rows)} of {count} layers"
    table = Ranked(title=title, title_justify="left", box=None, pad_edge=False, drop=_GIVE_WAY)
    table.add_column("#", justify="right")
    for name in ("operator", "where", "shape", "type"):
        table.add_column(name)
    for name in ("used", "at limits", "quantised dB", "steps", "float dB", "rounding", "clipping"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*(escape(cell) for cell in cells(row)))
    return table


def cells(row: Layer) -> Iterator[str]:
    """A row of the table of layers."""
    yield str(row.index)
    yield row.tosa.operator if row.tosa is not None else " ".join(row.operations.names)
    sources = (row.source,) if row.writers is None else (part.source for part in row.writers)
    places = map(source_place.module_or_line, sources)
    yield ", ".join(dict.fromkeys(place for place in places if place)) or row.tensor
    yield "x".join(map(str, row.shape))
    yield row.dtype
    known = row.range
    yield f"{known.used_share:.0%}" if known else ""
    yield f"{known.low_share + known.high_share:.1%}" if known else ""
    near = row.quantised
    yield _ratio(near)
    yield f"{near.largest_error_steps:.0f}" if near and near.largest_error_steps is not None else ""
    yield _ratio(row.float)
    own = row.own or Own()
    for value in (own.rounding_db, own.clipping_db):
        yield f"{value:.1f}" if value is not None else ""


def _ratio(distance: Distance | None) -> str:
    if distance is None:
        return ""
    if distance.sqnr_db is not None:
        return f"{distance.sqnr_db:.1f}"
    return _EQUAL if distance.differing == 0 else "?"


def _findings(record: Debug, folder: Path) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, text in (*finding_rows(record), ("files", str(folder))):
        table.add_row(name, escape(text))
    return table


def finding_rows(record: Debug) -> Iterator[tuple[str, str]]:
    """Name and text of each finding."""
    layers, counts = record.layers, record.counts
    yield (
        "compared",
        f"{counts.quantised} of {counted(counts.layers, 'layer')} with {_NAMES[QUANTISED]}, {counts.float} with "
        f"{_NAMES[FLOAT]}",
    )
    for row in record.comparisons:
        text = f"no layer falls below {record.thresholds.break_db:g} dB"
        if row.first_break is not None:
            text = f"first breaks in {_described(layers, row.first_break)}"
        yield f"against {_NAMES[row.against]}", text
        if row.largest_drop is not None:
            yield "", f"largest drop in {_described(layers, row.largest_drop)}"
    for advice in record.advice:
        where = advice.module or advice.node or ""
        loss = "rounding to its steps" if advice.remedy == BITS else "clipping to its range"
        yield (
            f"{advice.remedy} for",
            f"layer {advice.layer}, {where}: {loss} alone leaves {advice.sqnr_db:.1f} dB",
        )
    if record.dump is not None:
        yield "dump", f"{record.dump.file}, {counted(record.dump.arrays, 'array')}"
    for missing in record.unavailable:
        yield "unknown", f"{missing.path}: {missing.reason}"


def _described(layers: Sequence[Layer], step: Step) -> str:
    layer = layers[step.layer]
    operator = layer.tosa.operator if layer.tosa is not None else ""
    place = source_place.place(layer.source)
    where = f", {place}" if place else ""
    before = f"{step.input_db:.1f} dB → " if step.input_db is not None else ""
    after = f"{step.output_db:.1f} dB" if step.output_db is not None else "no signal left"
    return f"layer {step.layer}, {operator} {step.tensor}{where}: {before}{after}"
