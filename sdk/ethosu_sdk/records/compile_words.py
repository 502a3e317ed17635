"""A compilation in words: what stays on the CPU, how the model was quantised, and the figures of an evaluation."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.terminal import escape
from ethosu_sdk.records import common
from ethosu_sdk.records.compile import Compilation, LsbHistogram, Pair, Refinement, Rewrite, Site, State

_NAMED = 4  # buffers of a state


def cpu_lines(record: Compilation) -> list[str]:
    """One line for each operator on the CPU and each reason, such as ``aten::avg_pool2d.out (1) on the CPU:
    REASON, at net.py:12 in Net.forward (pool)``."""
    return [
        f"{name} ({calls}) on the CPU: {reason}" + (f", at {where}" if where else "")
        for name, calls, reason, where in cpu_rows(record)
    ]


def cpu_rows(record: Compilation) -> list[tuple[str, str, str, str]]:
    return [
        (row.name, str(site.calls), cpu_reason(site), common.source_place(site.source))
        for row in record.cpu_operators
        for site in row.sites
    ]


def cpu_reason(site: Site) -> str:
    """Why calls are on the CPU, and why with a portable kernel."""
    return site.reason + (f"; portable: {site.portable}" if site.portable is not None else "")


def cpu_words(record: Compilation) -> str:
    calls = sum(row.calls for row in record.cpu_operators)
    return counted(calls, "operator call") if calls else "nothing"


def rewrite_words(rows: Sequence[Rewrite]) -> str:
    """What was rewritten for speed, such as ``3 operators for speed: pooling as mean (model.py:48), constants folded
    2``: each kind with its line, or with how many operators it took the place of."""
    kinds = {row.name: [other for other in rows if other.name == row.name] for row in rows}
    parts = []
    for name, found in kinds.items():
        calls = sum(row.calls for row in found)
        place = common.source_text(found[0].source)
        parts.append(f"{name} ({place})" if calls == 1 and place else f"{name} {calls}")
    return f"{counted(sum(row.calls for row in rows), 'operator')} for speed: {', '.join(parts)}"


def refinement_words(rows: Sequence[Refinement]) -> str:
    """What was done for accuracy, such as ``corrected biases 10: 39.6 → 40.2 dB on calibration samples``."""
    done = ", ".join(f"{row.name} {row.layers}" for row in rows)
    return f"{done}: {rows[0].before_db:g} → {rows[-1].after_db:g} dB on calibration samples"


def layout_words(record: Compilation) -> str:
    """How often the CPU changes the layout of images; nothing where it does not."""
    row = record.layout_changes
    if row is None or not row.calls:
        return ""
    return f"{counted(row.calls, 'change')} between NCHW and NHWC on the CPU, {counted(row.bytes, 'byte')} written"


def state_words(rows: Sequence[State]) -> str:
    """What the program keeps from one inference to the next."""
    names = ", ".join(row.name for row in rows[:_NAMED]) + (", …" if len(rows) > _NAMED else "")
    return f"{sum(row.bytes for row in rows):,} bytes in {counted(len(rows), 'buffer')}: {names}"


def quantised_words(record: Compilation) -> str:
    options, calibration = record.options, record.calibration
    words: str = "quantised before" if record.prequantized else options.quantize or ""
    words += f" per {options.quantize_per}" if options.quantize_per is not None else ""
    if options.quantizer is not None:
        words += f"{', ' if words else ''}quantizer: {options.quantizer}"
    samples = calibration.samples
    return f"{words}, {counted(samples, 'sample')} ({calibration.source})" if samples else words


ACCURACY_HEADINGS = ("reference → candidate", "top-1", "SQNR", "cosine", "max error")
_STEPS = ("0", "±1", "±2", "more")


def accuracy_tables(record: Compilation) -> list[RenderableType]:
    """The figures of each pair, and by how many steps the outputs differ; nothing when nothing was evaluated."""
    if record.accuracy is None:
        return []
    data = record.accuracy.data
    title = f"Accuracy, {counted(data.samples, 'sample')} of {escape(data.file)}"
    figures = _accuracy_table(title, ACCURACY_HEADINGS[1:])
    steps = _accuracy_table(
        "Values that differ by that many steps (LSBs) of the output's quantisation", _STEPS
    )
    for row, cells in zip(record.accuracy.pairs, accuracy_rows(record), strict=True):
        figures.add_row(*cells)
        if row.lsb_histogram is not None:
            steps.add_row(cells[0], *(f"{count:,}" for count in _by_size(row.lsb_histogram)))
    parts: list[RenderableType] = ["", figures]
    return [*parts, "", steps] if steps.row_count else parts


def accuracy_rows(record: Compilation) -> list[tuple[str, ...]]:
    """The figures of each pair, in the order of :data:`ACCURACY_HEADINGS`; none when nothing was evaluated."""
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


def _accuracy_table(title: str, columns: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", box=None)
    table.add_column(ACCURACY_HEADINGS[0], no_wrap=True)
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
