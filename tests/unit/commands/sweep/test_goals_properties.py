"""What holds for the verdict whatever the rows: compared with the definitions, written out."""

import random
from typing import Any

from hypothesis import given, strategies as st

from ethosu_sdk.sweep.goals import Goals, judge, parse
from ethosu_sdk.sweep.goals.ranking import pareto
from tests.unit.commands.sweep.rows import Row

FIGURES = ("sram_bytes", "time_ms", "sqnr_db")
small = st.integers(min_value=0, max_value=6)  # few values make many ties


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    count = draw(st.integers(min_value=0, max_value=12))
    found: list[Row] = []
    for number in range(count):
        found.append(
            {
                "cell": f"{number:012x}",
                "model": draw(st.sampled_from("ab")),
                "target": draw(st.sampled_from(("u55", "u65", "u85"))),
                "status": draw(st.sampled_from(("pass", "pass", "pass", "fail", "refused"))),
                "npu_cycles_source": draw(st.sampled_from(("modelled", "modelled", "estimated", None))),
                "npu_cycles": draw(st.integers(min_value=1, max_value=5)),
                "clock_mhz": 500.0,
                "operators_npu": 3,
                **{name: draw(st.one_of(st.none(), small, small, small)) for name in FIGURES},
            }
        )
    return found


@st.composite
def asked(draw: st.DrawFn) -> Goals:
    constraints: list[dict[str, Any]] = []
    for name in draw(st.lists(st.sampled_from(FIGURES), max_size=2)):
        limit = draw(st.sampled_from(("max", "min")))
        constraints.append({"figure": name, limit: draw(small)})
    names = draw(st.lists(st.sampled_from(FIGURES), unique=True, max_size=3))
    goals = [
        {
            "figure": name,
            "want": draw(st.sampled_from(("min", "max"))),
            "tolerance_percent": draw(st.sampled_from((0, 0, 30))),
        }
        for name in names
    ]
    return parse({"constraints": constraints, "goals": goals}, str)


def dominates(one: Row, other: Row, goals: Goals) -> bool:
    """Pareto's definition: nowhere worse, and somewhere better."""
    signs = [1 if goal.want == "min" else -1 for goal in goals.goals]
    pairs = [
        (sign * one[goal.figure], sign * other[goal.figure])
        for sign, goal in zip(signs, goals.goals, strict=True)
    ]
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def keeps(row: Row, goals: Goals) -> bool:
    if row["status"] != "pass":
        return False
    for constraint in goals.constraints:
        number = row[constraint.figure]
        if number is None or (constraint.figure == "time_ms" and row["npu_cycles_source"] is None):
            return False
        if constraint.most is not None and number > constraint.most:
            return False
        if constraint.least is not None and number < constraint.least:
            return False
    return True


def rivals_of(rows: list[Row], goals: Goals) -> dict[tuple[str, str], list[Row]]:
    """Rows that are ranked against each other, by model and source."""
    has_source = any(goal.figure == "time_ms" for goal in goals.goals)
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        known = all(row[goal.figure] is not None for goal in goals.goals)
        if keeps(row, goals) and known and not (has_source and row["npu_cycles_source"] is None):
            key = (row["model"], row["npu_cycles_source"] if has_source else "")
            found.setdefault(key, []).append(row)
    return found


@given(rows(), asked())
def test_the_pareto_set_is_what_nothing_dominates(rows: list[Row], goals: Goals) -> None:
    found = judge(rows, goals)
    sets = {
        (model.model, part.source or ""): set(part.pareto)
        for model in found.models
        for part in model.rankings
    }
    assert sets == {
        key: {row["cell"] for row in rivals if not any(dominates(other, row, goals) for other in rivals)}
        for key, rivals in rivals_of(rows, goals).items()
    }
    standing = {cell.cell: cell.standing for model in found.models for cell in model.cells}
    free = set().union(*sets.values())
    assert {cell for cell, name in standing.items() if name in ("winner", "pareto")} == free


@given(rows(), asked())
def test_a_cell_keeps_the_constraints_or_says_why_not(rows: list[Row], goals: Goals) -> None:
    by_cell = {row["cell"]: row for row in rows}
    for model in judge(rows, goals).models:
        for cell in model.cells:
            row = by_cell[cell.cell]
            assert cell.keeps == keeps(row, goals)
            assert (cell.standing == "no result") == (row["status"] != "pass")
            assert bool(cell.misses) == (cell.standing == "broken")
            assert all(miss.by > 0 for miss in cell.misses)
            if cell.standing in ("not judged", "not ranked"):
                assert cell.missing
        assert bool(model.winners) == (model.reason == "")


@given(rows(), asked())
def test_winners_are_equal_and_in_the_pareto_set(rows: list[Row], goals: Goals) -> None:
    by_cell = {row["cell"]: row for row in rows}
    for model in judge(rows, goals).models:
        for part in model.rankings:
            assert part.winners
            assert set(part.winners) <= set(part.pareto)
            tuples = {tuple(by_cell[cell][goal.figure] for goal in goals.goals) for cell in part.winners}
            assert len(tuples) == 1
            first = goals.goals[0]
            if all(goal.tolerance_percent == 0 for goal in goals.goals):
                best = (min if first.want == "min" else max)(
                    by_cell[cell][first.figure] for cell in part.pareto
                )
                assert all(by_cell[cell][first.figure] == best for cell in part.winners)
            equal = [
                row["cell"]
                for row in rivals_of(rows, goals)[model.model, part.source or ""]
                if tuple(row[goal.figure] for goal in goals.goals) in tuples
            ]
            assert sorted(equal) == sorted(part.winners)


@given(rows(), asked(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(rows: list[Row], goals: Goals, chance: random.Random) -> None:
    shuffled = chance.sample(rows, len(rows))
    assert judge(shuffled, goals).to_record() == judge(rows, goals).to_record()


@given(st.lists(st.tuples(small, small, small), max_size=40))
def test_pareto_of_points(points: list[tuple[int, int, int]]) -> None:
    expected = [
        not any(other != point and all(a <= b for a, b in zip(other, point, strict=True)) for other in points)
        for point in points
    ]
    assert pareto(points) == expected
