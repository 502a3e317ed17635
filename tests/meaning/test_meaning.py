"""Models as users write them, against eager PyTorch; faults planted for the judge; the page."""

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.conformance.zoo_matrix.page import rows_of
from tests.corpus.cells import Done
from tests.meaning import __main__ as program, eager, fixed, grammar, judge, page
from tests.meaning.arrays import Array
from tests.meaning.cells import BAD_REFUSAL, FINDINGS, HANG, REFUSED, RIGHT, TARGETS, WRONG, Outcome, Task
from tests.meaning.idiom import FORGOTTEN

MODELS = Path(__file__).with_name("models")
CASES = sorted(MODELS.glob("*.py"))
QUANTISED_AS = {"wide_numbers": "none", "small_values": "int16"}
MAY_END = {"wide_numbers": (RIGHT, REFUSED)}
# Each pair differs in one line. The first is compiled, and judged by what PyTorch computes of the second.
PLANTED = {
    "a lost write": ("pass", "y[:, 2:6] = 1.5"),
    "a dropped ReLU": ("y = y * 1", "y = torch.relu(y)"),
    "swapped outputs": ("return x * 0.5, y", "return y, x * 0.5"),
    "another start of the state": ("y = y + self.late", "y = y + self.early"),
    "a state that is forgotten": ("y = y + self.early", "y = y + self.early\nself.early.copy_(self.late)"),
}
_PLANTED_MODEL = """\
import torch
from torch import nn

torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(8, 8)
        self.register_buffer("early", torch.full((1, 8), -1.0))
        self.register_buffer("late", torch.full((1, 8), 0.5))

    def forward(self, x):
        y = self.f(x)
        {line}
        return y


def draw():
    return (torch.rand(4, 8) * 2 - 1,)


model = Model().eval()
example_inputs = draw()
calibration = [draw() for _ in range(16)]
samples = [draw() for _ in range(4)]
"""


# All but each fifth are in the thorough tests. Together, 51 of the 60 must be right; the others are refused.
@pytest.mark.torch
@pytest.mark.parametrize(
    ("numbers", "least_right"),
    [
        pytest.param([number for number in range(60) if number % 5 == 0], 10, id="twelve"),
        pytest.param(
            [number for number in range(60) if number % 5], 41, id="the others", marks=pytest.mark.thorough
        ),
    ],
)
def test_sixty_models(numbers: list[int], least_right: int, tmp_path: Path) -> None:
    """In two tests: for each of them, everything is imported once."""
    cells = fixed.cells()
    assert len(cells) == 60
    chosen = [cells[number] for number in numbers]
    for model, _ in chosen:
        path = program.file_of(model, tmp_path)
        path.parent.mkdir(exist_ok=True)
        path.write_text(model.text, encoding="utf-8")
    program.run_workers(tmp_path, [program.task_of(model, target, tmp_path) for model, target in chosen], 600)
    found = program.outcomes_in(tmp_path)
    assert len(found) == len(chosen)
    assert {cell: row.problem or row.message for cell, row in found.items() if row.verdict in FINDINGS} == {}
    assert sum(row.verdict == RIGHT for row in found.values()) >= least_right


@pytest.mark.torch
def test_nine_models_that_were_wrong_and_the_planted_faults(tmp_path: Path) -> None:
    cases = [
        Task(f"{path.stem}@{target}", path, QUANTISED_AS.get(path.stem, "int8"), target)
        for path, target in zip(CASES, TARGETS * len(CASES), strict=False)
    ]
    assert len(cases) == 9
    planted = []
    for name, lines in PLANTED.items():
        files = [tmp_path / f"{name.replace(' ', '_')}_{number}.py" for number in range(2)]
        for file, line in zip(files, lines, strict=True):
            text = _PLANTED_MODEL.replace("{line}", line.replace("\n", "\n        "))
            file.write_text(text, encoding="utf-8")
        planted.append(Task(name, files[0], "int8", TARGETS[0], against=files[1]))
    program.run_workers(tmp_path, [*cases, *planted], 600)
    found = program.outcomes_in(tmp_path)
    assert {name: found[name].verdict for name in PLANTED} == dict.fromkeys(PLANTED, WRONG)
    wrong = {
        task.cell: (row.verdict, row.exit_code, row.message)
        for task in cases
        if (row := found[task.cell]).verdict not in MAY_END.get(task.file.stem, (RIGHT,))
    }
    assert wrong == {}


def steps(path: Path, text: str, *, of: Path | None = None, forgetful: bool = False) -> list[list[Array]]:
    path.write_text(text, encoding="utf-8")
    return eager.outputs(path, samples=of, forgetful=forgetful)[1]


def first_variants() -> Iterator[grammar.Model]:
    yield from (row for row in grammar.models(program.COUNT, program.SEED) if row.name.endswith("_1"))


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", grammar.FAMILIES)
def test_the_judge_sees_what_every_idiom_can_lose(family: str, tmp_path: Path) -> None:
    """In PyTorch alone: the model, and the model that has lost its idiom."""
    blind, looked = {}, 0
    for model in (row for row in first_variants() if row.family == family and row.lost):
        file = tmp_path / f"{model.name}.py"
        wanted = steps(file, model.text)
        assert judge.is_right(judge.compared(wanted, steps(file, model.text)), "none"), model.name
        lost = model.text if model.lost == FORGOTTEN else model.lost
        found = steps(tmp_path / "lost.py", lost, of=file, forgetful=model.lost == FORGOTTEN)
        distance = judge.compared(wanted, found)
        looked += 1
        if judge.is_right(distance, "int8"):
            blind[model.name] = distance
    assert blind == {}
    assert looked >= {"writes": 20, "state": 40, "caches": 20, "aliases": 10}.get(family, 0)


