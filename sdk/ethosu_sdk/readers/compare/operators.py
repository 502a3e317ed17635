"""Where two profiles differ: rows of operations joined by what they are in the model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from ethosu_sdk.records import Record
from ethosu_sdk.results import source_place
from ethosu_sdk.tables import figures

_SOURCES = ("measured", "modelled", "estimated")
# Figure → unit and source of its rows; what is read and written by memory comes behind them.
_UNITS = {
    **{f"cycles.{source}": ("cycles", source) for source in _SOURCES},
    "instructions": ("instructions", "counted"),
    "calls": ("calls", ""),
    "macs": ("operations", ""),
    "weight_bytes": ("bytes", ""),
    "scratch_bytes": ("bytes", "estimated"),
}
_TRAFFIC = "traffic."
# Figure of a record → the figures of its operators that add up to it, as patterns.
_PARTS = {
    "npu.cycles": ("cycles.measured", "cycles.modelled"),
    "npu.counters.AXI0_RD_*": ("traffic.*.port0.read_bytes",),
    "npu.counters.AXI0_WR_*": ("traffic.*.port0.write_bytes",),
    "npu.counters.AXI1_RD_*": ("traffic.*.port1.read_bytes",),
    "npu.counters.AXI1_WR_*": ("traffic.*.port1.write_bytes",),
    "npu.counters.SRAM_RD_*": ("traffic.*.port0.read_bytes",),
    "npu.counters.SRAM_WR_*": ("traffic.*.port0.write_bytes",),
    "npu.counters.EXT_RD_*": ("traffic.*.port1.read_bytes",),
    "npu.counters.EXT_WR_*": ("traffic.*.port1.write_bytes",),
    "npu.counters.*": ("cycles.measured", "cycles.modelled"),
    **{f"profile.cycles.{source}": (f"cycles.{source}",) for source in _SOURCES},
    "compile.*.estimates.total_cycles": ("cycles.estimated",),
    "cpu.instructions": ("instructions",),
    "profile.cpu_instructions": ("instructions",),
    "cpu.operators": ("calls",),
    "profile.cpu_operators": ("calls",),
    "profile.macs": ("macs",),
}
# Figure of a record → the figure of its operators whose sum it is, but for what no operator stands for.
_SUMS = {
    "npu.cycles": "cycles.{source}",
    "npu.counters.NPU_ACTIVE": "cycles.{source}",
    **{f"profile.cycles.{source}": f"cycles.{source}" for source in _SOURCES},
    "cpu.instructions": "instructions",
    "profile.cpu_instructions": "instructions",
    "cpu.operators": "calls",
    "profile.cpu_operators": "calls",
}
FIGURES = (*_UNITS, f"{_TRAFFIC}*")
_Key = tuple[str, ...]


@dataclass
class Operator:
    """An operator of the model, or what Vela added, with the sums over its operations in an inference."""

    row: Record
    figures: Counter[str] = field(default_factory=Counter)
    constants: list[str] = field(default_factory=list)  # digests, as far as a profile has them


def of(profile: Record) -> dict[_Key, Operator]:
    """The operators of a profile, by what they are whatever else the program has."""
    found: dict[_Key, Operator] = {}
    keys = _keys(profile["operations"])
    for key, row in zip(keys, profile["operations"], strict=True):
        operator = found.setdefault(key, Operator(row))
        operator.constants += [row["constants_sha256"]] if "constants_sha256" in row else []
        for name, value in _figures(row):
            operator.figures[name] += value
    return found


def _keys(rows: Sequence[Record]) -> list[_Key]:
    """For each operation what it is: its line in the model, its TOSA operator, and which of those alike it is."""
    alike: defaultdict[_Key, dict[tuple[int, ...], None]] = defaultdict(dict)
    found = [(_kind(row), _which(row)) for row in rows]
    for kind, which in sorted(found):
        alike[kind].setdefault(which)
    numbers = {kind: {which: str(n) for n, which in enumerate(order)} for kind, order in alike.items()}
    return [(*kind, numbers[kind][which]) for kind, which in found]


def _kind(row: Record) -> _Key:
    source = row.get("source", {})
    # Not by the line, which moves when the model's file changes.
    place = (source.get("module") or source.get("file", ""),)
    if "tosa" in row:
        return ("NPU", row["tosa"]["operator"], *place)
    if row["runs_on"] == "CPU":
        return ("CPU", row["name"], *place)
    shapes = row.get("shapes", {})
    return (
        "NPU",
        row["name"],
        *(figures.shape(shapes.get(name, ())) for name in ("ofm", "kernel", "stride")),
    )


def _which(row: Record) -> tuple[int, ...]:
    """What tells operators of the same kind apart, in their order."""
    if "tosa" in row:
        return row.get("delegate", 0), row["tosa"]["index"]
    if "scheduled" in row:
        return row.get("delegate", 0), row["scheduled"]
    return row["instruction"], row["index"]


def _figures(row: Record) -> Iterator[tuple[str, int]]:
    calls = row["calls"]
    for source in _SOURCES:
        value = figures.cycles(row, source)
        if value is not None:
            yield f"cycles.{source}", calls * value
    if row["runs_on"] == "CPU":
        yield "calls", calls
        if "instructions" in row:
            yield "instructions", int(row["instructions"]["value"])
        return
    for moved in row.get("traffic", ()):
        name = f"{_TRAFFIC}{moved['memory']}.port{moved['port']}.{moved['direction']}_bytes"
        yield name, calls * moved["bytes"]
    yield "macs", calls * row.get("macs", 0)
    yield "weight_bytes", row.get("weights", {}).get("encoded_bytes", 0)
    yield "scratch_bytes", row.get("scratch_bytes", 0)


def compare(before: Record, after: Record) -> list[Record]:
    """The operators of two profiles that differ, those first whose cycles grew most."""
    old, new = of(before), of(after)
    rows = []
    for key in dict.fromkeys((*old, *new)):
        changed = list(_changed(old.get(key), new.get(key)))
        if changed or key not in old or key not in new or _has_other_constants(old[key], new[key]):
            rows.append(_row(old.get(key), new.get(key), changed))
    return sorted(rows, key=_growth, reverse=True)


def _row(old: Operator | None, new: Operator | None, changed: list[Record]) -> Record:
    row = (new or old or Operator({})).row
    source = row.get("source", {})
    return {
        "runs_on": row["runs_on"],
        "name": row.get("tosa", {}).get("operator", row["name"]),
        **({"tensor": row["tosa"]["tensor"]} if row.get("tosa", {}).get("tensor") else {}),
        **({"source": source} if source else {}),
        **({"only_in": "after" if old is None else "before"} if old is None or new is None else {}),
        **({"constants": "differ"} if old and new and _has_other_constants(old, new) else {}),
        "figures": changed,
    }


def _has_other_constants(old: Operator, new: Operator) -> bool:
    """Whether two profiles that know of it read other weights, biases or scales for an operator."""
    return bool(old.constants and new.constants) and old.constants != new.constants


def _changed(old: Operator | None, new: Operator | None) -> Iterator[Record]:
    sides = [Counter[str]() if side is None else side.figures for side in (old, new)]
    for name in (*_UNITS, *sorted({*sides[0], *sides[1]} - _UNITS.keys())):
        before, after = (side[name] for side in sides)
        if before != after:
            unit, source = _UNITS.get(name, ("bytes", "modelled"))
            yield {
                "name": name,
                "unit": unit,
                **({"source": source} if source else {}),
                "before": before,
                "after": after,
                "change": after - before,
            }


def change(row: Record, pattern: str) -> int:
    """By how much an operator's figures that fit `pattern` changed."""
    return sum(int(part["change"]) for part in row["figures"] if fnmatchcase(part["name"], pattern))


