"""The operations of an inference as a tree: by the model's modules, then by operator, then by NPU operation.

Figures are of one inference: those of a node are the sums of its children's, and those of the roots add up to the
profile's totals.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ethosu_sdk.readers.report.views import fold
from ethosu_sdk.records.common import Metric
from ethosu_sdk.records.parts.time_line import TimeLine, headline
from ethosu_sdk.records.profile import Delegate, Operation, Profile, cycles

Kind = Literal["module", "operator", "operation", "overhead"]
Figures = dict[str, float]

_SOURCES = ("modelled", "estimated", "measured")
_MOST_ROWS = 60  # that are shown before anything is opened
_MOST_LEVELS = 20
_LONG_MS = 10  # a time from here on is given in ms, a shorter one in µs


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
        """Its own figures, and all below it."""
        found: defaultdict[str, float] = defaultdict(float, self.own)
        for child in self.children:
            for name, value in child.figures().items():
                found[name] += value
        return dict(found)

    @property
    def place(self) -> int:
        """The index of its first operation, or of the one that follows."""
        known = [child.place for child in self.children]
        return self.entry.index if self.entry is not None else min(known, default=self.before)


def of(profile: Profile) -> list[Node]:
    """The roots, in the order in which they run."""
    spent = _Spent(headline(profile))
    operators = [_operator(rows, spent) for rows in fold.operators(profile.operations)]
    roots = _by_module(operators)
    roots += [_start(profile, row, spent) for row in profile.delegates]
    roots.sort(key=lambda node: (node.place, node.kind != "overhead"))
    return [*roots, *_rest(profile, roots)]


class _Spent:
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


def _operator(rows: Sequence[Operation], spent: _Spent) -> Node:
    """An operator of the model or the tools, with the NPU operations that it became where they are several."""
    main = fold.main(rows)
    if len(rows) == 1:
        return Node("operation", fold.name(main), main, own=_figures(main, spent), parts=rows)
    parts = [Node("operation", row.name, row, own=_figures(row, spent), parts=(row,)) for row in rows]
    return Node("operator", fold.name(main), rows[0], parts, parts=rows)


def _figures(row: Operation, spent: _Spent) -> Figures:
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
        found |= {"instructions": _value(row.instructions), "cpu_cycles": _value(row.cpu_cycles)}
        found |= spent.take(row.instruction)
    return {name: value for name, value in found.items() if value is not None}


def _value(metric: Metric | None) -> float | None:
    return None if metric is None else metric.value


def _start(profile: Profile, delegate: Delegate, spent: _Spent) -> Node:
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
    known: defaultdict[str, float] = defaultdict(float)
    for root in roots:
        for name, value in root.figures().items():
            known[name] += value
    left = {name: value - known[name] for name, value in totals(profile).items()}
    left = {name: value for name, value in left.items() if abs(value) > 1e-9}
    if left:
        yield Node("overhead", "the rest: runtime between operators", own=left)


def totals(profile: Profile) -> Figures:
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


@dataclass(frozen=True)
class Scale:
    """What milliseconds are multiplied by, the unit that this gives, and decimals."""

    factor: float
    unit: str
    digits: int


_MILLI, _MICRO = Scale(1.0, "ms", 3), Scale(1e3, "µs", 2)


def scale_of(total: Figures) -> Scale:
    """The unit of times, by that of the whole inference."""
    return _MILLI if total.get("time", 0) >= _LONG_MS else _MICRO


@dataclass
class _Module:
    path: str
    modules: dict[str, _Module] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)


def _by_module(operators: Sequence[Node]) -> list[Node]:
    root = _Module("")
    for node in operators:
        at = root
        path = fold.module(node.entry)
        for number, _ in enumerate(names := path.split(".", _MOST_LEVELS) if path else [], start=1):
            at = at.modules.setdefault(names[number - 1], _Module(".".join(names[:number])))
        at.nodes.append(node)
    return _grouped(root)


def _grouped(module: _Module) -> list[Node]:
    """The nodes below a module. A module with one node is no group: its node stands in its place."""
    found = list(module.nodes)
    for below in module.modules.values():
        nodes = _grouped(below)
        found += nodes if len(nodes) == 1 else [Node("module", below.path, children=nodes)]
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
