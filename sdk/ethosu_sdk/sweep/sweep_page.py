"""What the page of a sweep shows: settings that tell cells apart, the cells as its script finds them, the verdict
in words.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from ethosu_sdk.base import plain_text, targets
from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.compile import vela_versions
from ethosu_sdk.records import kinds
from ethosu_sdk.records.sweep import (
    CellVerdict,
    Constraint,
    Goal,
    ModelVerdict,
    Nearest,
    TargetVerdict,
    Verdict,
)
from ethosu_sdk.sweep import sweep_goals
from ethosu_sdk.sweep.sweep_configuration import DEFAULT, NONE
from ethosu_sdk.sweep.sweep_verdict import WINNER, leaves_out_the_cpu

Row = Mapping[str, object]

MODEL, TARGET, SYSTEM, MODE = "model", "target", "system", "memory_mode"
TITLES = {
    MODEL: "model",
    TARGET: "target",
    SYSTEM: "system",
    "system_config": "system config",
    MODE: "memory mode",
    "quantize": "quantised",
    "vela": "Vela",
    "simulator": "simulator",
    "board": "board",
    "inputs": "inputs",
}
_HARDWARE = (TARGET, SYSTEM, "system_config", MODE)
_OF_A_TARGET = ("system_config", "board")  # follow from target and system, unless they have several
MOST_NAME, MOST_MESSAGE = 200, 2000
_OPTIONS = {  # of `compile` and `run`, by the columns of a cell
    TARGET: "--target",
    "system_config": "--system-config",
    MODE: "--memory-mode",
    SYSTEM: "--system",
    "quantize": "--quantize",
    "inputs": "--inputs",
    "simulator": "--simulator",
    "board": "--board",
}


@dataclass(frozen=True)
class Settings:
    """Names of settings: `varying` ones tell cells apart; `fixed` ones are the same in all, with their value."""

    varying: tuple[str, ...]
    fixed: Mapping[str, str]

    @property
    def beside(self) -> list[str]:
        """What a row of the matrix stands for."""
        return [MODEL, *(name for name in self.varying if name not in (MODEL, *_HARDWARE))]

    @property
    def above(self) -> list[str]:
        """What a column of the matrix stands for."""
        return [name for name in _HARDWARE if name in self.varying or name in (TARGET, MODE)]

    @property
    def shown(self) -> list[str]:
        """Those that have a column in the list of cells."""
        return [name for name in TITLES if name in {*self.beside, *self.above}]

    def words(self, row: Row) -> str:
        """The settings that distinguish the cell `row` from the model's other cells."""
        names = [name for name in self.shown if name != MODEL]
        return " · ".join(text for name in names if (text := short_text(row.get(name))))


def settings_of(rows: Sequence[Row]) -> Settings:
    varying, fixed = [], {}
    for name in TITLES:
        places = (TARGET, SYSTEM) if name in _OF_A_TARGET else ()
        found = {(*(row.get(place) for place in places), row.get(name)) for row in rows}
        if len(found) > len({row[:-1] for row in found}):
            varying.append(name)
        texts = {short_text(row[-1]) for row in found}
        if len(texts) == 1 and (value := texts.pop()):
            fixed[name] = value
    return Settings(tuple(varying), fixed)


def short_text(value: object, most: int = MOST_NAME) -> str:
    """A text from elsewhere on one line, shortened; empty for None."""
    if value is None:
        return ""
    return plain_text.cut(str(value)[: most + 1], most)  # what is behind that is not even looked at


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
_MADE = ("standing", "why", "link", "link_text", "repeat", "report")
LEADER = "best by the NPU alone"  # in place of WINNER, where the whole time of an inference is not known
_RECORDS = (("report.html", "report"), (kinds.SWEEP_CELL.file, "record"), (kinds.RUN.file, "record"))
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


def page_cells(folder: Path, verdict: Verdict, rows: Sequence[Row], settings: Settings) -> dict[str, Any]:
    """Everything that the script shows of `rows`, which lie below `folder`."""
    texts: dict[str, int] = {}  # each text once, with its place
    judged = {cell.cell: cell for cell in verdict.cells}
    clock = judging_clock(verdict)

    def judged_ms(row: Row) -> float | None:
        return None if clock is None else sweep_goals.figure_value(row, sweep_goals.TIME, clock).number

    listed: list[Row] = [{**row, JUDGED: judged_ms(row)} for row in rows[:MOST_CELLS]]
    known = [name for name in NUMBERS if any(row.get(name) is not None for row in listed)]
    return {
        "textColumns": [*_TEXTS, *_MESSAGES, *_MADE],
        "numberColumns": list(NUMBERS),
        "rows": [_cell_row(folder, row, verdict, judged.get(str(row["cell"])), texts) for row in listed],
        "texts": list(texts),
        "titles": TITLES,
        "beside": settings.beside,
        "above": settings.above,
        "shown": settings.shown,
        "varying": list(settings.varying),
        "figures": [_page_figure(name, clock) for name in known],
        "first": verdict.goals[0].figure,
    }


