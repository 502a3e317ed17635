"""What stays on the CPU and how a model was quantised, as rows and words: the terminal and summaries show them."""

from __future__ import annotations

from collections.abc import Sequence

from ethosu_sdk.plain_text import counted
from ethosu_sdk.records.compile import Compilation, Site, State
from ethosu_sdk.results import source_place

_NAMED = 4  # buffers of a state


def cpu_lines(record: Compilation) -> list[str]:
    """One line for each operator on the CPU and each reason, such as ``aten::avg_pool2d.out (1) on the CPU:
    REASON, at net.py:12 in Net.forward (pool)``."""
    return [
        f"{name} ({calls}) on the CPU: {reason}" + (f", at {where}" if where else "")
        for name, calls, reason, where in cpu_rows(record)
    ]


def cpu_rows(record: Compilation) -> list[tuple[str, str, str, str]]:
    """Operator, calls, reason and place of what stays on the CPU."""
    return [
        (row.name, str(site.calls), why(site), source_place.place(site.source))
        for row in record.cpu_operators
        for site in row.sites
    ]


def why(site: Site) -> str:
    """Why calls are on the CPU, and why with a portable kernel."""
    return site.reason + (f"; portable: {site.portable}" if site.portable is not None else "")


def cpu_words(record: Compilation) -> str:
    """How much stays on the CPU."""
    calls = sum(row.calls for row in record.cpu_operators)
    return counted(calls, "operator call") if calls else "nothing"


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
    """How the model was quantised, and with what."""
    options, calibration = record.options, record.calibration
    words: str = "quantised before" if record.prequantized else options.quantize or ""
    words += f" per {options.quantize_per}" if options.quantize_per is not None else ""
    if options.quantizer is not None:
        words += f"{', ' if words else ''}quantizer: {options.quantizer}"
    samples = calibration.samples
    return f"{words}, {counted(samples, 'sample')} ({calibration.source})" if samples else words
