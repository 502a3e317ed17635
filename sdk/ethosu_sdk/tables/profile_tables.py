"""What `ethosu-sdk profile` shows on a terminal, made from its record alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.console.terminal import escape
from ethosu_sdk.records import Record
from ethosu_sdk.results import source_place
from ethosu_sdk.tables import figures

_MOST_ROWS = 100  # of a program with more operations, the slowest are shown


def tables(record: Record, folder: Path, rows: int | None) -> list[RenderableType]:
    """Operations, memories and totals. `rows` limits the operations to the slowest; None shows all of a small
    program."""
    found = merged(record["operations"])
    parts: list[RenderableType] = [_operations(slowest(found, rows or _MOST_ROWS), len(found))]
    if record["memories"]:
        parts += ["", _memories(record)]
    if record.get("delegation"):
        parts += ["", _delegation(record["delegation"])]
    return [*parts, "", _totals(record, folder)]


def merged(rows: Sequence[Record]) -> list[Record]:
    """One row for what Vela schedules as one operation: in the record it can have many NPU operations."""
    groups = (list(group) for _, group in itertools.groupby(rows, _identity))
    return [parts[0] if len(parts) == 1 else _sum(parts) for parts in groups]


def _identity(row: Record) -> tuple[int, ...]:
    return (
        (row["instruction"], row["scheduled"])
        if "scheduled" in row
        else (row["instruction"], -1, row["index"])
    )


def _sum(parts: Sequence[Record]) -> Record:
    slowest = max(parts, key=_modelled)
    return {
        **slowest,
        "index": parts[0]["index"],
        "count": len(parts),
        "macs": sum(row["macs"] for row in parts),
        "cycles": [cycles for row in parts for cycles in row["cycles"]],
        "utilisation": sum(row["utilisation"] * _modelled(row) for row in parts)
        / max(1, sum(map(_modelled, parts))),
        "traffic": [moved for row in parts for moved in row["traffic"]],
        "jobs": [row["job"] for row in parts if "job" in row],
    }


def slowest(rows: Sequence[Record], most: int) -> list[Record]:
    """The rows with the most cycles, and those on the CPU, in their order."""
    ranked = sorted(rows, key=lambda row: (row["runs_on"] == "CPU", _modelled(row)), reverse=True)
    chosen = {row["index"] for row in ranked[:most]}
    return [row for row in rows if row["index"] in chosen]


def _modelled(row: Record) -> int:
    return figures.cycles(row, "modelled") or 0


def _operations(rows: Sequence[Record], count: int) -> Table:
    title = f"{count} operations" if len(rows) == count else f"the slowest {len(rows)} of {count} operations"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("#", justify="right")
    table.add_column("operation", overflow="fold")
    table.add_column("where", overflow="fold")
    table.add_column("OFM", overflow="fold")
    for name in ("MACs", "cycles", "Vela's", "used", "read", "written"):
        table.add_column(name, justify="right")
    table.add_column("bound by", overflow="fold")
    split = any("job" in row for row in rows)
    if split:
        table.add_column("alone", justify="right")
    for row in rows:
        alone = (_alone(row),) if split else ()
        table.add_row(*(escape(cell) for cell in (*cells(row), *alone)))
    return table


def cells(row: Record) -> Iterator[str]:
    """A row of the table of operations."""
    yield str(row["index"])
    calls = f", {row['calls']} times" if row["calls"] > 1 else ""
    count = f" ({row['count']})" if "count" in row else ""
    yield row.get("tosa", {}).get("operator", row["name"]) + count + calls
    yield source_place.module_or_line(row)
    yield figures.shape(row.get("shapes", {}).get("ofm", ()))
    if row["runs_on"] == "CPU":
        counted = row.get("instructions")
        yield from ("", f"{counted['value']:,} instr." if counted else "", "", "", "", "", "CPU")
        return
    yield f"{row['macs']:,}" if row["macs"] else ""
    yield f"{_modelled(row):,}"
    estimated = figures.cycles(row, "estimated")
    yield "" if estimated is None else f"{estimated:,}"
    yield f"{row['utilisation']:.0%}" if row["macs"] else ""
    yield from (f"{figures.moved_bytes(row, direction):,}" for direction in ("read", "write"))
    yield row["bound_by"]


def _alone(row: Record) -> str:
    """Cycles of the jobs that a row's operations were."""
    cycles = [job["cycles"]["value"] for job in row.get("jobs", [row["job"]] if "job" in row else [])]
    return f"{sum(cycles):,}" if cycles else ""


def _memories(record: Record) -> Table:
    table = Table(title="traffic of an inference, bytes", title_justify="left", box=None, pad_edge=False)
    table.add_column("memory")
    for name in ("AXI port", "read", "written", "average", "peak"):
        table.add_column(name, justify="right")
    for row in record["memories"]:
        rates = (row.get("average_bytes_per_s"), row.get("peak_bytes_per_s"))
        table.add_row(
            escape(row["memory"]),
            str(row["port"]),
            f"{row['read_bytes']:,}",
            f"{row['write_bytes']:,}",
            *("" if rate is None else f"{rate / 1e9:,.2f} GB/s" for rate in rates),
        )
    return table


def _delegation(rows: Sequence[Record]) -> Table:
    table = Table(title="operators by where they run", title_justify="left", box=None, pad_edge=False)
    table.add_column("operator", overflow="fold")
    table.add_column("delegated", justify="right")
    table.add_column("not delegated", justify="right")
    for row in rows:
        table.add_row(escape(row["operator"]), str(row["delegated"]), str(row["not_delegated"]))
    return table


def total_rows(record: Record) -> Iterator[tuple[str, str]]:
    """Name and text of each total."""
    npu, cpu = record["totals"]["npu"], record["totals"]["cpu"]
    count = npu["operations"] + cpu["operators"]
    share = npu["operations"] / count if count else 0.0
    yield "NPU operations", f"{npu['operations']:,} ({share:.1%})"
    words = f"{cpu['operators']:,} ({1 - share:.1%})" if count else "0"
    if "instructions" in cpu:
        words += f", {cpu['instructions']['value']:,} instructions ({cpu['instructions']['source']})"
    yield "CPU operators", words
    yield "MACs", f"{npu['macs']:,}"
    speed = {row["source"]: row for row in record["totals"].get("speed", ())}
    for cycles in npu["cycles"]:
        yield "NPU cycles", _cycles_text(cycles, speed.get(cycles["source"]))
    if "jobs" in npu:
        cycles = npu["jobs"]["cycles"]
        words = f"{npu['jobs']['count']:,} NPU jobs, {cycles['value']:,} cycles ({cycles['source']})"
        yield "in pieces", words
    if "clock" in record:
        yield "NPU clock", f"{record['clock']['hz'] / 1e6:,.0f} MHz ({record['clock']['source']})"
    yield "worth", record["simulator"]["fidelity"]
    for row in record["unavailable"]:
        yield "unknown", f"{row['path']}: {row['reason']}"


def _cycles_text(cycles: Record, speed: Record | None) -> str:
    text = f"{cycles['value']:,} ({cycles['source']})"
    if speed is None:
        return text
    return (
        f"{text}: {speed['inference_s'] * 1e3:,.3f} ms, {speed['inferences_per_s']:,.1f} inferences/s, "
        f"{speed['tera_operations_per_s']:.3f} Tops/s"
    )


def _totals(record: Record, folder: Path) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, text in (*total_rows(record), ("files", str(folder))):
        table.add_row(name, escape(text))
    return table
