"""Models as users write them, against eager PyTorch; faults planted for the judge; the page."""

import ast
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from campaigns.command import Done
from campaigns.grid import outcome_file, rows_of
from campaigns.meaning import __main__ as program, eager, grammar, judge, page
from campaigns.meaning.cells import (
    BAD_REFUSAL,
    FINDINGS,
    HANG,
    REFUSED,
    RIGHT,
    TARGETS,
    WRONG,
    Array,
    Outcome,
    Task,
)
from campaigns.meaning.grammar import FORGOTTEN

MODELS = Path(program.__file__).with_name("models")
CASES = sorted(MODELS.glob("*.py"))
QUANTISED_AS = {"wide_numbers": "none", "small_values": "int16"}
MAY_END = {"wide_numbers": (RIGHT, REFUSED)}
COUNTS = {
    "writes": 14,
    "state": 14,
    "caches": 7,
    "aliases": 6,
    "shapes": 5,
    "outputs": 4,
    "dtypes": 4,
    "branches": 2,
    "operators": 1,
    "layers": 1,
    "blocks": 2,
}
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


def sixty() -> list[tuple[grammar.Model, str]]:
    """60 models of another seed than the page's, spread over the families, each on one target."""
    models = grammar.models(len(grammar.idioms()), 7)
    chosen = [
        model
        for family, count in COUNTS.items()
        for model in [row for row in models if row.family == family][:count]
    ]
    return [(model, TARGETS[index % len(TARGETS)]) for index, model in enumerate(chosen)]


def judged(cells: Sequence[tuple[grammar.Model, str]], more: list[Task], folder: Path) -> dict[str, Outcome]:
    """The outcomes of models on targets, and of `more` cells: for all of them, everything is imported once."""
    tasks = [*(program.task_of(model, target, folder) for model, target in cells), *more]
    program.run_workers(folder, tasks, 600)
    found = program.outcomes_in(folder)
    assert found.keys() == {task.cell for task in tasks}
    return found


def problems(found: Mapping[str, Outcome]) -> dict[str, str]:
    return {cell: row.problem or row.message for cell, row in found.items() if row.verdict in FINDINGS}


def planted(folder: Path) -> list[Task]:
    tasks = []
    for name, lines in PLANTED.items():
        files = [folder / f"{name.replace(' ', '_')}_{number}.py" for number in range(2)]
        for file, line in zip(files, lines, strict=True):
            text = _PLANTED_MODEL.replace("{line}", line.replace("\n", "\n        "))
            file.write_text(text, encoding="utf-8")
        tasks.append(Task(name, files[0], "int8", TARGETS[0], against=files[1]))
    return tasks


@pytest.mark.torch
def test_a_model_of_each_family_is_right_and_the_planted_faults_are_wrong(tmp_path: Path) -> None:
    firsts = list({model.family: (model, target) for model, target in reversed(sixty())}.values())
    assert len(firsts) == len(grammar.FAMILIES)
    found = judged(firsts, planted(tmp_path), tmp_path)
    assert {name: found.pop(name).verdict for name in PLANTED} == dict.fromkeys(PLANTED, WRONG)
    assert problems(found) == {}
    assert sum(row.verdict == RIGHT for row in found.values()) >= 9


@pytest.mark.thorough
@pytest.mark.torch
def test_sixty_models_and_nine_that_were_wrong(tmp_path: Path) -> None:
    """Of the 60, 51 must be right; the others are refused."""
    cells = sixty()
    assert len(cells) == 60
    nine = [
        Task(f"{path.stem}@{target}", path, QUANTISED_AS.get(path.stem, "int8"), target)
        for path, target in zip(CASES, TARGETS * len(CASES), strict=False)
    ]
    assert len(nine) == 9
    found = judged(cells, nine, tmp_path)
    once_wrong = {task: found.pop(task.cell) for task in nine}
    assert {
        task.cell: (row.verdict, row.exit_code, row.message)
        for task, row in once_wrong.items()
        if row.verdict not in MAY_END.get(task.file.stem, (RIGHT,))
    } == {}
    assert problems(found) == {}
    assert sum(row.verdict == RIGHT for row in found.values()) >= 51