def _growth(row: Record) -> tuple[int, ...]:
    return tuple(change(row, name) for name in (*_UNITS, f"{_TRAFFIC}*"))


def behind(metric: str, rows: Sequence[Record]) -> Record | None:
    """Of the operators that differ, the one whose figures made `metric` grow most; None where it has no parts.
    Of outputs one that has other weights, biases or scales."""
    if metric.startswith("outputs."):
        return next((row for row in rows if "constants" in row), None)
    for pattern in _parts(metric):
        grown = [row for row in rows if change(row, pattern) > 0]
        if grown:
            return max(grown, key=lambda row: change(row, pattern))
    return None


def _parts(metric: str) -> tuple[str, ...]:
    if metric.startswith("profile.traffic."):
        return (metric.removeprefix("profile."),)
    return next((parts for name, parts in _PARTS.items() if fnmatchcase(metric, name)), ())


def part_of(metric: str, source: str) -> str | None:
    """The figure of operators whose sum `metric` of a record is; None when it is no such sum."""
    if metric.startswith(f"profile.{_TRAFFIC}"):
        return metric.removeprefix("profile.")
    found = _SUMS.get(metric)
    return None if found is None else found.format(source=source)


def fits(row: Mapping[str, Any], pattern: str) -> bool:
    """Whether an operator of the record is one of `pattern`: by its kind and, behind an @, its module or tensor."""
    kind, _, place = pattern.partition("@")
    places = (row.get("source", {}).get("module") or "", row.get("tensor") or "")
    return fnmatchcase(row["name"], kind) and (not place or any(fnmatchcase(name, place) for name in places))


def named(profile: Record) -> list[Record]:
    """All operators of a profile, as rows of the record without figures."""
    return [_row(None, operator, []) for operator in of(profile).values()]


def pattern_of(row: Mapping[str, Any]) -> str:
    """The pattern that fits an operator alone, or those alike."""
    module = row.get("source", {}).get("module") or row.get("tensor")
    return f"{row['name']}@{module}" if module else str(row["name"])


def words(row: Record) -> str:
    """An operator for people: what it is, and where in the model."""
    module = row.get("source", {}).get("module")
    where = [f"module {module}" if module else "", source_place.line(row)]
    known = ", ".join(filter(None, where))
    return str(row["name"]) + (f" ({known})" if known else "")
