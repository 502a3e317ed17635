"""What `ethosu-sdk debug` shows on a terminal, made from its record alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.console.terminal import escape
from ethosu_sdk.records import Record
from ethosu_sdk.results import source_place
from ethosu_sdk.steps.debug.findings import BITS, FLOAT, QUANTISED

_MOST_ROWS = 100  # of a program with more layers, the worst are shown
_EQUAL = "equal"
_NAMES = {QUANTISED: "the quantised model", FLOAT: "the float model"}


def tables(record: Record, folder: Path, rows: int | None) -> list[RenderableType]:
    """Layers, findings and files. `rows` limits the layers to those with the least SQNR."""
    shown = _chosen(record["layers"], rows or _MOST_ROWS)
    return [_layers(shown, len(record["layers"])), "", _findings(record, folder)]


def _chosen(layers: Sequence[Record], most: int) -> list[Record]:
    """The layers with the least SQNR, in their order."""
    ranked = sorted(layers, key=lambda row: min(_figures(row), default=float("inf")))
    chosen = {row["index"] for row in ranked[:most]}
    return [row for row in layers if row["index"] in chosen]


def _figures(row: Record) -> Iterator[float]:
    for against in (QUANTISED, FLOAT):
        if "sqnr_db" in row.get(against, {}):
            yield row[against]["sqnr_db"]


def _layers(rows: Sequence[Record], count: int) -> Table:
    title = f"{count} layers" if len(rows) == count else f"the worst {len(rows)} of {count} layers"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("#", justify="right")
    for name in ("operator", "where", "shape", "type"):
        table.add_column(name, overflow="fold")
    for name in ("used", "at limits", "quantised dB", "steps", "float dB", "rounding", "clipping"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*(escape(cell) for cell in cells(row)))
    return table


def cells(row: Record) -> Iterator[str]:
    """A row of the table of layers."""
    yield str(row["index"])
    yield row.get("tosa", {}).get("operator") or " ".join(row["operations"]["names"])
    places = [source_place.module_or_line(part) for part in row.get("writers", (row,))]
    yield ", ".join(dict.fromkeys(place for place in places if place)) or row["tensor"]
    yield "x".join(map(str, row["shape"]))
    yield row["dtype"]
    known = row.get("range")
    yield f"{known['used_share']:.0%}" if known else ""
    yield f"{known['low_share'] + known['high_share']:.1%}" if known else ""
    near = row.get(QUANTISED)
    yield _ratio(near)
    yield f"{near['largest_error_steps']:.0f}" if near and "largest_error_steps" in near else ""
    yield _ratio(row.get(FLOAT))
    for name in ("rounding_db", "clipping_db"):
        own = row.get("own", {})
        yield f"{own[name]:.1f}" if name in own else ""


def _ratio(distance: Record | None) -> str:
    if distance is None:
        return ""
    if "sqnr_db" in distance:
        return f"{distance['sqnr_db']:.1f}"
    return _EQUAL if distance["differing"] == 0 else "?"


def _findings(record: Record, folder: Path) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, text in (*finding_rows(record), ("files", str(folder))):
        table.add_row(name, escape(text))
    return table


def finding_rows(record: Record) -> Iterator[tuple[str, str]]:
    """Name and text of each finding."""
    layers, counts, limits = record["layers"], record["counts"], record["thresholds"]
    yield (
        "compared",
        f"{counts[QUANTISED]} of {counts['layers']} layers with {_NAMES[QUANTISED]}, {counts[FLOAT]} with "
        f"{_NAMES[FLOAT]}",
    )
    for row in record["comparisons"]:
        name = _NAMES[row["against"]]
        first = row.get("first_break")
        text = f"no layer falls below {limits['break_db']:g} dB"
        if first is not None:
            text = f"first breaks in {_described(layers, first)}"
        yield f"against {name}", text
        if "largest_drop" in row:
            yield "", f"largest drop in {_described(layers, row['largest_drop'])}"
    for row in record["advice"]:
        where = row.get("module") or row.get("node", "")
        loss = "rounding to its steps" if row["remedy"] == BITS else "clipping to its range"
        yield (
            f"{row['remedy']} for",
            f"layer {row['layer']}, {where}: {loss} alone leaves {row['sqnr_db']:.1f} dB",
        )
    if "dump" in record:
        yield "dump", f"{record['dump']['file']}, {record['dump']['arrays']} arrays"
    for row in record["unavailable"]:
        yield "unknown", f"{row['path']}: {row['reason']}"


def _described(layers: Sequence[Record], step: Record) -> str:
    layer = layers[step["layer"]]
    operator = layer.get("tosa", {}).get("operator", "")
    module = layer.get("source", {}).get("module")
    where = f" ({module})" if module else ""
    before = f"{step['input_db']:.1f} dB → " if "input_db" in step else ""
    after = f"{step['output_db']:.1f} dB" if "output_db" in step else "no signal left"
    return f"layer {step['layer']}, {operator} {step['tensor']}{where}: {before}{after}"
