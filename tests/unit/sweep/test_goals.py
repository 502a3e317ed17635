"""`[[constraints]]` and `[[goals]]`: what they may say, and the verdict on rows, by cases and by the definitions."""

import json
import math
import random
import tomllib
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given, strategies as st

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.toml_source import TomlSource
from ethosu_sdk.records.sweep import ModelVerdict, Verdict
from ethosu_sdk.sweep import sweep_goals
from ethosu_sdk.sweep.sweep_goals import ConstraintTables, Goals, GoalTables, parse_goals
from ethosu_sdk.sweep.sweep_verdict import KEEPING, are_pareto, judge_sweep
from tests.places import ROOT
from tests.tables import each
from tests.unit.sweep.rows import Row, row, without_result

WHOLE = json.loads((ROOT / "schemas" / "sweep.v1.schema.json").read_text(encoding="utf-8"))
SCHEMA = {"$schema": WHOLE["$schema"], "$ref": "#/$defs/Verdict", "$defs": WHOLE["$defs"]}

GUIDE = (ROOT / "docs" / "guide" / "sweep.md").read_text(encoding="utf-8")


class Tables(msgspec.Struct, forbid_unknown_fields=True):
    constraints: ConstraintTables = []
    goals: GoalTables = []


class Source(TomlSource):
    def locate(self, place: tuple[str | int, ...]) -> str:
        return "SWEEP.toml:" + ".".join(map(str, place))


def goals(text: str = "") -> Goals:
    return of_tables(tomllib.loads(text))


def of_tables(tables: dict[str, Any]) -> Goals:
    source = Source("SWEEP.toml", "")
    rows = source.convert(tables, Tables)
    return parse_goals(source, rows.constraints, rows.goals)


def verdict(rows: list[Row], text: str = "") -> Verdict:
    """The verdict, whose record is as its schema says and is JSON."""
    found = judge_sweep(rows, goals(text))
    record = json.loads(json.dumps(found.to_json(), allow_nan=False))
    jsonschema.Draft202012Validator(SCHEMA).validate(record)
    return found


def standings(found: Verdict) -> dict[str, str]:
    return {cell.cell: cell.standing for cell in found.cells}


def why_no_winner(model: ModelVerdict) -> str:
    return "" if model.no_winner is None else model.no_winner.reason


