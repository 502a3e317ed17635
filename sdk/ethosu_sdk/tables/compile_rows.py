"""What stays on the CPU and how a model was quantised, as rows and words: the terminal and summaries show them."""

from __future__ import annotations

from ethosu_sdk.records import Record
from ethosu_sdk.results import source_place


def cpu_lines(record: Record) -> list[str]:
    """One line for each operator on the CPU and each reason, such as ``aten::avg_pool2d.out (1) on the CPU:
    REASON, at net.py:12 (pool)``."""
    return [
        f"{row['name']} ({site['calls']}) on the CPU: {site['reason']}"
        + (f", at {where}" if (where := place(site)) else "")
        for row in record["cpu_operators"]
        for site in row["sites"]
    ]


def cpu_rows(record: Record) -> list[tuple[str, str, str, str]]:
    """Operator, calls, reason and place of what stays on the CPU."""
    return [
        (row["name"], str(site["calls"]), site["reason"], place(site))
        for row in record["cpu_operators"]
        for site in row["sites"]
    ]


def cpu_words(record: Record) -> str:
    """How much stays on the CPU."""
    calls = sum(row["calls"] for row in record["cpu_operators"])
    return f"{calls} operator calls" if calls else "nothing"


def quantised_words(record: Record) -> str:
    """How the model was quantised, and with what."""
    options, calibration = record["options"], record["calibration"]
    words: str = "quantised before" if record["prequantized"] else options.get("quantize", "")
    words += f" per {options['quantize_per']}" if "quantize_per" in options else ""
    if "quantizer" in options:
        words += f"{', ' if words else ''}quantizer: {options['quantizer']}"
    samples = calibration["samples"]
    return f"{words}, {samples} samples ({calibration['source']})" if samples else words


def place(part: Record) -> str:
    """Where in the model, such as ``net.py:12 (block.conv)``; empty when that is not known."""
    source = part.get("source", {})
    words = source_place.line(part)
    if source.get("module"):
        words += f" ({source['module']})" if words else source["module"]
    return words
