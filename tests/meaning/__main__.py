"""Judges generated models and writes docs/reference/meaning.md. See --help."""

import argparse
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ethosu_sdk.files import json_text, writing
from tests import campaigns
from tests.campaigns import names
from tests.meaning import grammar, page
from tests.meaning.cells import FINDINGS, RIGHT, TARGETS, Outcome, Task, finding_folder, outcome_file
from tests.meaning.grammar import Model
from tests.places import ROOT

COUNT, SEED = 500, 1  # of the page
KEPT = Path(__file__).with_name("outcomes.json")
PAGE = ROOT / "docs" / "reference" / "meaning.md"
_WORK = ROOT / "build" / "meaning"
_MOST_JOBS = 4

Outcomes = dict[str, Outcome]


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/meaning",
        description="Generate small models from tables of idioms, compile and run them on the host simulator, and "
        "compare with eager PyTorch, which runs the untouched file in a process of its own, over several samples "
        "in a row. An interrupted run goes on where it ended. Exit code 1 when a program is wrong or a refusal does "
        "not name operator and line; each such finding has a folder with the model's file and the command line.",
    )
    parser.add_argument("--count", type=int, default=COUNT, help=f"number of models ({COUNT})")
    parser.add_argument(
        "--seed", type=int, default=SEED, help=f"the same seed makes the same models ({SEED})"
    )
    parser.add_argument("--targets", type=names, metavar="NAME,…", default=list(TARGETS))
    parser.add_argument(
        "--only", type=names, metavar="IDIOM,…", default=[], help="these idioms, families or models alone"
    )
    parser.add_argument("--jobs", type=int, choices=range(1, _MOST_JOBS + 1), default=1)
    parser.add_argument("--fresh", action="store_true", help="do again what has an outcome")
    parser.add_argument("--retry", action="store_true", help="do again what has an outcome and is not right")
    parser.add_argument(
        "--limit", type=float, default=600.0, metavar="S", help="time of each command (600 s)"
    )
    parser.add_argument(
        "--folder", type=Path, default=_WORK, help=f"where outcomes and findings go ({_WORK})"
    )
    parser.add_argument("--list", action="store_true", help="print the models' names and stop")
    return parser.parse_args()


def wanted(options: argparse.Namespace) -> list[Model]:
    """The models that the options name."""
    found = grammar.models(options.count, options.seed)
    if not options.only:
        return found
    return [row for row in found if {row.name, row.idiom, row.family} & set(options.only)]


def kept() -> Outcomes:
    """The outcomes that belong to the repository."""
    if not KEPT.is_file():
        return {}
    return {cell: Outcome.from_json(row) for cell, row in json_text.read_json(KEPT).items()}


def current(outcomes: Outcomes, models: Iterable[Model], targets: Iterable[str]) -> Outcomes:
    """The outcomes of these models as they are now, in order."""
    cells = {f"{model.name}@{target}": model for model in models for target in targets}
    return {
        cell: outcomes[cell]
        for cell, model in cells.items()
        if cell in outcomes and outcomes[cell].digest == model.digest
    }


def tasks_of(models: Sequence[Model], targets: Sequence[str], folder: Path) -> list[Task]:
    """A cell for each model and target. Each model comes on one target before any comes on the next."""
    for model in models:
        path = file_of(model, folder)
        writing.make_directory(path.parent)
        path.write_text(model.text, encoding="utf-8")
    return [
        task_of(model, targets[(index + turn) % len(targets)], folder)
        for turn in range(len(targets))
        for index, model in enumerate(models)
    ]


def task_of(model: Model, target: str, folder: Path) -> Task:
    """The cell of a model on a target; the model's file is below `folder`."""
    return Task(
        cell=f"{model.name}@{target}",
        file=file_of(model, folder),
        quantize=model.quantize,
        target=target,
        family=model.family,
        idiom=model.idiom,
        digest=model.digest,
    )


def file_of(model: Model, folder: Path) -> Path:
    """Where a model's file is."""
    return folder / "models" / f"{model.name}.py"


def prepare(folder: Path, tasks: Sequence[Task], *, fresh: bool, retry: bool) -> None:
    """Put the outcomes that stand into `folder`, and take those away that are to be had again."""
    known = {**kept(), **outcomes_in(folder)}
    for task in tasks:
        path, row = outcome_file(folder, task.cell), known.get(task.cell)
        again = row is None or row.digest != task.digest or fresh or (retry and row.verdict != RIGHT)
        if again:
            path.unlink(missing_ok=True)
            shutil.rmtree(finding_folder(folder, task.cell), ignore_errors=True)
        elif row is not None and not path.is_file():
            writing.make_directory(path.parent)
            json_text.write_json(path, row.to_json())


def run_workers(folder: Path, tasks: Sequence[Task], limit_s: float, jobs: int = 1) -> None:
    """Have processes do the tasks; what they print goes through."""
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH", ""), str(ROOT))))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}
    listed = writing.make_directory(folder) / "tasks.json"
    json_text.write_json(listed, {"tasks": [task.to_json() for task in tasks]})
    argv = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "tests.meaning.worker",
        str(folder),
        str(limit_s),
        str(listed),
    ]
    with (folder / "worker.log").open("ab") as log:
        campaigns.run_workers(argv, environment, jobs, log)


def outcomes_in(folder: Path) -> Outcomes:
    """The outcomes in `folder`."""
    return {
        path.stem: Outcome.from_json(json_text.read_json(path))
        for path in (folder / "outcomes").glob("*.json")
    }


def main() -> int:
    """Judge what has no outcome and write the page; the exit code."""
    options = arguments()
    models = wanted(options)
    if options.list:
        print(
            "\n".join(f"{model.name} ({model.family}: {model.idiom}, {model.quantize})" for model in models)
        )
        return 0
    folder = options.folder.resolve()
    tasks = tasks_of(models, options.targets, folder)
    prepare(folder, tasks, fresh=options.fresh, retry=options.retry)
    if missing := [task for task in tasks if not outcome_file(folder, task.cell).is_file()]:
        run_workers(folder, missing, options.limit, options.jobs)
    found = outcomes_in(folder)
    outcomes = current({**kept(), **found}, grammar.models(COUNT, SEED), TARGETS)
    json_text.write_json(KEPT, {cell: row.to_json() for cell, row in outcomes.items()})
    writing.write_bytes(PAGE, page.page(outcomes, COUNT, SEED).encode())
    judged = {task.cell: found[task.cell] for task in tasks if task.cell in found}
    findings = [cell for cell, row in judged.items() if row.verdict in FINDINGS]
    empty = len(tasks) - len(judged)
    print(f"{page.tally(judged.values())}; {empty} cells without an outcome; {folder / 'findings'}")
    return bool(findings or empty)


if __name__ == "__main__":
    sys.exit(main())
