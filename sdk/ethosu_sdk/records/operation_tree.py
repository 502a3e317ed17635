"""The operations of an inference: grouped by operator of the model, as a tree by modules, and as the page's table."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ethosu_sdk.records import common, wording
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.profile import Delegate, Operation, Profile, cycles
from ethosu_sdk.records.time_line import TimeLine, headline

_DMA = "dma"
# Operators that only move data, often for the one behind them: their module is not what they compute.
_LAYOUT = ("TRANSPOSE", "RESHAPE", "CONCAT", "SLICE", "PAD", "REVERSE", "TILE", "IDENTITY")


def group_operations(rows: Iterable[Operation]) -> list[list[Operation]]:
    """The operations by operator, in the order in which each begins."""
    found: dict[tuple[Any, ...], list[Operation]] = {}
    for row in rows:
        found.setdefault(group_key(row), []).append(row)
    return list(found.values())


def group_key(row: Operation) -> tuple[Any, ...]:
    """What operations of one operator have in common: the TOSA operator, or else what Vela scheduled."""
    if row.runs_on == "NPU" and row.tosa is not None:
        return row.instruction, row.delegate, "tosa", row.tosa.index
    if row.scheduled is not None:
        return row.instruction, row.delegate, "vela", row.scheduled
    return "row", row.index


def main_operation(rows: Sequence[Operation]) -> Operation:
    """The first that is no DMA transfer."""
    return next((row for row in rows if row.kind != _DMA), rows[0])


def operator_name(row: Operation) -> str:
    """What people call its operator: as TOSA or Vela has it, behind the type of the model's module where that says
    more (``Mish: TANH``); of a kernel its name without library and overload."""
    if row.runs_on == "CPU":
        return wording.short_operator(row.name)
    compiled = row.operator or (row.vela.operator if row.vela is not None else "") or row.name
    kind = row.source.module_type if row.source is not None and row.source.module else None
    if not kind or compiled in _LAYOUT:
        return compiled
    one, other = (name.replace("_", "").lower() for name in (kind, compiled))
    return compiled if one in other or other in one else f"{kind}: {compiled}"


def module_of(row: Operation | None) -> str:
    """The path of its module; empty where that is not known."""
    return common.source_module(row.source) if row is not None else ""


def tensor_of(row: Operation) -> str:
    """The tensor that its operator writes; empty where that is not known."""
    return (row.tosa.tensor or "") if row.tosa is not None else ""


def shapes_of(rows: Sequence[Operation]) -> str:
    """IFM and OFM where all but DMA transfers have the same."""
    found = {
        " → ".join(wording.shape_text(sizes) for sizes in (row.ifm, row.ofm) if sizes)
        for row in rows
        if row.kind != _DMA or len(rows) == 1
    }
    return found.pop() if len(found) == 1 else ""


def counted_parts(rows: Sequence[Operation]) -> str:
    """Of what kinds several operations are, such as ``31 CONV, 1 DMA``."""
    names = Counter(row.name for row in rows if len(rows) > 1)
    return ", ".join(f"{count:,} {text}" for text, count in names.items())


Kind = Literal["module", "operator", "operation", "overhead"]
Figures = dict[str, float]

_SOURCES = ("modelled", "estimated", "measured")
_MOST_ROWS = 60  # that are shown before anything is opened
_MOST_LEVELS = 20


@dataclass
class Node:
    """A row of the table. `entry` is the operation that a leaf is, or the first of the operations in it; overhead
    has none. `parts` are the NPU operations of an operator."""

    kind: Kind
    name: str
    entry: Operation | None = None
    children: list[Node] = field(default_factory=list)
    own: Figures = field(default_factory=dict)
    before: int = 1 << 62  # of overhead: the index of the operation that follows it
    parts: Sequence[Operation] = ()

    def figures(self) -> Figures:
        found: defaultdict[str, float] = defaultdict(float, self.own)
        for child in self.children:
            for name, value in child.figures().items():
                found[name] += value
        return dict(found)

    @property
    def place(self) -> int:
        known = [child.place for child in self.children]
        return self.entry.index if self.entry is not None else min(known, default=self.before)

    def leaves(self) -> Iterator[Node]:
        """The nodes below it that have no others below them; itself where it has none."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


def tree_of(profile: Profile) -> list[Node]:
    """The operations by the model's modules, then by operator, then by NPU operation: the roots, in their order.

    Figures are of one inference: those of a node are the sums of its children's, and those of the roots add up to the
    profile's totals.
    """
    spent = Spent(headline(profile))
    operators = [_operator(rows, spent) for rows in group_operations(profile.operations)]
    paths = (module_of(node.entry) for node in operators)
    names = (path.split(".", _MOST_LEVELS) if path else [] for path in paths)
    roots = _by_module(list(zip(names, operators, strict=True)))
    roots += [_start(profile, row, spent) for row in profile.delegates]
    roots.sort(key=lambda node: (node.place, node.kind != "overhead"))
    return [*roots, *_rest(profile, roots)]


