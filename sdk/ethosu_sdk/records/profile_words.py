"""A profile as rows: profile.csv, and what `ethosu-sdk profile` shows on a terminal."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.terminal import Ranked, escape
from ethosu_sdk.records import common, wording
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


_FIGURES = ("#", "MACs", "cycles", "Vela's", "used", "read", "written")
# Of :func:`operation_cells`.
OPERATION_HEADINGS = ("#", "operation", "module", "line", "OFM", *_FIGURES[1:], "bound by")
# Columns of the operations that a narrow terminal has no room for, the first one first.
_GIVE_WAY = ("line", "OFM", "written", "read", "used", "Vela's", "alone", "MACs")
_MOST_ROWS = 100  # of a program with more operations, the slowest are shown


@dataclass(frozen=True)
class ShownOperation:
    """The slowest of `count` NPU operations that Vela schedules as one, with the figures of all; `alone`: of jobs."""

    operation: Operation
    count: int
    alone: Sequence[int | float]


def profile_tables(record: Profile, folder: Path) -> list[RenderableType]:
    """Operations (of a large program the slowest), memories and totals."""
    parts: list[RenderableType] = [_operations(record, _MOST_ROWS)]
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


def merged_operations(rows: Sequence[Operation]) -> list[ShownOperation]:
    groups = (list(group) for _, group in itertools.groupby(rows, _identity))
    return [
        ShownOperation(
            _sum(parts), len(parts), [row.job.cycles.value for row in parts if row.job is not None]
        )
        for parts in groups
    ]


def _identity(row: Operation) -> tuple[int, ...]:
    return (row.instruction, row.scheduled) if row.scheduled is not None else (row.instruction, -1, row.index)


def _sum(parts: Sequence[Operation]) -> Operation:
    if len(parts) == 1:
        return parts[0]
    whole = sum(row.modelled_cycles for row in parts)
    return replace(
        max(parts, key=lambda row: row.modelled_cycles),
        index=parts[0].index,
        macs=sum(row.macs or 0 for row in parts),
        cycles=tuple(part for row in parts for part in row.cycles or ()),
        utilisation=sum((row.utilisation or 0) * row.modelled_cycles for row in parts) / max(1, whole),
        traffic=tuple(moved for row in parts for moved in row.traffic or ()),
    )


def slowest_operations(record: Profile, most: int) -> tuple[list[ShownOperation], str]:
    """The rows that cost most, the dearest first, and what they are ordered by; all of them in their own order where
    there are no more than `most`. They are ordered by time where the clocks of both processors are known. Otherwise a
    cycle of the CPU counts as one of the NPU, and so does an instruction where the CPU's cycles are not known."""
    rows = merged_operations(record.operations)
    if len(rows) <= most:
        return rows, ""
    clocks = record.time.clocks if record.time is not None else None
    hertz = {}
    if clocks is not None and clocks.npu is not None:
        hertz = {"CPU": clocks.cpu.hz, "NPU": clocks.npu.hz}
    rows.sort(key=lambda row: _cost(row.operation) / hertz.get(row.operation.runs_on, 1), reverse=True)
    return rows[:most], "time" if hertz else "cycles"


def _cost(row: Operation) -> int | float:
    if row.runs_on == "NPU":
        return row.modelled_cycles
    counted = row.cpu_cycles or row.instructions
    return 0 if counted is None else counted.value


def _operations(record: Profile, most: int) -> Table:
    rows, order = slowest_operations(record, most)
    count = len(merged_operations(record.operations))
    title = (
        f"the slowest {len(rows)} of {count} operations, by {order}" if order else counted(count, "operation")
    )
    table = Ranked(title=title, title_justify="left", box=None, pad_edge=False, drop=_GIVE_WAY)
    for name in OPERATION_HEADINGS:
        table.add_column(name, justify="right" if name in _FIGURES else "left")
    split = any(row.alone for row in rows)
    if split:
        table.add_column("alone", justify="right")
    for row in rows:
        alone = (f"{sum(row.alone):,}" if row.alone else "",) if split else ()
        table.add_row(*(escape(cell) for cell in (*operation_cells(row), *alone)))
    return table


def operation_cells(shown: ShownOperation) -> Iterator[str]:
    row = shown.operation
    yield str(row.index)
    calls = f", {row.calls} times" if row.calls > 1 else ""
    count = f" ({shown.count})" if shown.count > 1 else ""
    yield (row.operator or row.name) + count + calls
    yield common.source_module(row.source)
    yield common.source_function(row.source)
    yield wording.shape_text(row.ofm)
    if row.runs_on == "CPU":
        counted = f"{row.instructions.value:,} instr." if row.instructions is not None else ""
        if row.cpu_cycles is not None:
            counted = f"{row.cpu_cycles.value:,}"
        yield from ("", counted, "", "", "", "", "CPU")
        return
    yield f"{row.macs:,}" if row.macs else ""
    # What ends with the operation before it takes no cycles of its own, though it computes.
    yield f"{row.modelled_cycles:,}" if row.modelled_cycles or not row.macs else "hidden"
    estimated = cycles(row.cycles, "estimated")
    yield "" if estimated is None else f"{estimated:,}"
    yield f"{row.utilisation:.0%}" if row.macs else ""
    yield from (f"{row.moved_bytes(direction):,}" for direction in ("read", "write"))
    yield row.bound_by or ""


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
