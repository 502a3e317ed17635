"""Rows of a sweep judged by its constraints and goals."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ethosu_sdk.errors import InputError
from ethosu_sdk.plain_text import counted
from ethosu_sdk.records.sweep import Miss, Ranking, Source, Standing, TargetVerdict
from ethosu_sdk.sweep.goals import figures, ranking
from ethosu_sdk.sweep.goals.figures import Row, Value
from ethosu_sdk.sweep.goals.reading import ALIKE_PERCENT, Constraint, Goal, Goals, named
from ethosu_sdk.sweep.goals.verdict import (
    BROKEN,
    DOMINATED,
    NO_RESULT,
    PARETO,
    UNJUDGED,
    UNRANKED,
    WINNER,
    Judged,
    ModelVerdict,
    Verdict,
)

_DIGITS = re.compile(r"([0-9]{1,9})")


def judge(rows: Sequence[Row], goals: Goals) -> Verdict:
    """The verdict on `rows`, whatever their order. InputError when two of them are the same cell."""
    doubled = [cell for cell, count in Counter(str(row["cell"]) for row in rows).items() if count > 1]
    if doubled:
        raise InputError(
            f"{len(doubled)} cells of the sweep stand twice in its results, such as {min(doubled)}"
        )
    goals = _at_one_clock(rows, goals)
    by_model: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: str(row["cell"])):
        by_model[str(row["model"])].append(row)
    models = tuple(_model(name, by_model[name], goals) for name in sorted(by_model, key=_natural))
    return Verdict(goals, models, tuple(_targets(models)), tuple(_notes(rows, goals)))


def _at_one_clock(rows: Sequence[Row], goals: Goals) -> Goals:
    """The goals of a sweep that names none, with its times at one clock.

    It is that of the constraints, or the slowest where cells have several.
    """
    stated = {row.clock_mhz for row in goals.constraints if row.clock_mhz}
    own = _clocks(rows)
    if not goals.are_default or (len(stated) != 1 and len(own) < 2):
        return goals
    clock = stated.pop() if len(stated) == 1 else min(own)
    timed = tuple(replace(row, clock_mhz=clock) if row.figure == figures.TIME else row for row in goals.goals)
    return replace(goals, goals=timed)


def _clocks(rows: Sequence[Row]) -> set[float]:
    """The clocks, in MHz, of cells that passed."""
    found = (figures.clock(row.get("clock_mhz")) for row in rows if row["status"] == "pass")
    return {clock for clock in found if clock is not None}


def _notes(rows: Sequence[Row], goals: Goals) -> Iterator[str]:
    """What the figures that were judged do not tell, and constraints that judged none."""
    for row in goals.idle({(str(row["model"]), str(row.get("system") or "")) for row in rows}):
        yield f"no cell of the sweep is one of {row.whom}: the constraint {row.text} judged nothing"
    passed = [row for row in rows if row["status"] == "pass"]
    on_cpu = sum(row.get("operators_cpu") not in (None, 0) for row in passed)
    if _of_the_npu_alone(goals) and on_cpu:
        yield (
            f"times and cycles are of the NPU alone: {on_cpu:,} of {len(passed):,} cells that passed run operators "
            "on the CPU as well, whose time is not in them"
        )
    if "sram_bytes" in goals.figures and 0 < sum(map(_is_sram_only, passed)) < len(passed):
        yield (
            "in Sram_Only the NPU reads its constants through the SRAM's port, and Vela counts them as flash: if "
            "they lie in SRAM on your board, add `flash_bytes` to `sram_bytes` of these cells"
        )
    own = sorted(_clocks(rows))
    if len(own) > 1 and any(row.figure == figures.TIME and not row.clock_mhz for row in _timed(goals)):
        listed = ", ".join(f"{clock:g}" for clock in own)
        yield f"times are compared at different clocks ({listed} MHz): `clock_mhz` has them at one"
    for clock in sorted({row.clock_mhz for row in _timed(goals) if row.clock_mhz}):
        others = sum(row.get("clock_mhz") not in (None, clock) for row in passed)
        if others:
            yield (
                f"times at {clock:g} MHz are, in {counted(others, 'cell')}, cycles that were found for another "
                "clock: right if the memories keep pace with the clock"
            )


def _model(name: str, rows: Sequence[Row], goals: Goals) -> ModelVerdict:
    cells = {str(row["cell"]): _cell(row, goals) for row in rows}
    rankings: list[Ranking] = []
    for source in sorted({cell.source for cell in cells.values() if cell.standing == DOMINATED}, key=str):
        rivals = [row for row in cells.values() if row.standing == DOMINATED and row.source == source]
        found = _rank(source, rivals, goals)
        rankings.append(found)
        winners = set(found.winners)
        for cell in found.pareto:
            standing: Standing = WINNER if cell in winners else PARETO
            cells[cell] = replace(cells[cell], standing=standing)
    judged = tuple(cells.values())
    reason = _reason(judged, rankings)
    kept = any(row.keeps for row in judged)
    nearest = None if kept else min((row for row in judged if row.misses), key=_distance, default=None)
    return ModelVerdict(
        name,
        judged,
        tuple(rankings),
        reason,
        nearest,
        (*_ties(judged, rankings), *_caveats(rows, rankings, goals)),
    )


def _cell(row: Row, goals: Goals) -> Judged:
    """A cell by itself: one that keeps the constraints counts as dominated until it is ranked."""
    base = Judged(str(row["cell"]), str(row["model"]), str(row["target"]), NO_RESULT, str(row["status"]))
    if row["status"] != "pass":
        return base
    misses, missing = _constraints(row, goals.constraints)
    if misses or missing:
        return replace(base, standing=BROKEN if misses else UNJUDGED, misses=misses, missing=missing)
    values = tuple(figures.value(row, goal.figure, goal.clock_mhz) for goal in goals.goals)
    unknown = tuple(value.why for value in values if value.number is None)
    if unknown:
        return replace(base, standing=UNRANKED, missing=tuple(dict.fromkeys(unknown)))
    source = next((value.source for value in values if value.source), None)
    return replace(base, standing=DOMINATED, values=values, source=source)


def _constraints(row: Row, constraints: Sequence[Constraint]) -> tuple[tuple[Miss, ...], tuple[str, ...]]:
    """Those that the cell does not keep, and why others could not be judged."""
    misses: list[Miss] = []
    missing: list[str] = []
    for index, constraint in enumerate(constraints):
        if not constraint.is_for(str(row["model"]), str(row.get("system") or "")):
            continue
        found = figures.value(row, constraint.figure, constraint.clock_mhz)
        if found.number is None:
            missing.append(found.why)
        else:
            misses += _miss(index, constraint, found, found.number)
    return tuple(misses), tuple(dict.fromkeys(missing))


def _miss(index: int, constraint: Constraint, found: Value, number: float) -> Iterator[Miss]:
    number = min(number, figures.MOST)  # an SQNR may be infinite, which no record holds
    for limit, by in (
        (constraint.most, number - (constraint.most or 0.0)),
        (constraint.least, (constraint.least or 0.0) - number),
    ):
        if limit is not None and by > 0:
            yield Miss(
                constraint=index,
                value=number,
                limit=limit,
                by=by,
                percent=round(100 * by / abs(limit), 4) if limit else None,
                source=found.source,
                text=_miss_text(constraint, number, limit),
            )


def _miss_text(constraint: Constraint, number: float, limit: float) -> str:
    name, sign = named(constraint.figure, constraint.clock_mhz), ">" if number > limit else "<"
    value, most = (figures.shown(constraint.figure, figure) for figure in (number, limit))
    more = f" (by {100 * abs(number - limit) / abs(limit):,.1f} %)" if limit else ""
    return f"{name} {value} {sign} {most}{more}"


def _rank(source: Source | None, rivals: Sequence[Judged], goals: Goals) -> Ranking:
    points = [
        [
            -float(value.number or 0) if goal.want == figures.MAX else float(value.number or 0)
            for value, goal in zip(row.values, goals.goals, strict=True)
        ]
        for row in rivals
    ]
    free = ranking.pareto(points)
    best = ranking.first(points, [goal.tolerance_percent for goal in goals.goals])
    return Ranking(
        source=source,
        pareto=tuple(row.cell for row, is_free in zip(rivals, free, strict=True) if is_free),
        winners=tuple(rivals[index].cell for index in best),
    )


def _distance(row: Judged) -> tuple[bool, float, float, str]:
    """How near a cell is to keeping its constraints: those with figures missing come last."""
    shares = [miss.by / max(abs(miss.limit), 1.0) for miss in row.misses]
    return bool(row.missing), max(shares), sum(shares), row.cell


def _reason(cells: Sequence[Judged], rankings: Sequence[Ranking]) -> str:
    """Why there is no winner; empty where there is one."""
    if len(rankings) == 1:
        return ""
    if len(rankings) > 1:
        sources = " and ".join(str(row.source) for row in rankings)
        return f"figures of different sources, {sources}, are not ranked against each other"
    standings = {row.standing for row in cells}
    if UNRANKED in standings:
        return "no cell that keeps the constraints has the figures of all goals"
    if BROKEN in standings:
        return "no cell keeps all constraints"
    if UNJUDGED in standings:
        return "no cell has the figures of all constraints"
    return "no cell has a result that passed"


def _is_sram_only(row: Row) -> bool:
    return row.get("memory_mode") == "Sram_Only"


def _timed(goals: Goals) -> list[Constraint | Goal]:
    asked: list[Constraint | Goal] = [*goals.constraints, *goals.goals]
    return [row for row in asked if figures.FIGURES[row.figure].has_source]


def _of_the_npu_alone(goals: Goals) -> bool:
    """Whether times or cycles are judged that the CPU's are not in, and no time is judged that has them."""
    return bool(_timed(goals)) and figures.INFERENCE not in goals.figures


