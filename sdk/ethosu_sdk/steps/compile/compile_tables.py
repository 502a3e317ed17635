"""What `ethosu-sdk compile` shows on a terminal, made from its record alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.console.terminal import escape
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.records.compile import Compilation, CpuOperator, Delegate
from ethosu_sdk.results import source_place
from ethosu_sdk.steps.compile import chain_record, check_record
from ethosu_sdk.tables import compile_rows, evaluate_tables

_AREAS = (
    ("sram", "SRAM"),
    ("dram", "DRAM"),
    ("on_chip_flash", "on-chip flash"),
    ("off_chip_flash", "off-chip flash"),
)


def tables(record: Record, folder: Path) -> list[RenderableType]:
    """The summary, what stays on the CPU, Vela's estimates and the accuracy: each a table, empty ones left out."""
    content = kinds.COMPILE.convert(record)
    parts: list[RenderableType] = [_summary(record, content, folder)]
    if content.cpu_operators:
        parts += ["", _cpu_table(content.cpu_operators)]
    if content.delegates:
        parts += ["", _estimates_table(content.delegates)]
    return parts + evaluate_tables.tables(content)


def _summary(record: Record, content: Compilation, folder: Path) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    model = content.model
    for name, text in (
        ("program", f"{model.file}, {model.bytes:,} bytes"),
        ("target", content.target_words),
        *([("board", content.board_profile.name)] if content.board_profile else []),
        ("quantised", compile_rows.quantised_words(content)),
        ("delegates", str(len(content.delegates))),
        ("on the CPU", compile_rows.cpu_words(content)),
        *([("layout", layout)] if (layout := compile_rows.layout_words(content)) else []),
        *([("state", compile_rows.state_words(content.state))] if content.state else []),
        ("compared", chain_record.of(record) or "nothing"),
        ("check", check_record.line(record)),
        ("files", str(folder)),
    ):
        table.add_row(name, escape(text))
    return table


def _cpu_table(rows: Sequence[CpuOperator]) -> Table:
    """What the model computes there comes first, with its places; mere conversions are counted below."""
    table = Table(title="On the CPU", title_justify="left", box=None)
    table.add_column("operator", overflow="fold")
    table.add_column("calls", justify="right")
    table.add_column("why")
    table.add_column("where", overflow="fold")
    for row in (row for row in rows if not row.boundary):
        for site in row.sites:
            cells = (row.name, str(site.calls), compile_rows.why(site), source_place.place(site.source))
            table.add_row(*(escape(cell) for cell in cells))
    for row in (row for row in rows if row.boundary):
        table.add_row(escape(row.name), str(row.calls), row.sites[0].reason, "")
    return table


def _estimates_table(delegates: Sequence[Delegate]) -> Table:
    """Vela's network summary: a column for each delegate. Rows that are zero in all of them are left out."""
    table = Table("", title="On the NPU, as Vela estimates", title_justify="left", box=None)
    values = []
    for part in delegates:
        table.add_column(f"delegate {part.index}", justify="right")
        values.append({row.name: row.value for row in part.estimates})
    rows: list[tuple[str, str, Callable[[float], str]]] = [
        ("total_cycles", "cycles", _count),
        ("npu_cycles", "NPU cycles", _count),
        *((f"{area}_access_cycles", f"{words} access cycles", _count) for area, words in _AREAS),
        ("macs", "MACs", _count),
        ("inference_time", "inference time", _milliseconds),
        *((f"{area}_used", f"{words} used", _kibibytes) for area, words in _AREAS),
        *((f"{area}_traffic", f"{words} traffic per inference", _kibibytes) for area, words in _AREAS),
        *((f"{area}_peak_bandwidth", f"{words} peak bandwidth", _bandwidth) for area, words in _AREAS),
    ]
    for name, words, form in rows:
        found = [row.get(name) for row in values]
        used = f"{name.removesuffix('_peak_bandwidth')}_traffic"
        if any(row.get(used if name.endswith("_peak_bandwidth") else name) for row in values):
            table.add_row(words, *("" if value is None else form(value) for value in found))
    return table


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _milliseconds(value: float) -> str:
    return f"{value * 1e3:,.4g} ms"


def _kibibytes(value: float) -> str:
    return f"{value / 1024:,.2f} KiB"


def _bandwidth(value: float) -> str:
    return f"{value / 1e9:,.2f} GB/s"
