"""The summary of a compile record: what was made, what stays on the CPU, Vela's estimates, how exact it is."""

from __future__ import annotations

from collections.abc import Iterator

from ethosu_sdk.readers.summary.markdown import table, title
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.tables import compile_rows, evaluate_tables

# Of Vela's estimates, those that a reader of a change looks for.
_ESTIMATES = ("total_cycles", "inference_time", "sram_used", "dram_used", "off_chip_flash_used", "macs")


def lines(record: Compilation) -> list[str]:
    """The lines of the summary."""
    model = record.model
    facts = [
        ("source", record.source),
        ("target", record.target_words),
        ("program", f"{model.file}, {model.bytes:,} bytes, SHA-256 {model.sha256[:16]}…"),
        ("quantised", compile_rows.quantised_words(record)),
        ("inputs and outputs", record.options.io),
        ("delegates", len(record.delegates)),
        ("on the CPU", compile_rows.cpu_words(record)),
    ]
    return [
        title(record.status, "compile", model.file),
        *table(("", ""), facts),
        *table(("on the CPU", "calls", "reason", "where"), compile_rows.cpu_rows(record)),
        *table(("NPU", "value", "unit", "source"), _estimates(record)),
        *table(evaluate_tables.HEADINGS, evaluate_tables.rows(record)),
        *table(("check", "", "detail"), _checks(record)),
        *table(("warning",), ((warning,) for warning in record.warnings)),
    ]


def _estimates(record: Compilation) -> Iterator[tuple[str, str, str, str]]:
    for delegate in record.delegates:
        for row in delegate.estimates:
            if row.name in _ESTIMATES and row.value:
                name = f"delegate {delegate.index}: {row.name.replace('_', ' ')}"
                value = f"{row.value:,.6g}" if row.unit == "s" else f"{row.value:,.0f}"
                yield name, value, row.unit, row.source


def _checks(record: Compilation) -> Iterator[tuple[str, str, str]]:
    verdict = record.accuracy.verdict if record.accuracy is not None else None
    for row in verdict.checks if verdict is not None else ():
        yield row.name, row.status, row.detail