def _ties(cells: Sequence[Judged], rankings: Sequence[Ranking]) -> Iterator[str]:
    """Cells that the winner beats by so little that it does not count."""
    by_cell = {row.cell: row for row in cells}
    for part in rankings:
        best = by_cell[part.winners[0]]
        alike = [
            row
            for row in cells
            if row.cell not in part.winners and row.source == part.source and _is_alike(row, best)
        ]
        if alike:
            targets = ", ".join(dict.fromkeys(row.target for row in alike))
            yield (
                f"a tie: {counted(len(alike), 'more cell')} (on {targets}) equal the best one within "
                f"{ALIKE_PERCENT:g} % in every goal"
            )


def _is_alike(row: Judged, best: Judged) -> bool:
    """Whether each figure of a ranked cell is that of the best cell, or hardly differs from it."""
    return bool(row.values) and all(
        one.number is not None
        and other.number is not None
        and math.isclose(one.number, other.number, rel_tol=ALIKE_PERCENT / 100)
        for one, other in zip(row.values, best.values, strict=True)
    )


def _caveats(rows: Sequence[Row], rankings: Sequence[Ranking], goals: Goals) -> Iterator[str]:
    """What the figures of the best cells do not tell."""
    best = {cell for part in rankings for cell in part.winners}
    if _of_the_npu_alone(goals) and any(
        row["cell"] in best and row.get("operators_cpu") not in (None, 0) for row in rows
    ):
        yield "the best cell runs operators on the CPU as well, whose time is not counted"


def _natural(text: str) -> tuple[list[tuple[int, str]], str]:
    """A key that sorts names with numbers in them by the numbers."""
    parts = _DIGITS.split(text)
    return [(int(part), "") if _DIGITS.fullmatch(part) else (-1, part) for part in parts], text


def _targets(models: Sequence[ModelVerdict]) -> Iterator[TargetVerdict]:
    for target in sorted({cell.target for model in models for cell in model.cells}, key=_natural):
        found: dict[str, list[str]] = defaultdict(list)
        for model in models:
            found[_on(target, model)].append(model.model)
        yield TargetVerdict(
            target=target,
            every_model=found.keys() == {"kept"},
            kept=tuple(found.get("kept", ())),
            broken=tuple(found.get(BROKEN, ())),
            not_judged=tuple(found.get(UNJUDGED, ())),
            no_result=tuple(found.get(NO_RESULT, ())),
            not_swept=tuple(found.get("not swept", ())),
        )


def _on(target: str, model: ModelVerdict) -> str:
    cells = [row for row in model.cells if row.target == target]
    if any(row.keeps for row in cells):
        return "kept"
    standings = {row.standing for row in cells}
    return next((name for name in (BROKEN, UNJUDGED, NO_RESULT) if name in standings), "not swept")