def steps(path: Path, text: str, *, of: Path | None = None, forgetful: bool = False) -> list[list[Array]]:
    path.write_text(text, encoding="utf-8")
    return eager.outputs(path, samples=of, forgetful=forgetful)[1]


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "most", [pytest.param(2, id="two of each family"), pytest.param(99, id="all", marks=pytest.mark.thorough)]
)
def test_the_judge_sees_what_every_idiom_can_lose(most: int, tmp_path: Path) -> None:
    """In PyTorch alone: the model, and the model that has lost its idiom."""
    blind: dict[str, judge.Distance] = {}
    looked: Counter[str] = Counter()
    for model in grammar.models(program.COUNT, program.SEED):
        if not (model.name.endswith("_1") and model.lost and looked[model.family] < most):
            continue
        file = tmp_path / f"{model.name}.py"
        wanted = steps(file, model.text)
        assert judge.is_right(judge.compared(wanted, steps(file, model.text)), "none"), model.name
        lost = model.text if model.lost == FORGOTTEN else model.lost
        found = steps(tmp_path / "lost.py", lost, of=file, forgetful=model.lost == FORGOTTEN)
        distance = judge.compared(wanted, found)
        looked[model.family] += 1
        if judge.is_right(distance, "int8"):
            blind[model.name] = distance
    assert blind == {}
    for family, least in {"writes": 20, "state": 40, "caches": 20, "aliases": 10}.items():
        assert looked[family] >= min(least, most)


def test_the_tables_make_five_hundred_different_models() -> None:
    models = grammar.models(program.COUNT, program.SEED)
    assert len({row.name for row in models}) == len({row.text for row in models}) == program.COUNT >= 500
    assert {row.idiom for row in models} == {row.name for row in grammar.idioms()}
    assert {row.quantize for row in models} == {"int8", "int16", "none"}
    assert grammar.models(50, program.SEED) == models[:50]
    assert grammar.models(50, 2) != models[:50]
    for family in grammar.MENDED:
        more = grammar.models(60, program.SEED, (family,))
        assert len({row.text for row in more}) == 60
        models += more
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


def test_the_page_counts_every_model_and_has_no_finding() -> None:
    text = program.PAGE.read_text(encoding="utf-8")
    models = grammar.models(program.COUNT, program.SEED)
    rows = rows_of(text, ("family", "cells", *page._HEADINGS))
    cells = Counter(model.family for model in models for _ in TARGETS)
    assert {row[0]: int(row[1]) for row in rows} == cells
    assert cells.total() == program.COUNT * len(TARGETS)
    assert {number for row in rows for number in row[5:]} == {""}, "a finding"


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


def test_only_outcomes_of_the_same_files_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They make the page once all are there; others are made again, and with --retry those that are not right."""
    monkeypatch.setattr(program, "COUNT", 2)
    monkeypatch.setattr(program, "PAGE", tmp_path / "page.md")
    tasks = program.tasks_of(grammar.models(2, program.SEED), TARGETS, tmp_path)
    good = {t.cell: Outcome(RIGHT, t.family, t.idiom, t.quantize, t.digest) for t in tasks}
    first, second, *others = good
    program.write_page({**good, first: replace(good[first], digest="old")})
    assert not program.PAGE.exists()
    program.write_page(good)
    assert "4 cells: 4 right (100.0% run)" in program.PAGE.read_text(encoding="utf-8")
    stored = {
        **good,
        first: replace(good[first], digest="old"),
        second: replace(good[second], verdict=REFUSED),
    }
    for cell, row in stored.items():
        outcome_file(tmp_path, cell).parent.mkdir(exist_ok=True)
        outcome_file(tmp_path, cell).write_text(json.dumps(row.to_json()))
    for retry, kept in ((False, [second, *others]), (True, others)):
        program.forget(tmp_path, tasks, fresh=False, retry=retry)
        assert program.outcomes_in(tmp_path).keys() == set(kept)
