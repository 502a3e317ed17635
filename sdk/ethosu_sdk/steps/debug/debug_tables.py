"""What `ethosu-sdk debug` shows on a terminal, made from its record alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.console.terminal import Ranked, escape
from ethosu_sdk.plain_text import counted
from ethosu_sdk.records.debug import Advice, Comparison, Debug, Distance, Layer, Own, Step
from ethosu_sdk.results import source_place
from ethosu_sdk.steps.debug.findings import BITS, CALIBRATION, FAULT, FLOAT, QUANTISED, WEIGHTS

_MOST_ROWS = 100  # of a program with more layers, the worst are shown
_EQUAL = "equal"
_NAMES = {QUANTISED: "the quantised model", FLOAT: "the float model"}
# Columns of the layers that a narrow terminal has no room for, the first one first.
_GIVE_WAY = ("shape", "type", "at limits", "used", "weights", "clipping", "rounding", "steps", "quantised dB")


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
    for name in ("used", "at limits", "quantised dB", "steps", "float dB", "rounding", "clipping", "weights"):
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
    for value in (own.rounding_db, own.clipping_db, row.weights.sqnr_db if row.weights else None):
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
        yield f"against {_NAMES[row.against]}", _break(record, row)
        if row.largest_drop is not None:
            yield "", f"largest drop in {_described(layers, row.largest_drop)}"
    for advice in record.advice:
        yield f"{advice.remedy} for", _advice(layers[advice.layer], advice)
    if any(row.against == FLOAT for row in record.comparisons) or record.change is not None:
        yield "change", _change(record)
    if record.dump is not None:
        yield "dump", f"{record.dump.file}, {counted(record.dump.arrays, 'array')}"
    for missing in record.unavailable:
        yield "unknown", f"{missing.path}: {missing.reason}"


def _break(record: Debug, row: Comparison) -> str:
    """Where a comparison breaks first."""
    limit = f"{record.thresholds.break_db:g} dB"
    if row.first_break is not None:
        others = (
            f"; also in {_numbers([step.layer for step in row.further_breaks])}" if row.further_breaks else ""
        )
        return f"first breaks in {_described(record.layers, row.first_break)}{others}"
    ratios = (layer.quantised if row.against == QUANTISED else layer.float for layer in record.layers)
    below = sum(
        ratio is not None
        and ratio.sqnr_db is not None
        and round(ratio.sqnr_db, 1) < record.thresholds.break_db
        for ratio in ratios
    )
    if below:
        return f"no layer breaks: {counted(below, 'layer')} below {limit} by rounding"
    return f"no layer falls below {limit}"


def _described(layers: Sequence[Layer], step: Step) -> str:
    before = f"{_EQUAL} → " if step.inputs_equal else ""
    if step.input_db is not None:
        before = f"{step.input_db:.1f} dB → "
    after = f"{step.output_db:.1f} dB" if step.output_db is not None else "no signal left"
    others = f", or in {_numbers(step.perhaps)} before it, not comparable" if step.perhaps else ""
    text = f"{_named(layers[step.layer])}: {before}{after}{others}"
    moved = step.misplaced
    if moved is None:
        return text
    where = f"{moved.operator} {moved.tensor}" if moved.layer is None else _named(layers[moved.layer])
    return f"{where}, which brings values to other places than the model; seen in {text}"


def _named(layer: Layer) -> str:
    operator = layer.tosa.operator if layer.tosa is not None else ""
    place = source_place.place(layer.source)
    where = f", {place}" if place else ""
    return f"layer {layer.index}, {operator} {layer.tensor}{where}"


def _numbers(layers: Sequence[int]) -> str:
    text = ", ".join(map(str, layers))
    return f"layer {text}" if len(layers) == 1 else f"layers {text}"


_LOSSES = {
    BITS: "rounding to its steps",
    CALIBRATION: "clipping to its range",
    WEIGHTS: "rounding of its weights",
}


def _advice(layer: Layer, row: Advice) -> str:
    where = row.module or row.node or ""
    cause = f"; {_cause(layer)}" if row.remedy == BITS and layer.shared is not None else ""
    return f"layer {row.layer}, {where}: {_LOSSES[row.remedy]} alone leaves {row.sqnr_db:.1f} dB{cause}"


def _cause(layer: Layer) -> str:
    """Why a layer has steps that are too large for its values."""
    shared = layer.shared
    assert shared is not None
    used = f"range {layer.range.used_share:.0%} used: " if layer.range is not None else ""
    return f"{used}shares its scale with {shared.module or shared.node} through {shared.through}"


def _change(record: Debug) -> str:
    """The operator to change first, and how."""
    change = record.change
    if change is None:
        limit = record.thresholds.advice_db
        ratios = (row.float.sqnr_db for row in record.layers if row.float is not None)
        if all(ratio is None or round(ratio, 1) >= limit for ratio in ratios):
            return f"nothing: no layer falls below {limit:g} dB against the float model"
        return "no single layer: the outputs lose little, or by many small losses; --quantize int16 gives all 16 bits"
    layer = record.layers[change.layer]
    name = _named(layer)
    if change.remedy == FAULT:
        return f"{name}: the NPU does not compute what the quantised model does; bits and samples do not help"
    if change.remedy == CALIBRATION:
        return (
            f"{name}: its values leave the calibrated range; give samples that have them: --calibration F.npz"
        )
    if change.remedy == WEIGHTS:
        return f"{name}: its weights lose too much in eight bits; train with quantisation, or split off its outliers"
    cause = f" ({_cause(layer)})" if layer.shared is not None else ""
    return f"{name}{cause}: give it 16 bits: {_sixteen_bits(change.module)}"


def _sixteen_bits(module: str | None) -> str:
    """How to give a module 16 bits: in the model file, or for all of the model."""
    if not module:
        return "--quantize int16, which gives them to all"
    return (
        f"def quantizer(q): q.set_module_name({module!r}, get_symmetric_a16w8_quantization_config()) in the model "
        "file, with the import from executorch.backends.arm.quantizer"
    )
