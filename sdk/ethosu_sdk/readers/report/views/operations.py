"""The profile's table: a row for each operation, operator and module, with what its columns are sorted by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ethosu_sdk.readers.report.views import fold, operation_tree
from ethosu_sdk.readers.report.views.operation_tree import Node, Scale
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.profile import Operation, Profile
from ethosu_sdk.results import source_place
from ethosu_sdk.tables import figures


@dataclass(frozen=True)
class Column:
    """A column. `format` says how its numbers are written; text is on the left."""

    key: str
    title: str
    long_title: str
    format: str = "whole"

    @property
    def is_number(self) -> bool:
        """Whether it is sorted by value, and stands on the right."""
        return self.format != "text"


_COLUMNS = (
    Column("index", "#", "number of the operation in the profile"),
    Column("name", "operation", "module, operator or operation; below: IFM → OFM and line", "text"),
    Column("time", "time, {unit}", "time of NPU or CPU, modelled", "time"),
    Column("modelled", "NPU cycles", "cycles of the NPU, modelled"),
    Column("estimated", "by Vela", "cycles of the NPU, estimated by Vela"),
    Column("measured", "measured", "cycles of the NPU, measured"),
    Column("alone", "alone", "cycles of the NPU as a job of its own"),
    Column("cpu_cycles", "CPU cycles", "cycles of the CPU, modelled, with memory that answers at once"),
    Column("instructions", "CPU instr.", "instructions of the CPU, counted"),
    Column("macs", "MACs", "multiplications and additions"),
    Column(
        "utilisation", "MAC use", "share of what the MAC unit could do in the operation's cycles", "share"
    ),
    Column("read", "read", "bytes read through the NPU's ports"),
    Column("written", "written", "bytes written through the NPU's ports"),
    Column("bound", "pace", "what sets the pace of the operation", "text"),
)
_ALWAYS = ("index", "name")


def of(profile: Profile | None) -> dict[str, Any]:
    """Columns that hold something, their rows from the tree, the sums of an inference, and the number of leaves."""
    if profile is None or not profile.operations:
        return {"columns": [], "rows": [], "sums": [], "count": 0}
    roots = operation_tree.of(profile)
    ideal = profile.totals.npu.macs_per_cycle.ideal
    rows = list(_rows(roots, ideal, operation_tree.open_levels(roots)))
    columns = [
        column
        for column in _COLUMNS
        if column.key in _ALWAYS or any(row["values"].get(column.key) not in (None, "") for row in rows)
    ]
    sums = Node("module", "sum", children=roots)
    scale = operation_tree.scale_of(sums.figures())
    total = _values(sums, ideal) | {"index": None, "bound": ""}
    weighed = operation_tree.weighed_by(total)
    whole = total.get(weighed) or 0
    for row in rows:
        part = row["values"].get(weighed) or 0
        row["share"] = max(0.0, min(1.0, part / whole)) if whole else 0.0
        row["cells"] = [_cell(row["values"].get(column.key), column, scale) for column in columns]
    return {
        "columns": [
            {
                "key": column.key,
                "title": column.title.format(unit=scale.unit),
                "long_title": column.long_title,
                "format": column.format,
                "is_number": column.is_number,
            }
            for column in columns
        ],
        "weighed": weighed,
        "scale": scale,
        "ideal": ideal,
        "rows": rows,
        "sums": [_cell(total.get(column.key), column, scale) for column in columns],
        "count": sum(row["is_leaf"] for row in rows),
    }


def _rows(
    nodes: Sequence[Node], ideal: float, levels: int, level: int = 0, parent: tuple[str, str] = ("", "")
) -> Iterator[dict[str, Any]]:
    """The rows of `nodes` and of all below them. `parent` is the id and the name of the row above."""
    for number, node in enumerate(nodes):
        name = f"{parent[0]}.{number}" if level else str(number)
        is_open = node.kind == "module" and level < levels
        yield {
            "id": name,
            "parent": parent[0],
            "level": min(level, 6),
            "kind": node.kind,
            "is_leaf": not node.children,
            "is_open": is_open,
            "index": node.entry.index if node.entry is not None else None,
            "name": node.name,
            "on": node.entry.runs_on if node.entry is not None and node.kind != "module" else "",
            "note": _note(node, parent[1]),
            "count": sum(1 for _ in _leaves(node)) if node.children else 0,
            "values": _values(node, ideal),
        }
        yield from _rows(node.children, ideal, levels, level + 1, (name, node.name))


def _leaves(node: Node) -> Iterator[Node]:
    if not node.children:
        yield node
    for child in node.children:
        yield from _leaves(child)


def _values(node: Node, ideal: float) -> dict[str, Any]:
    found: dict[str, Any] = dict(node.figures())
    macs, spent = found.get("macs"), found.get("modelled")
    found["utilisation"] = macs / (spent * ideal) if macs and spent and ideal else None
    found["index"] = node.place if node.kind != "overhead" else None
    found["name"] = node.name
    found["bound"] = _pace(node.parts)
    return found


def _pace(parts: Sequence[Operation]) -> str:
    """What sets the pace; of several NPU operations with different ones, that of most cycles, with its share."""
    cycles: defaultdict[str, int] = defaultdict(int)
    for row in parts:
        if row.bound_by and row.kind != "dma":
            cycles[row.bound_by] += row.calls * row.modelled_cycles
    if not cycles:
        return ""
    most = max(cycles, key=lambda name: cycles[name])
    whole = sum(cycles.values())
    return most if len(cycles) == 1 or not whole else f"{most} {figures.percent(cycles[most] / whole)}"


def _note(node: Node, parent: str) -> str:
    """What is written below the name: what it reads and writes, its parts, line and module."""
    entry = node.entry
    if entry is None:
        kinds = {fold.module(part.entry): part.entry for part in node.children}
        return "" if node.kind != "module" else _module_type(kinds.get(node.name))
    if parent == fold.name(entry):  # an NPU operation of an operator, which says the rest
        return fold.shapes(node.parts)
    kernel = entry.name if entry.name != node.name and len(node.parts) == 1 else ""
    place = source_place.function if parent == fold.module(entry) else source_place.place
    return " · ".join(
        filter(
            None,
            (fold.shapes(node.parts), fold.counted(node.parts), kernel, place(entry.source), entry.reason),
        )
    )


def _module_type(entry: Operation | None) -> str:
    return (entry.source.module_type or "") if entry is not None and entry.source is not None else ""


def origin(entry: Operation) -> str:
    """What of the model an operation stands for: TOSA operator, module or line."""
    return ", ".join(filter(None, (entry.operator, source_place.place(entry.source), entry.reason)))


def _cell(value: Any, column: Column, scale: Scale) -> dict[str, Any]:
    if value is None or value == "":
        return {"text": "", "sort": "", "is_number": column.is_number}
    return {"text": _text(value, column.format, scale), "sort": str(value), "is_number": column.is_number}


def _text(value: Any, how: str, scale: Scale) -> str:
    if how == "text":
        return str(value)
    if how == "share":
        return f"{value:.1%}"
    return f"{value * scale.factor:,.{scale.digits}f}" if how == "time" else f"{round(value):,}"


def phases(profile: Profile | None) -> list[tuple[Any, ...]]:
    """Of each phase of a sequence its name, its steps, and the NPU's cycles: of a step and of all."""
    return [
        (
            row.name,
            f"{row.first_step:,} to {row.first_step + row.steps - 1:,}"
            if row.steps > 1
            else str(row.first_step),
            *(getattr(row.npu_cycles, name) for name in ("min", "median", "max", "total")),
        )
        for row in (profile.phases or () if profile is not None else ())
    ]


def not_delegated(compiled: Compilation) -> list[dict[str, Any]]:
    """Operators that stay on the CPU, with the reason."""
    return [
        {
            "name": row.name,
            "calls": site.calls,
            "reason": site.reason,
            "place": source_place.place(site.source),
        }
        for row in compiled.cpu_operators
        for site in row.sites
    ]
