"""The cells as the page's script finds them: columns once, texts once, and rows of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from ethosu_sdk.records import kinds
from ethosu_sdk.records.sweep import CellVerdict, Nearest, Verdict
from ethosu_sdk.sweep.goals import figures, reading
from ethosu_sdk.sweep.page.settings import MOST_MESSAGE, TITLES, Row, Settings, short

MOST_CELLS = 20_000  # that a page lists: more than a browser sorts at once
_TEXTS = ("cell", *TITLES, "model_sha256", "status", "error", "npu_cycles_source")
_MESSAGES = ("message", "hint")
NUMBERS = (
    *("sram_bytes", "dram_bytes", "flash_bytes", "program_bytes", "time_ms", "clock_mhz", "judged_ms"),
    *("inference_ms", "npu_cycles", "npu_macs"),
    *("operators_npu", "operators_cpu", "cpu_calls", "sqnr_db", "top1", "check_sqnr_db"),
    *("seconds", "exit_code"),
)
JUDGED = "judged_ms"  # the NPU's time at the clock of the verdict, if that has one
_MADE = ("standing", "why", "link", "link_text")
_RECORDS = (
    ("report.html", "report"),
    (kinds.SWEEP_CELL.file, "record"),
    (kinds.RUN.file, "record"),
)
# Titles of what is no figure of constraints and goals, and the unit that follows a number of each.
_MORE_TITLES = {
    "clock_mhz": ("NPU clock", "MHz"),
    "seconds": ("time the cell took", "s"),
    "exit_code": ("exit code", ""),
}
_SHORT_TITLES = {
    "inference_ms": "inference",
    "npu_macs": "MACs",
    "operators_npu": "NPU ops",
    "operators_cpu": "CPU ops",
    "cpu_calls": "CPU calls",
    "top1": "top-1",
    "check_sqnr_db": "check",
    "clock_mhz": "clock",
    "seconds": "took",
}


@dataclass
class _Texts:
    """Each text once, by its place."""

    places: dict[str, int] = field(default_factory=dict)

    def place(self, text: str) -> int:
        return self.places.setdefault(text, len(self.places))


def of(folder: Path, verdict: Verdict, rows: Sequence[Row], settings: Settings) -> dict[str, Any]:
    """Everything that the script shows of `rows`, which lie below `folder`."""
    texts = _Texts()
    judged = {cell.cell: cell for cell in verdict.cells}
    clock = judging_clock(verdict)
    listed = [{**row, JUDGED: _judged(row, clock)} for row in rows[:MOST_CELLS]]
    return {
        "textColumns": [*_TEXTS, *_MESSAGES, *_MADE],
        "numberColumns": list(NUMBERS),
        "rows": [_row(folder, row, judged.get(str(row["cell"])), texts) for row in listed],
        "texts": list(texts.places),
        "titles": TITLES,
        "beside": settings.beside,
        "above": settings.above,
        "shown": settings.shown,
        "varying": list(settings.varying),
        "figures": [
            _figure(name, clock) for name in NUMBERS if any(row.get(name) is not None for row in listed)
        ],
        "first": verdict.goals[0].figure,
    }


def judging_clock(verdict: Verdict) -> float | None:
    """The one clock, in MHz, of all times in goals and constraints; None where they are at the cells' own clocks."""
    clocks = {row.clock_mhz for row in verdict.goals if row.figure == figures.TIME}
    clocks |= {row.clock_mhz for row in verdict.constraints if row.figure == figures.TIME}
    return clocks.pop() if len(clocks) == 1 else None


def _judged(row: Row, clock_mhz: float | None) -> float | None:
    return figures.value(row, figures.TIME, clock_mhz).number if clock_mhz else None


def _figure(name: str, clock_mhz: float | None) -> dict[str, str]:
    """Its title, the shorter one of a heading, and its unit."""
    if name == JUDGED:
        title = reading.named(figures.TIME, clock_mhz)
        return {"name": name, "title": title, "short": f"at {clock_mhz:g} MHz", "unit": "ms"}
    title, unit = _MORE_TITLES.get(name, ("", ""))
    if not title:
        title, unit = figures.FIGURES[name].title, figures.FIGURES[name].unit
    return {"name": name, "title": title, "short": _SHORT_TITLES.get(name, title), "unit": unit}


def _row(folder: Path, row: Row, judged: CellVerdict | None, texts: _Texts) -> list[Any]:
    link, link_text = _link(folder, row.get("folder"))
    found = [short(row.get(name)) for name in _TEXTS]
    found += [short(row.get(name), MOST_MESSAGE) for name in _MESSAGES]
    standing, reason = ("", "") if judged is None else (judged.standing, why(judged))
    found += [standing, short(reason, MOST_MESSAGE), link, link_text]
    return [*(texts.place(text) for text in found), *(_number(row.get(name)) for name in NUMBERS)]


def why(judged: CellVerdict | Nearest) -> str:
    """What keeps a cell from being ranked."""
    missing = judged.missing or () if isinstance(judged, CellVerdict) else ()
    return "; ".join([*(row.text for row in judged.misses or ()), *missing])


def _number(value: object) -> float | str | None:
    """A number; a text where JSON has no number; None for what is none."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return "inf" if value == math.inf else None
    return value if abs(value) <= figures.MOST else None


def _link(folder: Path, place: object) -> tuple[str, str]:
    """Address, relative to `folder`, of what a reader opens of a cell, and its name; empty where there is nothing."""
    if not isinstance(place, str) or not place or "\0" in place:
        return "", ""
    path = PurePosixPath(place)
    if path.is_absolute() or ".." in path.parts or len(place) > MOST_MESSAGE:
        return "", ""
    for name, text in _RECORDS:
        if (folder / path / name).is_file():
            return _address(path / name), text
    return (_address(path) + "/", "folder") if (folder / path).is_dir() else ("", "")


def _address(path: PurePosixPath) -> str:
    """`./` in front, so that no first part of it can be taken for a scheme."""
    return "./" + quote(str(path), errors="surrogateescape")