def judging_clock(verdict: Verdict) -> float | None:
    """The one clock, in MHz, of all times in goals and constraints; None where they are at the cells' own clocks."""
    judging: list[Goal | Constraint] = [*verdict.goals, *verdict.constraints]
    clocks = {row.clock_mhz for row in judging if row.figure == sweep_goals.TIME}
    return clocks.pop() if len(clocks) == 1 else None


def _page_figure(name: str, clock_mhz: float | None) -> dict[str, str]:
    """Its title, the shorter one of a heading, and its unit."""
    if name == JUDGED:
        title = sweep_goals.figure_title(sweep_goals.TIME, clock_mhz)
        return {"name": name, "title": title, "short": f"at {clock_mhz:g} MHz", "unit": "ms"}
    title, unit = _MORE_TITLES.get(name, ("", ""))
    if not title:
        title, unit = sweep_goals.FIGURES[name].title, sweep_goals.FIGURES[name].unit
    return {"name": name, "title": title, "short": _SHORT_TITLES.get(name, title), "unit": unit}


def standing_of(verdict: Verdict, row: Row, judged: CellVerdict | None) -> str:
    """How a cell stands; no winner is one whose time is not known with the CPU's part."""
    if judged is None:
        return ""
    return LEADER if judged.standing == WINNER and leaves_out_the_cpu(verdict, row) else judged.standing


def repeat_command(row: Row) -> str:
    """The command that does the cell `row` alone, in the folder of SWEEP.toml; empty where none does, as for another
    version of Vela."""
    if row.get("vela") not in (None, NONE, vela_versions.own_version()):
        return ""
    if row.get(SYSTEM) is None and row.get("system_config") not in (None, NONE):
        try:
            targets.parse_target(*(str(row[name]) for name in (TARGET, "system_config", MODE)))
        except SdkError:  # they are those of a file that the whole sweep was given
            return ""
    simulator = row.get("simulator")
    words = ["ethosu-sdk", "compile" if simulator == NONE else "run", str(row["model"])]
    for name, option in _OPTIONS.items():
        value = row.get(name)
        if value not in (None, DEFAULT) and (value != NONE or name == "quantize"):
            words += [option, str(value)]
    return shlex.join(words)


def _cell_row(
    folder: Path, row: Row, verdict: Verdict, judged: CellVerdict | None, texts: dict[str, int]
) -> list[Any]:
    link, link_text = _link(folder, row.get("folder"))
    place = folder / str(row.get("folder"))
    has_run = link_text == "record" and (place / kinds.RUN.file).is_file()
    report = shlex.join(["ethosu-sdk", "report", str(place)]) if has_run else ""
    found = [short_text(row.get(name)) for name in _TEXTS]
    found += [short_text(row.get(name), MOST_MESSAGE) for name in _MESSAGES]
    reason = "" if judged is None else why_unranked(judged)
    found += [standing_of(verdict, row, judged), short_text(reason, MOST_MESSAGE), link, link_text]
    found += [short_text(line, MOST_MESSAGE) for line in (repeat_command(row), report)]
    places = [texts.setdefault(text, len(texts)) for text in found]
    return [*places, *(_json_number(row.get(name)) for name in NUMBERS)]


def why_unranked(judged: CellVerdict | Nearest) -> str:
    """What keeps a cell from being ranked."""
    missing = judged.missing or () if isinstance(judged, CellVerdict) else ()
    return "; ".join([*(row.text for row in judged.misses or ()), *missing])


