"""What `compile --evaluate` shows on a terminal, made from the record alone."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.console.terminal import escape
from ethosu_sdk.records import Record

HEADINGS = ("reference → candidate", "top-1", "SQNR", "cosine", "max error")
_STEPS = ("0", "±1", "±2", "more")


def tables(record: Record) -> list[RenderableType]:
    """The figures of each pair, and how many quantisation steps the outputs differ by; nothing when nothing was
    evaluated."""
    if "accuracy" not in record:
        return []
    accuracy = record["accuracy"]
    data = accuracy["data"]
    title = f"Accuracy, {data['samples']:,} sample(s) of {escape(data['file'])}"
    figures = _table(title, HEADINGS[1:])
    steps = _table("Values that differ by that many steps (LSBs) of the output's quantisation", _STEPS)
    for row, cells in zip(accuracy["pairs"], rows(record), strict=True):
        figures.add_row(*cells)
        name = cells[0]
        if "lsb_histogram" in row:
            steps.add_row(name, *(f"{count:,}" for count in _by_size(row["lsb_histogram"])))
    parts: list[RenderableType] = ["", figures]
    return [*parts, "", steps] if steps.row_count else parts


def rows(record: Record) -> list[tuple[str, ...]]:
    """The figures of each pair, in the order of :data:`HEADINGS`; none when nothing was evaluated."""
    accuracy = record.get("accuracy", {"pairs": ()})
    reasons = {row["path"]: row["reason"] for row in record["unavailable"]}
    found: list[tuple[str, ...]] = []
    for number, row in enumerate(accuracy["pairs"]):
        infinite = reasons.get(f"/accuracy/pairs/{number}/sqnr_db") and row["equal"] == row["elements"]
        found.append(
            (
                _name(row, len(accuracy["outputs"])),
                _share(row),
                f"{row['sqnr_db']:.2f} dB" if "sqnr_db" in row else "equal" if infinite else "",
                f"{row['cosine']:.6f}" if "cosine" in row else "",
                f"{row['max_abs_error']:.4g}" if "max_abs_error" in row else "",
            )
        )
    return found


def _table(title: str, columns: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", box=None)
    table.add_column(HEADINGS[0], no_wrap=True)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _name(row: Record, outputs: int) -> str:
    words = f"{row['reference']} → {row['candidate']}"
    return f"{words}, output {row['output']}" if outputs > 1 else words


def _share(row: Record) -> str:
    if "top1" not in row:
        return ""
    what = "right" if row["reference"] == "labels" else "agree"
    return f"{row['top1']['share']:.2%} {what}"


def _by_size(histogram: Record) -> list[int]:
    """Elements without a difference, of one step either way, of two, of more."""
    sizes = [0, 0, 0, histogram["below"] + histogram["above"]]
    for row in histogram["counts"]:
        sizes[min(abs(row["difference"]), 3)] += row["elements"]
    return sizes