@each(
    ("text", "words"),
    [
        ("constraints = 1", "SWEEP.toml:constraints: constraints must be at most 64 tables"),
        ("[[constraints]]\nmax = 1", "SWEEP.toml:constraints.0: [[constraints]] has no figure"),
        ('[[constraints]]\nfigure = "sram"\nmax = 1', "figure cannot be 'sram'"),
        ('[[constraints]]\nfigure = ["sram"]\nmax = 1', "figure cannot be 'list'"),
        ('[[constraints]]\nfigure = "time_ms"', "has no limit"),
        ('[[constraints]]\nfigure = "time_ms"\nmax = "2 MB"', "SWEEP.toml:constraints.0.max: max of time_ms"),
        ('[[constraints]]\nfigure = "sram_bytes"\nmax = "2 mb"', "max of sram_bytes"),
        ('[[constraints]]\nfigure = "sram_bytes"\nmax = "2 MB."', "max of sram_bytes"),
        ('[[constraints]]\nfigure = "sram_bytes"\nmax = -1', "max of sram_bytes"),
        ('[[constraints]]\nfigure = "sram_bytes"\nmax = true', "max of sram_bytes"),
        ('[[constraints]]\nfigure = "sram_bytes"\nmax = inf', "max of sram_bytes"),
        ('[[constraints]]\nfigure = "sram_bytes"\nmax = nan', "max of sram_bytes"),
        (f'[[constraints]]\nfigure = "sram_bytes"\nmax = {10**400}', "max of sram_bytes"),
        ('[[constraints]]\nfigure = "sqnr_db"\nmin = "20 %"', "a number of decibels"),
        ('[[constraints]]\nfigure = "sqnr_db"\nmin = 3\nmax = 2', "SWEEP.toml:constraints.0.min"),
        ('[[constraints]]\nfigure = "sqnr_db"\nmin = 3\nclock_mhz = 2', "clock_mhz applies only to"),
        ('[[constraints]]\nfigure = "time_ms"\nmax = 3\nclock_mhz = 0', "clock_mhz must be a number of MHz"),
        (
            '[[constraints]]\nfigure = "time_ms"\nmax = 3\nclock_mhz = nan',
            "clock_mhz must be a number of MHz",
        ),
        (
            '[[constraints]]\nfigure = "time_ms"\nmax = 3\nmodels = "a"',
            "models must be a list of 1 to 64 names",
        ),
        (
            '[[constraints]]\nfigure = "time_ms"\nmax = 3\nmodels = []',
            "models must be a list of 1 to 64 names",
        ),
        (f'[[constraints]]\nfigure = "time_ms"\nmax = 3\nmodels = ["{"*" * 9}"]', "a list of 1 to 64 names"),
        ('[[constraints]]\nfigure = "time_ms"\nmaximum = 3', "did you mean 'max'"),
        ('[[constraints]]\nfigure = "time_ms"\nmax = 3\n' * 65, "at most 64 tables [[constraints]]"),
        ('[[goals]]\nfigure = "time_ms"\nwant = "least"', "SWEEP.toml:goals.0.want"),
        ('[[goals]]\nfigure = "time_ms"\nwant = ["min"]', "SWEEP.toml:goals.0.want"),
        ('[[goals]]\nfigure = "time_ms"\ntolerance_percent = "5"', "tolerance_percent must be a number"),
        ('[[goals]]\nfigure = "time_ms"\ntolerance_percent = -1', "tolerance_percent must be a number"),
        ('[[goals]]\nfigure = "time_ms"\n' * 2, "SWEEP.toml:goals.1: there is a goal for NPU time already"),
        ('[[goals]]\nfigure = "time_ms"\nweight = 1', "[[goals]] has no 'weight'"),
    ],
)
def test_what_says_no_goal_is_named_with_its_line(text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        goals(text)
    assert words in f"{caught.value.message}\n{caught.value.hint}"
    assert caught.value.message.startswith("SWEEP.toml:")


@each(
    ("figure", "given", "number"),
    [
        ("sram_bytes", '"2 MB"', 2_000_000),
        ("sram_bytes", '"2 MiB"', 2_097_152),
        ("flash_bytes", '"1.5kB"', 1500),
        ("program_bytes", "1024", 1024),
        ("time_ms", '"0.02 s"', 20),
        ("time_ms", '"250 us"', 0.25),
        ("sqnr_db", '"-3 dB"', -3),
    ],
)
def test_limits_have_units(figure: str, given: str, number: float) -> None:
    (found,) = goals(f'[[constraints]]\nfigure = "{figure}"\nmax = {given}').constraints
    assert found.max == pytest.approx(number, rel=1e-12)


def test_what_failed_by_how_much_and_the_nearest_miss() -> None:
    small, large = row(sram_bytes=1_900_000), row(sram_bytes=2_500_000, target="ethos-u55-256")
    found = verdict([small, large], '[[constraints]]\nfigure = "sram_bytes"\nmax = "2 MB"')
    assert standings(found) == {small["cell"]: "winner", large["cell"]: "broken"}
    (miss,) = next(cell.misses for cell in found.cells if cell.misses)
    assert (miss.constraint, miss.value, miss.limit, miss.by) == (0, 2_500_000, 2_000_000, 500_000)
    assert miss.text == "SRAM 2,500,000 bytes > 2,000,000 bytes (by 25.0 %)"
    assert found.status == "pass"
    text = (
        '[[constraints]]\nfigure = "sram_bytes"\nmax = 80000\n[[constraints]]\nfigure = "sqnr_db"\nmin = 30'
    )
    far = row(sram_bytes=160_000)
    near = row(sram_bytes=100_000, sqnr_db=24.0, target="ethos-u55-256")  # by 25 % and by 20 %
    unknown = row(sram_bytes=80_001, sqnr_db=None, target="ethos-u65-256")
    no_winner = verdict([far, near, unknown], text).models[0].no_winner
    assert no_winner is not None
    assert no_winner.reason == "no cell keeps all constraints"
    assert no_winner.nearest is not None
    assert no_winner.nearest.cell == near["cell"]
    assert [miss.percent for miss in no_winner.nearest.misses] == [25.0, 20.0]


def test_times_are_at_one_clock() -> None:
    """12,500,000 cycles are 12.5 ms at 1 GHz and 25 ms at 500 MHz: the second is too long."""
    cell = row(npu_cycles=12_500_000, clock_mhz=1000.0)
    assert cell["time_ms"] == 12.5
    own = verdict([cell], '[[constraints]]\nfigure = "time_ms"\nmax = 20')
    assert own.models[0].counts.kept
    assert own.notes == ()
    slower = verdict([cell], '[[constraints]]\nfigure = "time_ms"\nmax = 20\nclock_mhz = 500')
    no_winner = slower.models[0].no_winner
    assert no_winner is not None
    assert no_winner.nearest is not None
    assert no_winner.nearest.misses[0].value == 25.0
    assert any("times at 500 MHz are, in 1 cell," in note for note in slower.notes)
    # 700,000 cycles at 1 GHz are less time than 400,000 at 500 MHz, and more at one clock.
    fast = row(npu_cycles=700_000, clock_mhz=1000.0, target="ethos-u85-256")
    slow = row(npu_cycles=400_000, clock_mhz=500.0)
    assert fast["time_ms"] < slow["time_ms"]
    found = verdict([fast, slow], "")
    assert standings(found) == {slow["cell"]: "winner", fast["cell"]: "dominated"}
    assert [goal.clock_mhz for goal in found.goals] == [None, 500.0]
    stated = verdict([fast, slow], '[[constraints]]\nfigure = "time_ms"\nmax = 20\nclock_mhz = 250')
    assert stated.goals[1].clock_mhz == 250.0
    own = verdict([fast, slow], '[[goals]]\nfigure = "time_ms"')
    assert standings(own)[fast["cell"]] == "winner"
    assert "times are compared at different clocks (500, 1000 MHz): `clock_mhz` has them at one" in own.notes


@each(
    ("members", "words"),
    [
        ({"sqnr_db": None}, "sqnr_db is not known"),
        ({"sqnr_db": math.nan}, "sqnr_db is not a number"),
        ({"sqnr_db": "31"}, "sqnr_db is not a number"),
        ({"sqnr_db": True}, "sqnr_db is not a number"),
        ({"sqnr_db": -math.inf}, "sqnr_db is out of range"),
        ({"time_ms": None}, "time_ms is not known"),
        ({"time_ms": 10**400}, "time_ms is out of range"),
        ({"time_ms": -1.0}, "time_ms is out of range"),
        ({"npu_cycles_source": None}, "time_ms has no source"),
        ({"npu_cycles_source": "guessed"}, "time_ms has no source"),
        ({"operators_npu": 0}, "on which nothing ran"),
        ({"npu_cycles": 0}, "on which nothing ran"),
    ],
)
def test_a_missing_figure_never_passes(members: Row, words: str) -> None:
    text = '[[constraints]]\nfigure = "time_ms"\nmax = 100\n[[constraints]]\nfigure = "sqnr_db"\nmin = 20'
    found = verdict([row(**members)], text)
    (cell,) = found.cells
    assert cell.missing is not None
    assert cell.standing == "not judged"
    assert words in " ".join(cell.missing)
    assert (found.status, found.models[0].winners) == ("fail", ())
    assert why_no_winner(found.models[0]) == "no cell has the figures of all constraints"


def test_missing_and_infinite_figures_of_a_goal() -> None:
    known, unknown = row(), row(target="ethos-u55-256", sram_bytes=None)
    found = verdict([known, unknown])
    assert standings(found) == {known["cell"]: "winner", unknown["cell"]: "not ranked"}
    alone = verdict([unknown])
    assert alone.status == "pass"  # it keeps what it must
    assert why_no_winner(alone.models[0]) == "no cell that keeps the constraints has the figures of all goals"
    assert (
        verdict([row(sqnr_db=math.inf)], '[[constraints]]\nfigure = "sqnr_db"\nmin = 20')
        .models[0]
        .counts.kept
    )
    best = verdict([row(), row(target="t", sqnr_db=math.inf)], '[[goals]]\nfigure = "sqnr_db"')
    assert best.models[0].winners == (row(target="t")["cell"],)


def test_every_figure_can_be_a_goal_and_a_constraint() -> None:
    for name, figure in sweep_goals.FIGURES.items():
        text = f'[[constraints]]\nfigure = "{name}"\nmin = 0\n[[goals]]\nfigure = "{name}"'
        found = verdict(
            [row(dram_bytes=1, inference_ms=2.0, cpu_calls=0, check_sqnr_db=40.0, operators_cpu=1, top1=0.9)],
            text,
        )
        assert found.models[0].winners, name
        assert figure.title in found.goals[0].text
        assert name in GUIDE, "the guide does not name it"


def test_sources_are_not_ranked_against_each_other() -> None:
    modelled = [row(npu_cycles=400), row(npu_cycles=900, target="ethos-u55-64")]
    estimated = row(npu_cycles=100, npu_cycles_source="estimated", simulator="host")
    found = verdict([*modelled, estimated]).models[0]
    assert [(part.source, part.winners) for part in found.rankings] == [
        ("estimated", (estimated["cell"],)),
        ("modelled", (modelled[0]["cell"],)),
    ]
    assert found.winners == ()
    assert (
        why_no_winner(found)
        == "figures of different sources, estimated and modelled, are not ranked against each other"
    )
    by_memory = verdict([*modelled, estimated], '[[goals]]\nfigure = "sram_bytes"').models[0]
    assert len(by_memory.rankings) == 1  # memory has one source
    assert len(by_memory.winners) == 3


def test_goals_decide_in_their_order_and_within_their_tolerance() -> None:
    lean = row(sram_bytes=100_000, npu_cycles=900_000)
    fast = row(sram_bytes=104_000, npu_cycles=400_000, target="ethos-u55-256")
    faster = row(sram_bytes=200_000, npu_cycles=300_000, target="ethos-u65-256")
    rows = [lean, fast, faster]
    assert verdict(rows).models[0].winners == (lean["cell"],)
    time_first = '[[goals]]\nfigure = "time_ms"\n[[goals]]\nfigure = "sram_bytes"'
    assert verdict(rows, time_first).models[0].winners == (faster["cell"],)
    within = '[[goals]]\nfigure = "sram_bytes"\ntolerance_percent = 5\n[[goals]]\nfigure = "time_ms"'
    assert verdict(rows, within).models[0].winners == (fast["cell"],)
    assert verdict(rows, within.replace("= 5", "= 3.9")).models[0].winners == (lean["cell"],)


def test_targets_that_fit_every_model() -> None:
    text = '[[constraints]]\nfigure = "time_ms"\nmax = 1'
    rows = [
        *(row(model=model, target="good", npu_cycles=100) for model in "abcd"),
        row(model="a", target="mixed", npu_cycles=100),
        row(model="b", target="mixed", npu_cycles=900_000),
        row(model="c", target="mixed", time_ms=None),
        without_result("timeout", "took too long", model="d", target="mixed"),
        row(model="a", target="partly", npu_cycles=100),
        row(model="a", target="partly", npu_cycles=900_000, memory_mode="Sram_Only"),
    ]
    found = {part.target: part for part in verdict(rows, text).targets}
    assert [name for name, part in found.items() if part.every_model] == ["good"]
    mixed = found["mixed"]
    assert (mixed.kept, mixed.broken, mixed.not_judged, mixed.no_result) == (("a",), ("b",), ("c",), ("d",))
    assert (found["partly"].kept, found["partly"].not_swept) == (("a",), ("b", "c", "d"))


def test_a_constraint_may_be_for_some_models_and_systems() -> None:
    text = '[[constraints]]\nfigure = "sram_bytes"\nmax = 1\nmodels = ["zoo:*"]'
    found = verdict([row(), row(model="own.py")], text)
    assert {part.model: part.counts.kept > 0 for part in found.models} == {
        "zoo:ds_cnn": False,
        "own.py": True,
    }
    assert found.notes == ()
    idle = verdict([row(model="own.py")], text)
    assert "judged nothing" in idle.notes[0]
    # A cell for another board need not keep it, and one for none neither.
    slow = {"inference_ms": 21.0}
    assert not verdict([row(system="alif-e8-hp", **slow)], ON_A_BOARD).models[0].counts.kept
    assert verdict([row(system="alif-e8-he", **slow)], ON_A_BOARD).models[0].counts.kept
    idle = verdict([row(system=None, **slow)], ON_A_BOARD)
    assert "no cell of the sweep is one of alif-*-hp" in idle.notes[0]
    (constraint,) = idle.constraints
    assert constraint.text == "time of an inference ≤ 20 ms (alif-*-hp)"


ON_A_BOARD = '[[constraints]]\nfigure = "inference_ms"\nmax = "20 ms"\nsystems = ["alif-*-hp"]'


def test_the_time_of_an_inference_is_not_of_the_npu_alone() -> None:
    """No note beside it says so, and by default cells are ranked by it, where it is limited."""
    cells = [
        row(cell="a" * 12, system="alif-e8-hp", operators_cpu=2, inference_ms=15.0, time_ms=9.0),
        row(cell="b" * 12, system="alif-e7-hp", operators_cpu=2, inference_ms=16.0, time_ms=8.0),
    ]
    found = verdict(cells, ON_A_BOARD)
    assert (found.notes, found.models[0].notes) == ((), ())
    assert [goal.figure for goal in found.goals] == ["sram_bytes", "inference_ms"]
    assert found.models[0].winners == ("a" * 12,)
    assert "of the NPU alone" in verdict(cells).notes[0]


def test_what_times_and_memories_do_not_tell_is_noted() -> None:
    """Vela turns permanent storage in Sram into OnChipFlash (architecture_features.py), as its summaries show."""
    by_memory = '[[goals]]\nfigure = "sram_bytes"'
    only, shared = row(memory_mode="Sram_Only"), row(memory_mode="Shared_Sram", cell="b" * 12)
    assert "in Sram_Only the NPU reads its constants" in verdict([only, shared], by_memory).notes[0]
    assert verdict([only], by_memory).notes == verdict([shared], by_memory).notes == ()
    assert verdict([only, shared], '[[goals]]\nfigure = "dram_bytes"').notes == ()
    found = verdict([row(operators_cpu=2), row(target="t")])
    assert "1 of 2 cells that passed run operators on the CPU" in found.notes[0]
    assert "the best cell runs operators on the CPU" in found.models[0].notes[0]
    by_memory = verdict([row(operators_cpu=2)], '[[goals]]\nfigure = "sram_bytes"')
    assert (by_memory.notes, by_memory.models[0].notes) == ((), ())


def test_names_stand_in_order_and_cells_once() -> None:
    names = ["ethos-u55-32", "ethos-u55-128", "ethos-u55-256", "ethos-u85-2048"]
    found = verdict([row(target=name, model=name) for name in reversed(names)])
    assert [part.target for part in found.targets] == names
    assert [part.model for part in found.models] == names
    with pytest.raises(InputError, match="stand twice"):
        judge_sweep([row(), row()], goals())
    found = verdict([])
    assert (found.status, found.counts.cells) == ("fail", 0)


@pytest.mark.parametrize(
    ("more_bytes", "wins"), [(32, "fast"), (899, "fast"), (901, "small"), (9_000, "small")]
)
def test_a_percent_of_memory_does_not_win_by_itself(more_bytes: int, wins: str) -> None:
    """Of 90,000 bytes, 1 % is 900. Without goals, cells nearer than that are told apart by their time."""
    small = row(cell="a" * 12, target="small", npu_cycles=800_000)
    fast = row(cell="b" * 12, target="fast", npu_cycles=400_000, sram_bytes=90_000 + more_bytes)
    found = verdict([small, fast])
    assert standings(found)[{"small": "a", "fast": "b"}[wins] * 12] == "winner"
    assert [goal.text for goal in found.goals] == [
        "least SRAM (equal within 1 %)",
        "least NPU time (equal within 1 %)",
    ]
    exact = verdict([small, fast], '[[goals]]\nfigure = "sram_bytes"\n[[goals]]\nfigure = "time_ms"')
    assert standings(exact)["a" * 12] == "winner"  # goals that are written count to the byte


@pytest.mark.parametrize(("cycles", "is_tie"), [(399_000, True), (380_000, False)])
def test_a_tie_is_told(cycles: int, *, is_tie: bool) -> None:
    """The winner has 32 bytes less; the other cell takes 0.25 % or 5 % fewer cycles."""
    other = row(target="ethos-u55-256", sram_bytes=90_032, npu_cycles=cycles)
    found = verdict([row(), other], '[[goals]]\nfigure = "sram_bytes"\n[[goals]]\nfigure = "time_ms"')
    words = "a tie: 1 more cell (on ethos-u55-256) equal the best one within 1 % in every goal"
    assert (words in found.models[0].notes) is is_tie


# --- What holds for the verdict whatever the rows: compared with the definitions, written out.

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
    return of_tables({"constraints": constraints, "goals": goals})


def dominates(one: Row, other: Row, goals: Goals) -> bool:
    """Pareto's definition: nowhere worse, and somewhere better."""
    signs = [1 if goal.want == "min" else -1 for goal in goals.goals]
    pairs = [
        (sign * one[goal.figure], sign * other[goal.figure])
        for sign, goal in zip(signs, goals.goals, strict=True)
    ]
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def keeps(cell_row: Row, goals: Goals) -> bool:
    if cell_row["status"] != "pass":
        return False
    for constraint in goals.constraints:
        number = cell_row[constraint.figure]
        if number is None or (constraint.figure == "time_ms" and cell_row["npu_cycles_source"] is None):
            return False
        if constraint.max is not None and number > constraint.max:
            return False
        if constraint.min is not None and number < constraint.min:
            return False
    return True


def rivals_of(rows: list[Row], goals: Goals) -> dict[tuple[str, str], list[Row]]:
    """Rows that are ranked against each other, by model and source."""
    has_source = any(goal.figure == "time_ms" for goal in goals.goals)
    found: dict[tuple[str, str], list[Row]] = {}
    for cell_row in rows:
        known = all(cell_row[goal.figure] is not None for goal in goals.goals)
        if keeps(cell_row, goals) and known and not (has_source and cell_row["npu_cycles_source"] is None):
            key = (cell_row["model"], cell_row["npu_cycles_source"] if has_source else "")
            found.setdefault(key, []).append(cell_row)
    return found


@given(rows(), asked())
def test_the_pareto_set_is_what_nothing_dominates(rows: list[Row], goals: Goals) -> None:
    found = judge_sweep(rows, goals)
    sets = {
        (model.model, part.source or ""): set(part.pareto)
        for model in found.models
        for part in model.rankings
    }
    assert sets == {
        key: {
            cell_row["cell"]
            for cell_row in rivals
            if not any(dominates(other, cell_row, goals) for other in rivals)
        }
        for key, rivals in rivals_of(rows, goals).items()
    }
    standing = standings(found)
    free = set().union(*sets.values())
    assert {cell for cell, name in standing.items() if name in ("winner", "pareto")} == free


@given(rows(), asked())
def test_a_cell_keeps_the_constraints_or_says_why_not(rows: list[Row], goals: Goals) -> None:
    by_cell = {cell_row["cell"]: cell_row for cell_row in rows}
    found = judge_sweep(rows, goals)
    for cell in found.cells:
        cell_row = by_cell[cell.cell]
        assert (cell.standing in KEEPING) == keeps(cell_row, goals)
        assert (cell.standing == "no result") == (cell_row["status"] != "pass")
        assert bool(cell.misses) == (cell.standing == "broken")
        assert all(miss.by > 0 for miss in cell.misses or ())
        if cell.standing in ("not judged", "not ranked"):
            assert cell.missing
    for model in found.models:
        assert bool(model.winners) == (why_no_winner(model) == "")


@given(rows(), asked())
def test_winners_are_equal_and_in_the_pareto_set(rows: list[Row], goals: Goals) -> None:
    by_cell = {cell_row["cell"]: cell_row for cell_row in rows}
    for model in judge_sweep(rows, goals).models:
        for part in model.rankings:
            assert part.winners
            assert set(part.winners) <= set(part.pareto)
            tuples = {tuple(by_cell[cell][goal.figure] for goal in goals.goals) for cell in part.winners}
            assert len(tuples) == 1
            first = goals.goals[0]
            if not any(goal.tolerance_percent for goal in goals.goals):
                best = (min if first.want == "min" else max)(
                    by_cell[cell][first.figure] for cell in part.pareto
                )
                assert all(by_cell[cell][first.figure] == best for cell in part.winners)
            equal = [
                cell_row["cell"]
                for cell_row in rivals_of(rows, goals)[model.model, part.source or ""]
                if tuple(cell_row[goal.figure] for goal in goals.goals) in tuples
            ]
            assert sorted(equal) == sorted(part.winners)


@given(rows(), asked(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(rows: list[Row], goals: Goals, chance: random.Random) -> None:
    shuffled = chance.sample(rows, len(rows))
    assert judge_sweep(shuffled, goals) == judge_sweep(rows, goals)


@given(st.lists(st.tuples(small, small, small), max_size=40))
def test_pareto_of_points(points: list[tuple[int, int, int]]) -> None:
    expected = [
        not any(other != point and all(a <= b for a, b in zip(other, point, strict=True)) for other in points)
        for point in points
    ]
    assert are_pareto(points) == expected