def _json_number(value: object) -> float | str | None:
    """A number; a text where JSON has no number; None for what is none."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return "inf" if value == math.inf else None
    return value if abs(value) <= sweep_goals.MOST else None


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
    return (f"{_address(path)}/", "folder") if (folder / path).is_dir() else ("", "")


def _address(path: PurePosixPath) -> str:
    """`./` in front, so that no first part of it can be taken for a scheme."""
    return "./" + quote(str(path), errors="surrogateescape")


_MOST_NAMES = 8
_MOST_LISTED = 3
_MOST_FAILURES = 100


def verdict_overview(verdict: Verdict, rows: Sequence[Row], settings: Settings) -> dict[str, Any]:
    """Everything that the page says above the cells."""
    by_cell = {str(row["cell"]): row for row in rows}
    return {
        "status": verdict.status,
        "cards": list(_cards(verdict, rows)),
        "constraints": [row.text for row in verdict.constraints],
        "goals": [row.text for row in verdict.goals],
        "default_goals": verdict.default_goals,
        "timed_goals": [sweep_goals.FIGURES[row.figure].has_source for row in verdict.goals],
        "goal_titles": [sweep_goals.figure_title(row.figure, row.clock_mhz) for row in verdict.goals],
        "models": [_model(row, verdict, by_cell, settings) for row in verdict.models],
        "targets": [_target(row, len(verdict.models)) for row in verdict.targets],
        "notes": verdict.notes,
        **_failures(rows, settings),
        "fixed": [(TITLES[name], value) for name, value in settings.fixed.items()],
        "cells": len(rows),
        "listed": min(len(rows), MOST_CELLS),
    }


def _cards(verdict: Verdict, rows: Sequence[Row]) -> Iterator[dict[str, str]]:
    models, counts = verdict.models, verdict.counts
    fitting = sum(row.counts.kept > 0 for row in models)
    what = "keep all constraints in at least one cell" if verdict.constraints else "pass in at least one cell"
    text = f"{fitting:,} of {len(models):,}"
    yield {"name": "models", "text": text, "note": what, "status": verdict.status}
    everywhere = _names([row.target for row in verdict.targets if row.every_model])
    yield {"name": "targets for every model", "text": everywhere or "none", "note": "", "status": ""}
    if verdict.constraints:
        words = {"break one": counts.broken, "not judged": counts.not_judged}
        words["without a result"] = counts.no_result
        note = ", ".join(f"{count:,} {text}" for text, count in words.items() if count)
        text = f"{counts.kept:,} of {len(rows):,}"
        yield {"name": "cells that keep the constraints", "text": text, "note": note, "status": ""}
    statuses = Counter(str(row["status"]) for row in rows)
    others = ", ".join(f"{count:,} {name}" for name, count in sorted(statuses.items()) if name != "pass")
    yield {"name": "cells that pass", "text": f"{statuses['pass']:,}", "note": others, "status": ""}


def _failures(rows: Sequence[Row], settings: Settings) -> dict[str, Any]:
    """Cells that did not pass, by status and message: the most frequent first."""
    found: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row["status"] != "pass":
            message, hint = (short_text(row.get(name), MOST_MESSAGE) for name in ("message", "hint"))
            found[short_text(row["status"]), message, hint].append(row)
    groups = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    failures = []
    for (status, message, hint), same in groups[:_MOST_FAILURES]:
        names = ((row, f"{short_text(row['model'])} · {settings.words(row)}") for row in same[:_MOST_LISTED])
        cells = [{"cell": str(row["cell"]), "text": name.rstrip(" ·")} for row, name in names]
        more = max(0, len(same) - _MOST_LISTED)
        group = {"status": status, "message": message, "hint": hint, "count": len(same)}
        failures.append({**group, "cells": cells, "more": more})
    return {"failures": failures, "more_failures": max(0, len(groups) - _MOST_FAILURES)}


def _model(
    model: ModelVerdict, verdict: Verdict, by_cell: Mapping[str, Row], settings: Settings
) -> dict[str, Any]:
    """A row of the table of models: a line for each ranking, or why there is none."""
    goals = verdict.goals

    def line(
        kind: str, cells: Sequence[str], source: str, why: str, plain_source: str = ""
    ) -> dict[str, Any]:
        more = len(cells) - _MOST_LISTED
        first: Row = by_cell[cells[0]] if cells else {}
        named = ((cell, settings.words(by_cell[cell])) for cell in cells[:_MOST_LISTED])
        return {
            "kind": kind,
            "is_whole": not leaves_out_the_cpu(verdict, first),
            "cells": [{"cell": cell, "text": text or cell} for cell, text in named],
            "more": f"and {more:,} more that are equal in every goal" if more > 0 else "",
            "values": [_value(first, goal) for goal in goals],
            "plain_source": plain_source,
            "source": _timed(source, first, goals),
            "why": why,
        }

    kind = "winner" if model.winners else "best of its source"
    lines = [line(kind, row.winners, row.source or "", "", row.source or "") for row in model.rankings]
    nearest = None if model.no_winner is None else model.no_winner.nearest
    if not lines and nearest is not None:
        source = str(by_cell[nearest.cell].get("npu_cycles_source") or "")
        lines = [line("nearest miss", [nearest.cell], source, why_unranked(nearest))]
    return {
        "model": short_text(model.model),
        "lines": lines or [line("", [], "", "")],
        "reason": "" if model.no_winner is None else model.no_winner.reason,
        "counts": model.counts,
        "notes": model.notes,
    }


def _timed(source: str, row: Row, goals: Sequence[Goal]) -> str:
    """Where a time comes from, with the clock that it is at unless its heading says it."""
    clock = sweep_goals.parse_clock(row.get("clock_mhz"))
    times = [goal for goal in goals if goal.figure == sweep_goals.TIME]
    if not source or clock is None or not times or times[0].clock_mhz:
        return source
    return f"{source}, {clock:,g} MHz"


def _value(row: Row, goal: Goal) -> str:
    number = sweep_goals.figure_value(row, goal.figure, goal.clock_mhz).number
    return "-" if number is None else sweep_goals.shown_figure(goal.figure, number)


def _target(row: TargetVerdict, models: int) -> dict[str, Any]:
    words = {
        "broken by": row.broken,
        "not judged for": row.not_judged,
        "no result for": row.no_result,
        "not swept for": row.not_swept,
    }
    return {
        "target": short_text(row.target),
        "every_model": row.every_model,
        "kept": f"{len(row.kept):,} of {models:,}",
        "others": "; ".join(f"{text} {_names(names)}" for text, names in words.items() if names),
    }


def _names(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    listed = ", ".join(short_text(name, 60) for name in names[:_MOST_NAMES])
    return f"{listed} and {more:,} more" if more > 0 else listed