def test_the_tables_make_five_hundred_different_models() -> None:
    models = grammar.models(program.COUNT, program.SEED)
    assert len({row.name for row in models}) == len({row.text for row in models}) == program.COUNT >= 500
    assert {row.idiom for row in models} == {row.name for row in grammar.idioms()}
    assert {row.quantize for row in models} == {"int8", "int16", "none"}
    assert grammar.models(50, program.SEED) == models[:50]
    assert grammar.models(50, 2) != models[:50]
    for row in models:
        ast.parse(row.text)


WANTED = [[np.linspace(-1, 1, 16, dtype=np.float32)], [np.linspace(0.5, -1, 16, dtype=np.float32)]]


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        pytest.param(WANTED, RIGHT, id="equal"),
        pytest.param([[a + np.float32(0.02)] for (a,) in WANTED], RIGHT, id="rounded"),
        pytest.param([[a.astype(np.float64)] for (a,) in WANTED], WRONG, id="another type"),
        pytest.param([[a[None]] for (a,) in WANTED], WRONG, id="another shape"),
        pytest.param([[a, a] for (a,) in WANTED], WRONG, id="one output more"),
        pytest.param(WANTED[::-1], WRONG, id="another order"),
        pytest.param(
            [[np.where(a > 0.9, 0, a).astype(np.float32)] for (a,) in WANTED], WRONG, id="one element lost"
        ),
        pytest.param(
            [[np.where(a > 0.9, np.nan, a).astype(np.float32)] for (a,) in WANTED], WRONG, id="not finite"
        ),
        pytest.param([[a * 0] for (a,) in WANTED], WRONG, id="nothing"),
        pytest.param([[np.maximum(a, 0)] for (a,) in WANTED], WRONG, id="a ReLU too many"),
    ],
)
def test_distances(found: judge.Steps, verdict: str) -> None:
    assert judge.judged(judge.compared(WANTED, found), "int8").verdict == verdict


def test_numbers_are_equal_or_wrong() -> None:
    wanted, narrow = [[np.array([1, 2**40])]], [[np.array([1, 2], dtype=np.int32)]]
    assert judge.judged(judge.compared(wanted, narrow), "none").verdict == WRONG
    same = judge.judged(judge.compared([[np.array([1, 2])]], narrow), "none")
    assert (same.verdict, same.is_narrowed) == (RIGHT, True)
    assert judge.judged(judge.compared([[np.array([True])]], [[np.array([False])]]), "int8").verdict == WRONG


TEXT = "import torch\n\n\nclass M:\n    def forward(self, x):\n        return x.sort(1)\n"


@pytest.mark.parametrize(
    ("done", "verdict", "problem"),
    [
        pytest.param(
            Done(3, "", "error: aten.sort is not supported, at m.py:6\n"), REFUSED, "", id="as it should"
        ),
        pytest.param(Done(7, "", "error: sort differs (m.py:6)\n"), REFUSED, "", id="a word of the line"),
        pytest.param(
            Done(7, "", "error: sort differs (m.py, line 6)\n"), REFUSED, "", id="the line in words"
        ),
        pytest.param(
            Done(3, "", "error: aten.sort is not supported\n"),
            BAD_REFUSAL,
            "names no line of the model's file",
        ),
        pytest.param(
            Done(3, "", "error: other.py:6: aten.sort\n"), BAD_REFUSAL, "names no line of the model's file"
        ),
        pytest.param(Done(3, "", "error: m.py:6: this cannot be\n"), BAD_REFUSAL, "names no operator"),
        pytest.param(Done(5, "", "error: m.py:6: aten.sort\n"), BAD_REFUSAL, "exit code 5"),
        pytest.param(Done(1, "", "error: internal error: KeyError\n"), BAD_REFUSAL, "exit code 1"),
        pytest.param(
            Done(3, "", "Traceback (most recent call last)\nerror: m.py:6 sort"), BAD_REFUSAL, "exit code 3"
        ),
        pytest.param(Done(-11, "", ""), BAD_REFUSAL, "exit code -11"),
        pytest.param(Done(None, "", ""), HANG, ""),
    ],
)
def test_refusals(done: Done, verdict: str, problem: str) -> None:
    found = judge.refused("compile", done, "m.py", TEXT)
    assert (found.verdict, found.problem) == (verdict, problem)


def test_the_page_is_made_of_the_outcomes() -> None:
    outcomes = program.kept()
    models = grammar.models(program.COUNT, program.SEED)
    assert program.current(outcomes, models, TARGETS) == outcomes
    assert program.PAGE.read_text(encoding="utf-8") == page.page(outcomes, program.COUNT, program.SEED)


def test_the_page_shows_every_finding() -> None:
    outcomes = {
        "a_1@ethos-u55-128": Outcome(RIGHT, "writes", "a", "int8", decibels=40.0),
        "a_1@ethos-u85-256": Outcome(WRONG, "writes", "a", "int8", message="2.0 dB | lost"),
        "b_1@ethos-u55-128": Outcome(
            REFUSED, "state", "b", "none", exit_code=3, step="compile", message="m.py:3: sort"
        ),
    }
    text = page.page(outcomes, 2, 1)
    headings = ("family", "cells", *page._HEADINGS)
    assert rows_of(text, headings) == [
        ["writes", "2", "1", "", "", "1", "", ""],
        ["state", "1", "", "1", "", "", "", ""],
    ]
    assert "2.0 dB \\| lost" in text
    assert "m.py:3: sort" in text
    assert "1 cells were not run yet" in text
