"""A profile as rows: profile.csv, and what `ethosu-sdk profile` shows on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.terminal import Ranked, escape
from ethosu_sdk.records import operation_tree, wording
from ethosu_sdk.records.profile import Memory, Operation, Profile, Speed, cycles

_PLAIN = ("index", "instruction", "calls", "runs_on", "name", "kind", "delegate", "offset", "macs", "bytes")
_SHAPES = ("ifm", "ofm", "kernel", "stride", "block")
_STAGES = ("mac", "output", "weight_decoder", "memory")
_SOURCES = ("modelled", "estimated", "measured")
# Column → the member of the record's operation, with the way to it.
_MEMBERS = {
    **{name: name for name in (*_PLAIN, "utilisation", "bound_by", "scratch_bytes")},
    **{name: f"source.{name}" for name in ("module", "file", "line", "function")},
    **{name: f"shapes.{name}" for name in _SHAPES},
    **{f"{stage}_cycles": f"stages.{stage}" for stage in _STAGES},
    "tosa_operator": "tosa.operator",
    "vela_operator": "vela.operator",
    "ifm_dtype": "dtypes.ifm",
    "ofm_dtype": "dtypes.ofm",
    "weight_bytes": "weights.bytes",
    "encoded_weight_bytes": "weights.encoded_bytes",
    "cpu_instructions": "instructions.value",
    "cpu_cycles": "cpu_cycles.value",
    "job_operations": "job.operations",
    "job_cycles": "job.cycles.value",
    "job_source": "job.cycles.source",
}
CSV_COLUMNS = (
    *_PLAIN,
    *("tosa_operator", "vela_operator", "module", "file", "line", "function"),
    *_SHAPES,
    *("ifm_dtype", "ofm_dtype"),
    *(f"cycles_{source}" for source in _SOURCES),
    *(f"{stage}_cycles" for stage in _STAGES),
    *("utilisation", "bound_by", "weight_bytes", "encoded_weight_bytes", "scratch_bytes"),
    *("read_bytes", "write_bytes", "cpu_instructions", "cpu_cycles"),
    *("job_operations", "job_cycles", "job_source"),
)


def csv_row(entry: Operation) -> dict[str, object]:
    """A row of profile.csv: an operation by CSV_COLUMNS; what it does not have is None. Shapes are ``HxWxC``."""
    found = {column: _member(entry, member) for column, member in _MEMBERS.items()}
    found |= {f"cycles_{source}": cycles(entry.cycles, source) for source in _SOURCES}
    if entry.traffic is not None:
        found |= {f"{direction}_bytes": entry.moved_bytes(direction) for direction in ("read", "write")}
    return found


def _member(entry: Operation, member: str) -> object:
    value: Any = entry
    for name in member.split("."):
        value = None if value is None else getattr(value, name)
    return wording.shape_text(value) if isinstance(value, tuple) else value


# Columns of the operations that a narrow terminal has no room for, the first one first.
_GIVE_WAY = ("where", "measured", "written", "read", "MAC use", "by Vela", "alone", "CPU instr.", "MACs")
_MOST_ROWS = 100


def profile_tables(record: Profile, folder: Path) -> list[RenderableType]:
    """Operations, memories and totals."""
    parts: list[RenderableType] = [_operations(record)]
    if record.memories:
        parts += ["", _memories(record.memories)]
    if record.delegation:
        table = _table("operators by where they run", "operator", "delegated", "not delegated")
        for place in record.delegation:
            table.add_row(escape(place.operator), str(place.delegated), str(place.not_delegated))
        parts += ["", table]
    if record.phases:
        table = _table("NPU cycles by phase", "phase", "steps", "total", "min", "median", "max")
        for row in record.phases:
            spent = row.npu_cycles
            figures = (row.steps, spent.total, spent.min, spent.median, spent.max)
            table.add_row(row.name, *(f"{figure:,}" for figure in figures))
        parts += ["", table]
    totals = Table(box=None, show_header=False, pad_edge=False)
    for name, text in (*total_rows(record), ("files", str(folder))):
        totals.add_row(name, escape(text))
    return [*parts, "", totals]


def _table(title: str, first: str, *figures: str) -> Table:
    table = Table(first, title=title, title_justify="left", box=None, pad_edge=False)
    for name in figures:
        table.add_column(name, justify="right")
    return table


def _operations(record: Profile) -> Table:
    """The rows of the page down to operators: those of a module below it."""
    found = operation_tree.operations_table(record)
    kinds = {row["id"]: row["kind"] for row in found["rows"]}
    rows = [row for row in found["rows"] if kinds.get(row["parent"]) != "operator"]
    keys = [column["key"] for column in found["columns"]]
    title = counted(len(record.operations), "operation")
    title += f", the first {_MOST_ROWS} rows of {len(rows):,}" if len(rows) > _MOST_ROWS else ""
    table = Ranked(title=title, title_justify="left", box=None, pad_edge=False, drop=_GIVE_WAY)
    for column in found["columns"]:
        is_number = column["is_number"]
        table.add_column(column["title"], justify="right" if is_number else "left", no_wrap=not is_number)
    table.add_column("where", no_wrap=True)
    for row in rows[:_MOST_ROWS]:
        cells = dict(zip(keys, (cell["text"] for cell in row["cells"]), strict=True))
        name = row["name"].partition(": ")[0] if row["kind"] == "overhead" else row["name"]
        cells["name"] = "  " * row["level"] + name
        if cells.get("macs") and cells.get("modelled") == "0":
            cells["modelled"] = "hidden"  # it ends with the operation before it, though it computes
        table.add_row(*map(escape, (*cells.values(), row["note"])))
    return table


def _memories(rows: Sequence[Memory]) -> Table:
    figures = ("AXI port", "read", "written", "average", "peak", "longest bursts")
    table = _table("traffic of an inference, bytes", "memory", *figures)
    for row in rows:
        rates = (row.average_bytes_per_s, row.peak_bytes_per_s)
        table.add_row(
            escape(row.memory),
            str(row.port),
            f"{row.read_bytes:,}",
            f"{row.write_bytes:,}",
            *("" if rate is None else f"{rate / 1e9:,.2f} GB/s" for rate in rates),
            _longest_bursts(row),
        )
    return table


def _longest_bursts(memory: Memory) -> str:
    rows, size = memory.bursts or (), memory.read_bytes + memory.write_bytes
    if not rows or not size:
        return ""
    longest = max(row.bytes for row in rows)
    return (
        f"{sum(row.count * row.bytes for row in rows if row.bytes == longest) / size:.0%} in {longest} bytes"
    )


def total_rows(record: Profile) -> Iterator[tuple[str, str]]:
    npu, cpu = record.totals.npu, record.totals.cpu
    yield from wording.time_rows(record)
    count = npu.operations + cpu.operators
    share = npu.operations / count if count else 0.0
    yield "NPU operations", f"{npu.operations:,} ({share:.1%})"
    words = f"{cpu.operators:,} ({1 - share:.1%})" if count else "0"
    if cpu.instructions is not None:
        words += f", {cpu.instructions.value:,} instructions ({cpu.instructions.source})"
    yield "CPU operators", words
    if cpu.cycles is not None:
        core = (cpu.core or "").replace("cortex-m", "Cortex-M")
        parts = ", ".join(f"{row.part.replace('_', ' ')} {row.cycles.value:,}" for row in cpu.parts or ())
        yield "CPU cycles", f"{cpu.cycles.value:,} of {core} ({cpu.cycles.source}): {parts}"
    yield "MACs", f"{npu.macs:,}"
    yield from _npu_cycles(record)
    if npu.jobs is not None:
        whole = npu.jobs.cycles
        yield "in pieces", f"{counted(npu.jobs.count, 'NPU job')}, {whole.value:,} cycles ({whole.source})"
    if record.clock is not None:
        yield "NPU clock", f"{record.clock.hz / 1e6:,.0f} MHz ({record.clock.source})"
    if record.simulator is not None:
        yield "worth", record.simulator.fidelity
    for missing in record.unavailable:
        yield "unknown", f"{missing.path}: {missing.reason}"


def _npu_cycles(record: Profile) -> Iterator[tuple[str, str]]:
    """Cycles by their source with what system they are for; times beside them, unless that is not the program's."""
    speed = {row.source: row for row in record.headline}
    for row in record.totals.npu.cycles:
        version = record.vela_version if row.source == "estimated" else ""
        text = f"{row.value:,} ({row.source}{f' by Vela {version}' if version else ''})"
        if row.source in speed:
            text += f": {_speed_text(speed[row.source], alone=record.time is None)}"
        yield "NPU cycles", text
    if record.priced is not None:
        yield ("not comparable" if record.caveat else "system"), wording.system_line(record.priced)
    for other in record.totals.speed or () if record.caveat else ():
        yield "at that clock", f"{other.source}: {_speed_text(other, alone=True)}, {record.caveat}"


def _speed_text(speed: Speed, *, alone: bool) -> str:
    """Inferences per second are a figure of programs whose CPU time is not known (`alone`)."""
    rate = f"{speed.inferences_per_s:,.1f} inferences/s, " if alone else ""
    return f"{speed.inference_s * 1e3:,.3f} ms, {rate}{speed.tera_operations_per_s:.3f} Tops/s"