class Spent:
    """Milliseconds of a time line by instruction of the program, and of a cycle of the NPU."""

    def __init__(self, time: TimeLine | None) -> None:
        self.cycle_ms = 1e3 / time.clocks.npu.hz if time is not None and time.clocks.npu is not None else None
        self._cpu_ms: defaultdict[int, float] = defaultdict(float)
        for part in time.parts if time is not None else ():
            if part.on == "CPU":
                self._cpu_ms[part.operator] += part.duration_s * 1e3

    def take(self, instruction: int) -> Figures:
        """What the CPU takes for an instruction; nothing when it is asked for again."""
        value = self._cpu_ms.pop(instruction, None)
        return {} if value is None else {"time": value}


def _operator(rows: Sequence[Operation], spent: Spent) -> Node:
    """An operator of the model or the tools, with the NPU operations that it became where they are several."""
    main = main_operation(rows)
    name = operator_name(main)
    if len(rows) == 1:
        return Node("operation", name, main, own=figures_of(main, spent), parts=rows)
    parts = [Node("operation", row.name, row, own=figures_of(row, spent), parts=(row,)) for row in rows]
    return Node("operator", name, rows[0], parts, parts=rows)


def figures_of(row: Operation, spent: Spent) -> Figures:
    """The figures of an operation in one inference; the CPU's time once, from `spent`."""
    found: dict[str, float | None] = {
        source: None if (value := cycles(row.cycles, source)) is None else row.calls * value
        for source in _SOURCES
    }
    found["alone"] = None if row.job is None else row.calls * row.job.cycles.value
    found["macs"] = row.calls * row.macs if row.macs else None
    if row.runs_on == "NPU":
        found["read"], found["written"] = (row.calls * row.moved_bytes(way) for way in ("read", "write"))
        if spent.cycle_ms is not None and found["modelled"] is not None:
            found["time"] = found["modelled"] * spent.cycle_ms
    else:
        found["instructions"] = None if row.instructions is None else row.instructions.value
        found["cpu_cycles"] = None if row.cpu_cycles is None else row.cpu_cycles.value
        found |= spent.take(row.instruction)
    return {name: value for name, value in found.items() if value is not None}


def _start(profile: Profile, delegate: Delegate, spent: Spent) -> Node:
    """What a delegate costs before and after its operations."""
    index = delegate.index
    own = [row for row in profile.operations if row.delegate == index and row.runs_on == "NPU"]
    figures: Figures = {}
    if delegate.start_cycles is not None:
        figures["modelled"] = delegate.calls * delegate.start_cycles
    figures["read"] = delegate.calls * delegate.commands.bytes
    if delegate.cpu_cycles is not None:
        figures["cpu_cycles"] = delegate.cpu_cycles.value
    time = sum(spent.take(number).get("time", 0.0) for number in {row.instruction for row in own})
    if spent.cycle_ms is not None:
        figures["time"] = time + figures.get("modelled", 0) * spent.cycle_ms
    name = f"delegate {index}: start, driver and copies"
    return Node("overhead", name, own=figures, before=min((row.index for row in own), default=0))


def _rest(profile: Profile, roots: Sequence[Node]) -> Iterator[Node]:
    """What the totals have and no operation stands for."""
    known = Node("module", "sum", children=list(roots)).figures()
    left = {name: value - known.get(name, 0.0) for name, value in tree_totals(profile).items()}
    left = {name: value for name, value in left.items() if abs(value) > 1e-9}
    if left:
        yield Node("overhead", "the rest: runtime between operators", own=left)


def tree_totals(profile: Profile) -> Figures:
    """Figures of a whole inference, where the profile states them."""
    cpu, time = profile.totals.cpu, headline(profile)
    found: Figures = {row.source: row.value for row in profile.totals.npu.cycles}
    if cpu.cycles is not None:
        found["cpu_cycles"] = cpu.cycles.value
    if time is not None:
        found["time"] = time.total.duration_s * 1e3
    return found


def weighed_by(total: Figures) -> str:
    """The figure that shares are of: the time, else cycles of the NPU, else those of the CPU."""
    return next((name for name in ("time", "modelled") if total.get(name)), "cpu_cycles")


class Scale(NamedTuple):
    """What milliseconds are multiplied by, the unit that this gives, and decimals."""

    factor: float
    unit: str
    digits: int


def scale_of(total: Figures) -> Scale:
    """The unit of times, by that of the whole inference: ms from 10 ms on."""
    return Scale(1.0, "ms", 3) if total.get("time", 0) >= 10 else Scale(1e3, "µs", 2)


def _by_module(operators: Sequence[tuple[Sequence[str], Node]], level: int = 0) -> list[Node]:
    """The nodes below a module, of operators with the names in the paths of their modules. A module with one node is
    no group: its node stands in its place."""
    found: list[Node] = []
    modules: dict[str, list[tuple[Sequence[str], Node]]] = {}
    for names, node in operators:
        if len(names) == level:
            found.append(node)
        else:
            modules.setdefault(".".join(names[: level + 1]), []).append((names, node))
    for path, own in modules.items():
        nodes = _by_module(own, level + 1)
        found += nodes if len(nodes) == 1 else [Node("module", path, children=nodes)]
    return sorted(found, key=lambda node: node.place)


