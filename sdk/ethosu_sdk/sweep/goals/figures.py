"""The figures of a cell that constraints and goals may speak of: their units, and whether they have a source."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, get_args

from ethosu_sdk.records.sweep import FigureName, Source, Want

Row = Mapping[str, object]

MIN: Final = "min"
MAX: Final = "max"
TIME: Final = "time_ms"
CYCLES: Final = "npu_cycles"
INFERENCE: Final = "inference_ms"
SOURCES: tuple[Source, ...] = get_args(Source)
MOST = 1e15  # a double holds every integer up to here
_MS_PER_UNIT = {"": 1.0, "s": 1e3, "ms": 1.0, "us": 1e-3, "µs": 1e-3, "ns": 1e-6}
_BYTES = {"": 1.0, "bytes": 1.0, "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9}
_BYTES |= {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
_MHZ = {"": 1.0, "MHz": 1.0, "GHz": 1e3, "kHz": 1e-3}
_COUNT = {"": 1.0}
_DB = "dB"
_QUANTITY = re.compile(r"([+-]?\d{1,15}(?:\.\d{1,9})?) ?([A-Za-zµ]{0,8}|%)")


@dataclass(frozen=True)
class Figure:
    """A figure: `units` are those that a limit may be given in; `better` is what a goal wants of it."""

    name: FigureName
    title: str
    unit: str
    units: Mapping[str, float]
    better: Want = MIN

    @property
    def has_source(self) -> bool:
        """Whether it is measured, modelled or estimated, and not simply so."""
        return self.name in (TIME, CYCLES)


FIGURES: dict[str, Figure] = {
    row.name: row
    for row in (
        Figure("sram_bytes", "SRAM", "bytes", _BYTES),
        Figure("dram_bytes", "DRAM", "bytes", _BYTES),
        Figure("flash_bytes", "flash", "bytes", _BYTES),
        Figure("program_bytes", "program", "bytes", _BYTES),
        Figure(TIME, "NPU time", "ms", _MS_PER_UNIT),
        Figure(INFERENCE, "time of an inference", "ms", _MS_PER_UNIT),
        Figure(CYCLES, "NPU cycles", "cycles", _COUNT),
        Figure("npu_macs", "MACs of an inference", "MACs", _COUNT),
        Figure("macs", "MACs per cycle of the NPU", "", _COUNT),
        Figure("operators_npu", "operators on the NPU", "", _COUNT, MAX),
        Figure("operators_cpu", "operators on the CPU", "", _COUNT),
        Figure("cpu_calls", "calls of operators on the CPU", "", _COUNT),
        Figure("sqnr_db", "SQNR", _DB, {"": 1.0, _DB: 1.0}, MAX),
        Figure("top1", "share of right answers", "", {"": 1.0, "%": 0.01}, MAX),
        Figure("check_sqnr_db", "SQNR of the check of the compilation", _DB, {"": 1.0, _DB: 1.0}, MAX),
    )
}


@dataclass(frozen=True)
class Value:
    """A figure of a cell; without `number`, `why` says what is missing."""

    number: float | None = None
    source: Source | None = None
    why: str = ""


def value(row: Row, name: str, clock_mhz: float | None) -> Value:
    """The figure called `name` of the cell `row`; a time at `clock_mhz`, where that is given, from its cycles."""
    if not FIGURES[name].has_source:
        return _number(row, name)
    source = next((known for known in SOURCES if known == row.get("npu_cycles_source")), None)
    if source is None:
        return Value(why=f"{name} has no source")
    if row.get("operators_npu") == 0 or row.get(CYCLES) == 0:
        return Value(why=f"{name} is of the NPU alone, on which nothing ran")
    found = _number(row, CYCLES if clock_mhz else name)
    if found.number is None:
        return found
    number = found.number / (clock_mhz * 1e3) if clock_mhz else found.number
    return Value(number, source)


def _number(row: Row, name: str) -> Value:
    found = row.get(name)
    if found is None:
        return Value(why=f"{name} is not known")
    if not isinstance(found, (int, float)) or isinstance(found, bool):
        return Value(why=f"{name} is not a number")
    if isinstance(found, float) and math.isnan(found):
        return Value(why=f"{name} is not a number")
    in_db = FIGURES[name].unit == _DB
    if found == math.inf and in_db:  # equal outputs: no noise
        return Value(math.inf)
    if abs(found) > MOST or (found < 0 and not in_db):
        return Value(why=f"{name} is out of range")
    return Value(found)


def quantity(text: object, units: Mapping[str, float]) -> float | None:
    """A number, or a text of a number and one of `units`, in the first unit; None for what is neither."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return float(text) if abs(text) <= MOST else None
    found = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if found is None or found[2] not in units:
        return None
    number = float(found[1]) * units[found[2]]
    return number if abs(number) <= MOST else None


def clock(text: object) -> float | None:
    """A clock in MHz; None for what is none."""
    found = quantity(text, _MHZ)
    return found if found is not None and 1e-3 <= found <= 1e5 else None


def shown(name: str, number: float) -> str:
    """A number with the unit of the figure called `name`, as it stands in a sentence."""
    unit = FIGURES[name].unit
    if math.isinf(number):
        text = "∞"
    elif float(number).is_integer():
        text = f"{int(number):,}"
    else:
        text = f"{number:,.3f}" if abs(number) >= 1 else f"{number:.3g}"
    return f"{text} {unit}".rstrip()
