"""What was tried, and a line for every operator on the CPU, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.console.terminal import escape
from ethosu_sdk.records.advice import CpuCall, Figure, Item, Judge, Trial, Tried

_BY_OTHERS = ("smaller", "closer")
_COSTS: dict[Judge, str] = {
    "fit": "cycles",
    "time of an inference": "time",
    "NPU and CPU cycles": "cycles",
    "NPU cycles": "NPU cycles",
}
_HELPS = ("better", "smaller", "closer")
STATES = {
    "better": "better",
    "smaller": "smaller",
    "closer": "closer to floating point",
    "same": "no gain",
    "worse": "worse",
    "broken": "outputs break",
    "unjudged": "not judged",
    "failed": "failed",
}
JUDGES = {
    "fit": "whether it fits the memory of the board, then by its cycles",
    "time of an inference": "the time of an inference",
    "NPU and CPU cycles": "NPU and CPU cycles together, since the clock of the CPU is not known",
    "NPU cycles": "NPU cycles, since those of the CPU were not counted",
}


def tables(tried: Tried) -> list[RenderableType]:
    """A table for each change that helps, the best first; then a line for each of the others."""
    head = f"tried on {tried.simulator}, judged by {JUDGES[tried.judged_by]}"
    parts: list[RenderableType] = [head, ""]
    found = [row for row in tried.trials if helps(row)]
    for number, row in enumerate(found, start=1):
        parts += [_pairs(f"{number}. {title(row, tried)}", pairs(row)), ""]
    if not found:
        parts += ["no change that was tried helps", ""]
    others = [(row.name, _other(row)) for row in tried.trials if not helps(row)]
    others += [(name, "not tried: it was stopped before") for name in tried.left]
    return [*parts, _pairs("tried, and not advised", others)] if others else parts[:-1]


def helps(row: Trial) -> bool:
    """Whether a change is advised."""
    return row.state in _HELPS


def title(row: Trial, tried: Tried) -> str:
    """The change, and what it brought."""
    gain = "" if row.gain is None else f" {-row.gain:+.1%}"
    if tried.judged_by == "fit" and row.fits:
        return f"{row.name}: it fits,{gain} cycles" if gain else f"{row.name}: it fits"
    if row.state in _BY_OTHERS:
        cost = "" if row.gain is None else f", {_COSTS[tried.judged_by]}{gain}"
        return f"{row.name}: {_brought(row)}{cost}"
    return f"{row.name}: {STATES[row.state]}{gain}"


def _brought(row: Trial) -> str:
    """What a change brought that saves no time: bytes, or decibels."""
    outputs = row.outputs
    if row.state == "closer" and outputs is not None and outputs.sqnr_after_db is not None:
        before = "" if outputs.sqnr_before_db is None else f" instead of {outputs.sqnr_before_db:.1f} dB"
        return f"SQNR {outputs.sqnr_after_db:.1f} dB{before}"
    saved = [
        f"{figure.metric} {figure.after / figure.before - 1:+.1%}"
        for figure in row.figures
        if figure.metric in ("SRAM", "flash") and figure.before and figure.after < figure.before
    ]
    return ", ".join(saved) if saved else STATES[row.state]


def pairs(row: Trial) -> Iterator[tuple[str, str]]:
    """A trial as names and texts."""
    yield "change", row.change
    if row.command is not None:
        yield "do", row.command
    for line in row.code or ():
        yield "write", line
    for figure in row.figures:
        if figure.before != figure.after:
            yield "got", _figure_text(figure)
    if row.outputs is not None:
        yield "outputs", f"{row.outputs.state}: {row.outputs.text}"
    for limit in row.limits:
        yield "but", limit


def on_the_cpu(rows: Sequence[CpuCall]) -> Table:
    """A few lines for each operator on the CPU."""
    found: list[tuple[str, str]] = []
    for row in rows:
        calls = f" ({row.calls} calls)" if row.calls > 1 else ""
        found.append((row.name + calls, row.where or "place not known"))
        found += [(f"  {name}", text) for name, text in cpu_pairs(row)]
    return _pairs("on the CPU", found)


def cpu_pairs(row: CpuCall) -> Iterator[tuple[str, str]]:
    """Why an operator is on the CPU, what it costs and what replaces it, as names and texts."""
    yield "why", row.why
    if row.constraint is not None:
        yield "taken", row.constraint
    if row.cycles is not None:
        border = f", and {row.border_cycles:,} for its borders" if row.border_cycles else ""
        yield "costs", f"{row.cycles:,} CPU cycles (modelled){border}"
    elif row.instructions is not None:
        yield "costs", f"{row.instructions:,} instructions (counted)"
    if row.replacement is not None:
        yield "instead", row.replacement
    if row.results is not None:
        yield "results", row.results


def _pairs(title_text: str, rows: Sequence[tuple[str, str]] | Iterator[tuple[str, str]]) -> Table:
    table = Table(title=escape(title_text), title_justify="left", box=None, show_header=False, pad_edge=False)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(escape(name), escape(text))
    return table


def _other(row: Trial) -> str:
    if row.fits is False and row.reason is not None and row.state != "broken":
        return row.reason
    gain = "" if row.gain is None else f" ({-row.gain:+.1%})"
    outputs = f"; {row.outputs.text}" if row.outputs is not None and row.state == "broken" else ""
    reason = f": {row.reason}" if row.reason is not None else ""
    return f"{STATES[row.state]}{gain}{outputs}{reason}"


def was_tried(item: Item, tried: Tried | None) -> bool:
    """Whether the command line or the lines of an advice were tried."""
    return tried is not None and any(
        (row.command is not None and row.command == item.command)
        or (row.code is not None and row.code == item.code)
        for row in tried.trials
        if len(row.parts) == 1
    )


def _figure_text(row: Figure) -> str:
    source = f" ({row.source})" if row.source is not None else ""
    share = f", {row.after / row.before - 1:+.1%}" if row.before else ""
    before = "unknown" if row.before is None else _number(row.before)
    unit = "" if row.metric.endswith(row.unit) or row.unit == "calls" else f" {row.unit}"
    return f"{row.metric} {before} → {_number(row.after)}{unit}{share}{source}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3f}"