def open_levels(roots: Sequence[Node]) -> int:
    """How many levels of modules can be open so that a reader sees few rows at first."""
    shown, now = len(roots), list(roots)
    for level in range(_MOST_LEVELS):
        now = [child for node in now if node.kind == "module" for child in node.children]
        shown += len(now)
        if not now or shown > _MOST_ROWS:
            return level
    return _MOST_LEVELS


class Column(NamedTuple):
    """A column. `format` says how its numbers are written; text is on the left."""

    key: str
    title: str
    long_title: str
    format: str = "whole"

    @property
    def is_number(self) -> bool:
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
PARALLEL = "parallel"  # in place of 0 cycles: it works beside other operations, and adds none


def operations_table(profile: Profile | None) -> dict[str, Any]:
    """Columns that hold something, their rows from the tree, the sums of an inference, and the number of leaves."""
    if profile is None or not profile.operations:
        return {"columns": [], "rows": [], "sums": [], "count": 0}
    roots = tree_of(profile)
    ideal = profile.totals.npu.macs_per_cycle.ideal
    total = _values(Node("module", "sum", children=roots), ideal) | {"index": None, "bound": ""}
    weighed = weighed_by(total)
    rows = list(_rows(roots, ideal, weighed, open_levels(roots)))
    columns = [
        column
        for column in _COLUMNS
        if column.key in _ALWAYS or any(row["values"].get(column.key) not in (None, "") for row in rows)
    ]
    scale = scale_of(total)
    whole = total.get(weighed) or 0
    for row in rows:
        part = row["values"].get(weighed) or 0
        row["share"] = max(0.0, min(1.0, part / whole)) if whole else 0.0
        row["cells"] = [_cell(row["values"].get(column.key), column, scale) for column in columns]
    return {
        "columns": [
            {**row._asdict(), "title": row.title.format(unit=scale.unit), "is_number": row.is_number}
            for row in columns
        ],
        "weighed": weighed,
        "scale": scale,
        "ideal": ideal,
        "parallel": PARALLEL,
        "rows": rows,
        "sums": [_cell(total.get(column.key), column, scale) for column in columns],
        "count": sum(row["is_leaf"] for row in rows),
    }


def _rows(
    nodes: Sequence[Node],
    ideal: float,
    weighed: str,
    levels: int,
    level: int = 0,
    parent: tuple[str, str] = ("", ""),
) -> Iterator[dict[str, Any]]:
    """The rows of `nodes` and of all below them, those first that have most of `weighed`. `parent` is the id and the
    name of the row above."""
    for number, node in sorted(enumerate(nodes), key=lambda row: -row[1].figures().get(weighed, 0)):
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
            "count": sum(1 for _ in node.leaves()) if node.children else 0,
            "values": _values(node, ideal),
        }
        yield from _rows(node.children, ideal, weighed, levels, level + 1, (name, node.name))


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
    cycles: Counter[str] = Counter()
    for row in parts:
        if row.bound_by and row.kind != _DMA:
            cycles[row.bound_by] += row.calls * row.modelled_cycles
    if not cycles:
        return ""
    most, whole = max(cycles, key=lambda name: cycles[name]), sum(cycles.values())
    return most if len(cycles) == 1 or not whole else f"{most} {wording.percent_text(cycles[most] / whole)}"


def _note(node: Node, parent: str) -> str:
    """What is written below the name: what it reads and writes, its parts, line and module."""
    entry = node.entry
    if entry is None:
        kinds = {module_of(part.entry): part.entry for part in node.children}
        own = kinds.get(node.name) if node.kind == "module" else None
        return (own.source.module_type or "") if own is not None and own.source is not None else ""
    if parent == operator_name(entry):  # an NPU operation of an operator, which says the rest
        return shapes_of(node.parts)
    kernel = entry.name if entry.name != node.name and len(node.parts) == 1 else ""
    place = common.source_function if parent == module_of(entry) else common.source_place
    parts = (shapes_of(node.parts), counted_parts(node.parts), kernel, place(entry.source), entry.reason)
    return " · ".join(filter(None, parts))


def origin_of(entry: Operation) -> str:
    """What of the model an operation stands for: TOSA operator, module or line."""
    return ", ".join(filter(None, (entry.operator, common.source_place(entry.source), entry.reason)))


def _cell(value: Any, column: Column, scale: Scale) -> dict[str, Any]:
    if value is None or value == "":
        return {"text": "", "sort": "", "is_number": column.is_number}
    if column.format == "text":
        text = str(value)
    elif column.format == "share":
        text = f"{value:.1%}"
    elif column.key in ("time", "modelled") and not value:
        text = PARALLEL
    elif column.format == "time":
        text = f"{value * scale.factor:,.{scale.digits}f}"
    else:
        text = f"{round(value):,}"
    return {"text": text, "sort": str(value), "is_number": column.is_number}


def phase_rows(profile: Profile | None) -> list[tuple[Any, ...]]:
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
    sites = ((row.name, site) for row in compiled.cpu_operators for site in row.sites)
    return [
        {"name": name, "calls": row.calls, "reason": row.reason, "place": common.source_place(row.source)}
        for name, row in sites
    ]
