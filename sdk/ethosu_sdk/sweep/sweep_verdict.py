"""The verdict on a sweep: cells by what they keep, the best of each model, and targets that fit all models."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from msgspec import structs

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.records import sweep
from ethosu_sdk.sweep import sweep_goals
from ethosu_sdk.sweep.sweep_goals import (
    ALIKE_PERCENT,
    TIME,
    Goals,
    Row,
    Value,
    cells_of,
    default_goals,
    figure_title,
    is_for,
)

# How a cell stands. Those from WINNER to UNRANKED keep every constraint.
WINNER: Final = "winner"
PARETO: Final = "pareto"
DOMINATED: Final = "dominated"
UNRANKED: Final = "not ranked"
BROKEN: Final = "broken"
UNJUDGED: Final = "not judged"
NO_RESULT: Final = "no result"
KEEPING: tuple[sweep.Standing, ...] = (WINNER, PARETO, DOMINATED, UNRANKED)


@dataclass(frozen=True)
class _Judged:
    """A cell with its verdict; `values` are those of the goals, where it is ranked."""

    verdict: sweep.CellVerdict
    target: str
    values: tuple[Value, ...] = ()

    @property
    def standing(self) -> sweep.Standing:
        return self.verdict.standing


def judge_sweep(rows: Sequence[Row], goals: Goals) -> sweep.Verdict:
    """The verdict on `rows`, whatever their order. InputError when two of them are the same cell."""
    doubled = [cell for cell, count in Counter(str(row["cell"]) for row in rows).items() if count > 1]
    if doubled:
        such = f"such as {min(doubled)}"
        raise InputError(f"{len(doubled)} cells of the sweep stand twice in its results, {such}")
    goals = _at_one_clock(rows, goals)
    by_model: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: str(row["cell"])):
        by_model[str(row["model"])].append(row)
    judged = {name: _judge_cells(by_model[name], goals) for name in sorted(by_model, key=_natural)}
    models = tuple(_model_verdict(name, by_model[name], *found, goals) for name, found in judged.items())
    cells = {name: found[0] for name, found in judged.items()}
    every = [cell for own in cells.values() for cell in own]
    return sweep.Verdict(
        status="pass" if models and all(row.counts.kept for row in models) else "fail",
        constraints=goals.constraints,
        goals=goals.goals,
        default_goals=goals.are_default,
        counts=_counts(every),
        models=models,
        targets=tuple(_target_verdicts(cells)),
        notes=tuple(_notes(rows, goals)),
        cells=tuple(cell.verdict for cell in every),
    )


def _counts(cells: Sequence[_Judged]) -> sweep.VerdictCounts:
    found = Counter(row.standing for row in cells)
    return sweep.VerdictCounts(
        cells=len(cells),
        kept=sum(found[name] for name in KEEPING),
        broken=found[BROKEN],
        not_judged=found[UNJUDGED],
        no_result=found[NO_RESULT],
    )


Points = Sequence[Sequence[float]]  # a row a cell, a column a goal; less is better in all of them


def are_pareto(points: Points) -> list[bool]:
    """Of each point, whether no other is at least as good in every column and better in one."""
    if not points:
        return []
    rows, owner = np.unique(np.asarray(points, dtype=np.float64), axis=0, return_inverse=True)
    front = np.empty_like(rows)
    count = 0
    is_free = np.zeros(len(rows), dtype=bool)
    for index, row in enumerate(rows):  # in rising order: no later one dominates an earlier one
        if not np.any(np.all(front[:count] <= row, axis=1)):
            front[count] = row
            count += 1
            is_free[index] = True
    return [bool(is_free[index]) for index in owner.reshape(-1)]


def first_by_goals(points: Points, tolerances_percent: Sequence[float]) -> list[int]:
    """The places of the best points: all of them are equal.

    Goal by goal, in their order, those of the Pareto set stay that are within the goal's tolerance of the best one
    left. Of those, the least in the first column win; of those, the least in the second; and so on.
    """
    left = [index for index, free in enumerate(are_pareto(points)) if free]
    for column, percent in enumerate(tolerances_percent):
        best = min((points[index][column] for index in left), default=0.0)
        most = best + abs(best) * percent / 100 if math.isfinite(best) else best
        left = [index for index in left if points[index][column] <= most]
    best_row = min((tuple(points[index]) for index in left), default=())
    return [index for index in left if tuple(points[index]) == best_row]


_DIGITS = re.compile(r"([0-9]{1,9})")


def _at_one_clock(rows: Sequence[Row], goals: Goals) -> Goals:
    """The goals of a sweep that names none, with its times at one clock: that of the constraints, or the slowest if
    cells have several."""
    stated = {row.clock_mhz for row in goals.constraints if row.clock_mhz}
    own = _clocks(rows)
    if not goals.are_default or goals.goals[1].figure != TIME or (len(stated) != 1 and len(own) < 2):
        return goals
    return replace(goals, goals=default_goals(TIME, stated.pop() if len(stated) == 1 else min(own)))


def _clocks(rows: Sequence[Row]) -> set[float]:
    found = (sweep_goals.parse_clock(row.get("clock_mhz")) for row in rows if row["status"] == "pass")
    return {clock for clock in found if clock is not None}


def _notes(rows: Sequence[Row], goals: Goals) -> Iterator[str]:
    """What the figures that were judged do not tell, and constraints that judged none."""
    names = {(str(row["model"]), str(row.get("system") or "")) for row in rows}
    for asked in goals.constraints:
        if not any(is_for(asked, *pair) for pair in names):
            whom = cells_of(asked.models, asked.systems)
            yield f"no cell of the sweep is one of {whom}: the constraint {asked.text} judged nothing"
    passed = [row for row in rows if row["status"] == "pass"]
    on_cpu = sum(leaves_out_the_cpu(goals, row) for row in passed)
    if on_cpu:
        yield (
            f"times and cycles are of the NPU alone: {on_cpu:,} of {len(passed):,} cells that passed run operators "
            "on the CPU as well, whose time is not in them"
        )
    modes = {row.get("memory_mode") == "Sram_Only" for row in passed}
    if "sram_bytes" in goals.figures and len(modes) > 1:
        yield (
            "in Sram_Only the NPU reads its constants through the SRAM's port, and Vela counts them as flash: if "
            "they lie in SRAM on your board, add `flash_bytes` to `sram_bytes` of these cells"
        )
    own = sorted(_clocks(rows))
    if len(own) > 1 and any(row.figure == TIME and not row.clock_mhz for row in _timed(goals)):
        listed = ", ".join(f"{clock:g}" for clock in own)
        yield f"times are compared at different clocks ({listed} MHz): `clock_mhz` has them at one"
    for clock in sorted({row.clock_mhz for row in _timed(goals) if row.clock_mhz}):
        others = sum(row.get("clock_mhz") not in (None, clock) for row in passed)
        if others:
            yield (
                f"times at {clock:g} MHz are, in {counted(others, 'cell')}, cycles that were found for another "
                "clock: right if the memories keep pace with the clock"
            )


def _judge_cells(rows: Sequence[Row], goals: Goals) -> tuple[list[_Judged], list[sweep.Ranking]]:
    cells = {str(row["cell"]): _judge_cell(row, goals) for row in rows}
    rankings: list[sweep.Ranking] = []
    kept = [row for row in cells.values() if row.standing == DOMINATED]
    for source in sorted({row.verdict.source for row in kept}, key=str):
        found = _rank(source, [row for row in kept if row.verdict.source == source], goals)
        rankings.append(found)
        for cell in found.pareto:
            standing: sweep.Standing = WINNER if cell in found.winners else PARETO
            verdict = structs.replace(cells[cell].verdict, standing=standing)
            cells[cell] = replace(cells[cell], verdict=verdict)
    return list(cells.values()), rankings


def _model_verdict(
    name: str, rows: Sequence[Row], cells: Sequence[_Judged], rankings: Sequence[sweep.Ranking], goals: Goals
) -> sweep.ModelVerdict:
    reason, is_kept = _reason(cells, rankings), any(row.standing in KEEPING for row in cells)
    missed = [row for row in cells if row.verdict.misses and not is_kept]
    nearest = min(missed, key=_distance).verdict if missed else None
    miss = sweep.Nearest(cell=nearest.cell, misses=nearest.misses or ()) if nearest is not None else None
    notes = list(_ties(cells, rankings))
    best = {cell for part in rankings for cell in part.winners}
    if any(row["cell"] in best and leaves_out_the_cpu(goals, row) for row in rows):
        notes.append("the best cell runs operators on the CPU as well, whose time is not counted")
    return sweep.ModelVerdict(
        model=name,
        counts=_counts(cells),
        rankings=tuple(rankings),
        winners=rankings[0].winners if len(rankings) == 1 else (),  # none where sources are not comparable
        no_winner=sweep.NoWinner(reason=reason, nearest=miss) if reason else None,
        notes=tuple(notes),
    )


def _judge_cell(row: Row, goals: Goals) -> _Judged:
    """A cell by itself: one that keeps the constraints counts as dominated until it is ranked."""
    base, target = sweep.CellVerdict(cell=str(row["cell"]), standing=NO_RESULT), str(row["target"])
    if row["status"] != "pass":
        return _Judged(base, target)
    misses, missing = _constraints(row, goals.constraints)
    if misses or missing:
        standing: sweep.Standing = BROKEN if misses else UNJUDGED
        broken = structs.replace(base, standing=standing, misses=misses or None, missing=missing or None)
        return _Judged(broken, target)
    values = tuple(sweep_goals.figure_value(row, goal.figure, goal.clock_mhz) for goal in goals.goals)
    unknown = dict.fromkeys(value.why for value in values if value.number is None)
    if unknown:
        return _Judged(structs.replace(base, standing=UNRANKED, missing=tuple(unknown)), target)
    source = next((value.source for value in values if value.source), None)
    return _Judged(structs.replace(base, standing=DOMINATED, source=source), target, values)


def _constraints(
    row: Row, constraints: Sequence[sweep.Constraint]
) -> tuple[tuple[sweep.Miss, ...], tuple[str, ...]]:
    """Those that the cell does not keep, and why others could not be judged."""
    misses: list[sweep.Miss] = []
    missing: list[str] = []
    for index, constraint in enumerate(constraints):
        if not is_for(constraint, str(row["model"]), str(row.get("system") or "")):
            continue
        found = sweep_goals.figure_value(row, constraint.figure, constraint.clock_mhz)
        if found.number is None:
            missing.append(found.why)
        else:
            misses += _miss(index, constraint, found, found.number)
    return tuple(misses), tuple(dict.fromkeys(missing))


def _miss(index: int, constraint: sweep.Constraint, found: Value, number: float) -> Iterator[sweep.Miss]:
    number = min(number, sweep_goals.MOST)  # an SQNR may be infinite, which no record holds
    for limit, by in (
        (constraint.max, number - (constraint.max or 0.0)),
        (constraint.min, (constraint.min or 0.0) - number),
    ):
        if limit is not None and by > 0:
            name = figure_title(constraint.figure, constraint.clock_mhz)
            value, most = (sweep_goals.shown_figure(constraint.figure, figure) for figure in (number, limit))
            more = f" (by {100 * by / abs(limit):,.1f} %)" if limit else ""
            yield sweep.Miss(
                constraint=index,
                value=number,
                limit=limit,
                by=by,
                percent=round(100 * by / abs(limit), 4) if limit else None,
                source=found.source,
                text=f"{name} {value} {'>' if number > limit else '<'} {most}{more}",
            )


def _rank(source: sweep.RankedSource | None, rivals: Sequence[_Judged], goals: Goals) -> sweep.Ranking:
    signs = [-1.0 if goal.want == sweep_goals.MAX else 1.0 for goal in goals.goals]
    signed = (zip(signs, row.values, strict=True) for row in rivals)
    points = [[sign * (value.number or 0) for sign, value in row] for row in signed]
    best = first_by_goals(points, [goal.tolerance_percent or 0 for goal in goals.goals])
    return sweep.Ranking(
        source=source,
        pareto=tuple(row.verdict.cell for row, free in zip(rivals, are_pareto(points), strict=True) if free),
        winners=tuple(rivals[index].verdict.cell for index in best),
    )


def _distance(row: _Judged) -> tuple[bool, float, float, str]:
    """How near a cell is to keeping its constraints: those with figures missing come last."""
    shares = [miss.by / max(abs(miss.limit), 1.0) for miss in row.verdict.misses or ()]
    return bool(row.verdict.missing), max(shares), sum(shares), row.verdict.cell


def _reason(cells: Sequence[_Judged], rankings: Sequence[sweep.Ranking]) -> str:
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


def _timed(goals: Goals | sweep.Verdict) -> list[sweep.Constraint | sweep.Goal]:
    asked: list[sweep.Constraint | sweep.Goal] = [*goals.constraints, *goals.goals]
    return [row for row in asked if sweep_goals.FIGURES[row.figure].has_source]


def leaves_out_the_cpu(goals: Goals | sweep.Verdict, row: Row) -> bool:
    """Whether the times or cycles that were judged are those of the NPU alone, and the cell `row` runs operators on
    the CPU as well."""
    asked: list[sweep.Constraint | sweep.Goal] = [*goals.constraints, *goals.goals]
    has_inference = any(part.figure == sweep_goals.INFERENCE for part in asked)
    return bool(_timed(goals)) and not has_inference and row.get("operators_cpu") not in (None, 0)


def _ties(cells: Sequence[_Judged], rankings: Sequence[sweep.Ranking]) -> Iterator[str]:
    """Cells that the winner beats by so little that it does not count."""
    for part in rankings:
        best = next(row for row in cells if row.verdict.cell == part.winners[0])
        others = (row for row in cells if row.verdict.cell not in part.winners)
        alike = [row for row in others if row.verdict.source == part.source and _is_alike(row, best)]
        if alike:
            targets = ", ".join(dict.fromkeys(row.target for row in alike))
            yield (
                f"a tie: {counted(len(alike), 'more cell')} (on {targets}) equal the best one within "
                f"{ALIKE_PERCENT:g} % in every goal"
            )


def _is_alike(row: _Judged, best: _Judged) -> bool:
    """Whether each figure of a ranked cell is that of the best cell, or hardly differs from it."""
    return bool(row.values) and all(
        one.number is not None
        and other.number is not None
        and math.isclose(one.number, other.number, rel_tol=ALIKE_PERCENT / 100)
        for one, other in zip(row.values, best.values, strict=True)
    )


def _natural(text: str) -> tuple[list[tuple[int, str]], str]:
    """A key that sorts names with numbers in them by the numbers."""
    parts = _DIGITS.split(text)
    return [(int(part), "") if _DIGITS.fullmatch(part) else (-1, part) for part in parts], text


def _target_verdicts(models: Mapping[str, Sequence[_Judged]]) -> Iterator[sweep.TargetVerdict]:
    for target in sorted({cell.target for cells in models.values() for cell in cells}, key=_natural):
        found: dict[str, list[str]] = defaultdict(list)
        for model, cells in models.items():
            standings = {cell.standing for cell in cells if cell.target == target}
            worst = next((name for name in (BROKEN, UNJUDGED, NO_RESULT) if name in standings), "not swept")
            found["kept" if standings & {*KEEPING} else worst].append(model)
        yield sweep.TargetVerdict(
            target=target,
            every_model=found.keys() == {"kept"},
            kept=tuple(found.get("kept", ())),
            broken=tuple(found.get(BROKEN, ())),
            not_judged=tuple(found.get(UNJUDGED, ())),
            no_result=tuple(found.get(NO_RESULT, ())),
            not_swept=tuple(found.get("not swept", ())),
        )
