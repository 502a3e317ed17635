"""What `compile --evaluate` shows on a terminal, made from the record alone."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.console.terminal import escape
from ethosu_sdk.plain_text import counted
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.parts.accuracy import LsbHistogram, Pair

HEADINGS = ("reference → candidate", "top-1", "SQNR", "cosine", "max error")
_STEPS = ("0", "±1", "±2", "more")


def tables(record: Compilation) -> list[RenderableType]:
    """The figures of each pair, and how many quantisation steps the outputs differ by; nothing when nothing was
    evaluated."""
    if record.accuracy is None:
        return []
    data = record.accuracy.data
    title = f"Accuracy, {counted(data.samples, 'sample')} of {escape(data.file)}"
    figures = _table(title, HEADINGS[1:])
    steps = _table("Values that differ by that many steps (LSBs) of the output's quantisation", _STEPS)
    for row, cells in zip(record.accuracy.pairs, rows(record), strict=True):
        figures.add_row(*cells)
        if row.lsb_histogram is not None:
            steps.add_row(cells[0], *(f"{count:,}" for count in _by_size(row.lsb_histogram)))
    parts: list[RenderableType] = ["", figures]
    return [*parts, "", steps] if steps.row_count else parts


def rows(record: Compilation) -> list[tuple[str, ...]]:
    """The figures of each pair, in the order of :data:`HEADINGS`; none when nothing was evaluated."""
    if record.accuracy is None:
        return []
    unavailable = {row.path for row in record.unavailable}
    several = len(record.accuracy.outputs) > 1
    return [
        (
            f"{row.reference} → {row.candidate}" + (f", output {row.output}" if several else ""),
            _share(row),
            _ratio(row, is_infinite=f"/accuracy/pairs/{number}/sqnr_db" in unavailable),
            f"{row.cosine:.6f}" if row.cosine is not None else "",
            f"{row.max_abs_error:.4g}" if row.max_abs_error is not None else "",
        )
        for number, row in enumerate(record.accuracy.pairs)
    ]


def _table(title: str, columns: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", box=None)
    table.add_column(HEADINGS[0], no_wrap=True)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _share(row: Pair) -> str:
    if row.top1 is None:
        return ""
    return f"{row.top1.share:.2%} {'right' if row.reference == 'labels' else 'agree'}"


def _ratio(row: Pair, *, is_infinite: bool) -> str:
    if row.sqnr_db is not None:
        return f"{row.sqnr_db:.2f} dB"
    return "equal" if is_infinite and row.equal is not None and row.equal == row.elements else ""


def _by_size(histogram: LsbHistogram) -> list[int]:
    """Elements without a difference, of one step either way, of two, of more."""
    sizes = [0, 0, 0, histogram.below + histogram.above]
    for row in histogram.counts:
        sizes[min(abs(row.difference), 3)] += row.elements
    return sizes
