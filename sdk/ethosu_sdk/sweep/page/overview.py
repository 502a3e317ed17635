"""The verdict in words and tables: what is read before any cell."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ethosu_sdk.records.sweep import Goal, ModelVerdict, Ranking, TargetVerdict, Verdict, VerdictCounts
from ethosu_sdk.sweep.goals import figures, reading
from ethosu_sdk.sweep.page import cells
from ethosu_sdk.sweep.page.settings import MOST_MESSAGE, TITLES, Row, Settings, short

_MOST_NAMES = 8
_MOST_LISTED = 3
_MOST_FAILURES = 100


def of(verdict: Verdict, rows: Sequence[Row], settings: Settings) -> dict[str, Any]:
    """Everything that the page says above the cells."""
    by_cell = {str(row["cell"]): row for row in rows}
    targets = [_target(row, len(verdict.models)) for row in verdict.targets]
    return {
        "status": verdict.status,
        "cards": _cards(verdict, rows),
        "constraints": [row.text for row in verdict.constraints],
        "goals": [row.text for row in verdict.goals],
        "default_goals": verdict.default_goals,
        "timed_goals": [figures.FIGURES[row.figure].has_source for row in verdict.goals],
        "goal_titles": [_goal_title(row) for row in verdict.goals],
        "models": [_model(row, verdict.goals, by_cell, settings) for row in verdict.models],
        "targets": targets,
        "notes": verdict.notes,
        **_failures(rows, settings),
        "fixed": [(TITLES[name], value) for name, value in settings.fixed.items()],
        "cells": len(rows),
        "listed": min(len(rows), cells.MOST_CELLS),
    }


def _cards(verdict: Verdict, rows: Sequence[Row]) -> list[dict[str, str]]:
    models, kept = verdict.models, verdict.counts.kept
    fitting = sum(row.counts.kept > 0 for row in models)
    what = "keep all constraints in at least one cell" if verdict.constraints else "pass in at least one cell"
    statuses = Counter(str(row["status"]) for row in rows)
    others = ", ".join(f"{count:,} {name}" for name, count in sorted(statuses.items()) if name != "pass")
    everywhere = [row.target for row in verdict.targets if row.every_model]
    found = [
        {
            "name": "models",
            "text": f"{fitting:,} of {len(models):,}",
            "note": what,
            "status": verdict.status,
        },
        {"name": "targets for every model", "text": _names(everywhere) or "none", "note": "", "status": ""},
        {
            "name": "cells that keep the constraints",
            "text": f"{kept:,} of {len(rows):,}",
            "note": _stands(verdict.counts),
            "status": "",
        },
        {"name": "cells that pass", "text": f"{statuses['pass']:,}", "note": others, "status": ""},
    ]
    return [
        card for card in found if card["name"] != "cells that keep the constraints" or verdict.constraints
    ]


def _failures(rows: Sequence[Row], settings: Settings) -> dict[str, Any]:
    """Cells that did not pass, by status and message: the most frequent first."""
    found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row["status"] != "pass":
            key = (
                short(row["status"]),
                *(short(row.get(name), MOST_MESSAGE) for name in ("message", "hint")),
            )
            found[key].append(row)
    groups = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return {
        "failures": [_failure(key, same, settings) for key, same in groups[:_MOST_FAILURES]],
        "more_failures": max(0, len(groups) - _MOST_FAILURES),
    }


def _failure(key: tuple[str, ...], rows: Sequence[Row], settings: Settings) -> dict[str, Any]:
    cells_named = [
        {"cell": str(row["cell"]), "text": f"{short(row['model'])} · {settings.words(row)}".rstrip(" ·")}
        for row in rows[:_MOST_LISTED]
    ]
    status, message, hint = key
    more = max(0, len(rows) - _MOST_LISTED)
    return {
        "status": status,
        "message": message,
        "hint": hint,
        "count": len(rows),
        "cells": cells_named,
        "more": more,
    }


def _stands(counts: VerdictCounts) -> str:
    words = {
        "break one": counts.broken,
        "not judged": counts.not_judged,
        "without a result": counts.no_result,
    }
    return ", ".join(f"{count:,} {text}" for text, count in words.items() if count)


def _goal_title(goal: Goal) -> str:
    return reading.named(goal.figure, goal.clock_mhz)


def _model(
    model: ModelVerdict, goals: Sequence[Goal], by_cell: Mapping[str, Row], settings: Settings
) -> dict[str, Any]:
    """A row of the table of models: a line for each ranking, or why there is none."""
    lines = [_winner(part, model, goals, by_cell, settings) for part in model.rankings] or [
        _nearest(model, goals, by_cell, settings)
    ]
    reason = "" if model.no_winner is None else model.no_winner.reason
    return {
        "model": short(model.model),
        "lines": lines,
        "reason": reason,
        "counts": model.counts,
        "notes": model.notes,
    }


def _winner(
    part: Ranking, model: ModelVerdict, goals: Sequence[Goal], by_cell: Mapping[str, Row], settings: Settings
) -> dict[str, Any]:
    first = by_cell[part.winners[0]]
    more = len(part.winners) - _MOST_LISTED
    return {
        "kind": "winner" if model.winners else "best of its source",
        "cells": [_named(cell, by_cell, settings) for cell in part.winners[:_MOST_LISTED]],
        "more": f"and {more:,} more that are equal in every goal" if more > 0 else "",
        "values": [_value(first, goal) for goal in goals],
        "plain_source": part.source or "",
        "source": _timed(part.source or "", first, goals),
        "why": "",
    }


def _nearest(
    model: ModelVerdict, goals: Sequence[Goal], by_cell: Mapping[str, Row], settings: Settings
) -> dict[str, Any]:
    nearest = None if model.no_winner is None else model.no_winner.nearest
    row: Row = by_cell[nearest.cell] if nearest else {}
    return {
        "kind": "nearest miss" if nearest else "",
        "cells": [_named(nearest.cell, by_cell, settings)] if nearest else [],
        "more": "",
        "values": [_value(row, goal) for goal in goals],
        "plain_source": "",
        "source": _timed(str(row.get("npu_cycles_source") or ""), row, goals),
        "why": cells.why(nearest) if nearest else "",
    }


def _named(cell: str, by_cell: Mapping[str, Row], settings: Settings) -> dict[str, str]:
    return {"cell": cell, "text": settings.words(by_cell[cell]) or cell}


def _timed(source: str, row: Row, goals: Sequence[Goal]) -> str:
    """Where a time comes from, with the clock that it is at unless its heading says it."""
    clock = figures.clock(row.get("clock_mhz"))
    times = [goal for goal in goals if goal.figure == figures.TIME]
    if not source or clock is None or not times or times[0].clock_mhz:
        return source
    return f"{source}, {clock:,g} MHz"


def _value(row: Row, goal: Goal) -> str:
    number = figures.value(row, goal.figure, goal.clock_mhz).number
    return "-" if number is None else figures.shown(goal.figure, number)


def _target(row: TargetVerdict, models: int) -> dict[str, Any]:
    words = {
        "broken by": row.broken,
        "not judged for": row.not_judged,
        "no result for": row.no_result,
        "not swept for": row.not_swept,
    }
    return {
        "target": short(row.target),
        "every_model": row.every_model,
        "kept": f"{len(row.kept):,} of {models:,}",
        "others": "; ".join(f"{text} {_names(names)}" for text, names in words.items() if names),
    }


def _names(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    listed = ", ".join(short(name, 60) for name in names[:_MOST_NAMES])
    return f"{listed} and {more:,} more" if more > 0 else listed
