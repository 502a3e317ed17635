"""Judges generated models and writes docs/reference/meaning.md. See --help."""

import argparse
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from campaigns import grid
from campaigns.meaning import grammar, page
from campaigns.meaning.cells import FINDINGS, OWN_TARGETS, RIGHT, TARGETS, Outcome, Task, finding_folder
from campaigns.meaning.grammar import Model
from ethosu_sdk.base import filesystem, json_text

COUNT, SEED = 500, 1  # of the page
PAGE = grid.PAGES / "meaning.md"

Outcomes = dict[str, Outcome]


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = grid.parser(
        "meaning",
        "Generate small models from tables of idioms, compile and run them on the host simulator, and "
        "compare with eager PyTorch, which runs the untouched file in a process of its own, over several samples "
        f"in a row. An interrupted run goes on where it ended. docs/reference/meaning.md is written once all {COUNT} "
        f"models of seed {SEED} are judged on all targets. Exit code 1 when a program is wrong or a refusal does "
        "not name operator and line; each such finding has a folder with the model's file and the command line.",
        jobs=1,
        most_jobs=4,
    )
    grid.add_choices(parser, TARGETS, limit_s=600.0)
    parser.add_argument("--count", type=int, default=COUNT, help=f"number of models ({COUNT})")
    parser.add_argument(
        "--seed", type=int, default=SEED, help=f"the same seed makes the same models ({SEED})"
    )
    parser.add_argument(
        "--only",
        type=grid.names,
        metavar="IDIOM,…",
        default=[],
        help="these idioms, families or models alone. These families are on no page and run only when named: "
        f"{', '.join(grammar.MENDED)}",
    )
    parser.add_argument("--list", action="store_true", help="print the models' names and stop")
    return parser.parse_args()


def wanted(options: argparse.Namespace) -> list[Model]:
    """The models that the options name."""
    mended = tuple(family for family in grammar.MENDED if family in options.only)
    found = grammar.models(options.count, options.seed, mended or grammar.FAMILIES)
    if not options.only:
        return found
    return [row for row in found if {row.name, row.idiom, row.family} & set(options.only)]


def current(outcomes: Mapping[str, Outcome], models: Iterable[Model], targets: Iterable[str]) -> Outcomes:
    """The outcomes of these models as they are now, in order."""
    digests = {f"{model.name}@{target}": model.digest for model in models for target in targets}
    return {
        cell: outcomes[cell]
        for cell, digest in digests.items()
        if cell in outcomes and outcomes[cell].digest == digest
    }


def tasks_of(models: Sequence[Model], targets: Sequence[str], folder: Path) -> list[Task]:
    """A cell for each model and target. Each model comes on one target before any comes on the next. A family with
    targets of its own is for those alone."""
    own = [OWN_TARGETS.get(model.family, targets) for model in models]
    return [
        task_of(model, row[(index + turn) % len(row)], folder)
        for turn in range(max(map(len, own), default=0))
        for index, (model, row) in enumerate(zip(models, own, strict=True))
        if turn < len(row)
    ]


def task_of(model: Model, target: str, folder: Path) -> Task:
    """The cell of a model on a target; the model's file is put below `folder`."""
    path = filesystem.make_directory(folder / "models") / f"{model.name}.py"
    path.write_text(model.text, encoding="utf-8")
    return Task(
        cell=f"{model.name}@{target}",
        file=path,
        quantize=model.quantize,
        target=target,
        family=model.family,
        idiom=model.idiom,
        digest=model.digest,
    )


def forget(folder: Path, tasks: Sequence[Task], *, fresh: bool, retry: bool) -> None:
    """Take away the outcomes that are to be had again, and those of files that are no longer the same."""
    known = outcomes_in(folder)
    for task in tasks:
        row = known.get(task.cell)
        if row is None or row.digest != task.digest or fresh or (retry and row.verdict != RIGHT):
            grid.outcome_file(folder, task).unlink(missing_ok=True)
            shutil.rmtree(finding_folder(folder, task.cell), ignore_errors=True)


def run_workers(folder: Path, tasks: Sequence[Task], limit_s: float, jobs: int = 1) -> None:
    """Have processes do the tasks; what they print goes through."""
    listed = filesystem.make_directory(folder) / "tasks.json"
    json_text.write_json(listed, {"tasks": [task.to_json() for task in tasks]})
    with (folder / "worker.log").open("ab") as log:
        grid.run_workers("campaigns.meaning.worker", [folder, limit_s, listed], jobs, log=log)


def outcomes_in(folder: Path) -> Outcomes:
    """The outcomes in `folder`."""
    names = [path.stem for path in (folder / "outcomes").glob("*.json")]
    return grid.stored(folder, names, Outcome.from_json)


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
    forget(folder, tasks, fresh=options.fresh, retry=options.retry)
    if missing := [task for task in tasks if not grid.outcome_file(folder, task).is_file()]:
        run_workers(folder, missing, options.limit, options.jobs)
    found = outcomes_in(folder)
    judged = {task.cell: found[task.cell] for task in tasks if task.cell in found}
    findings = [cell for cell, row in judged.items() if row.verdict in FINDINGS]
    empty = len(tasks) - len(judged)
    print(f"{page.tally(judged.values())}; {empty} cells without an outcome; {folder / 'findings'}")
    write_page(found)
    return bool(findings or empty)


def write_page(found: Outcomes) -> None:
    """Write the page when it has an outcome of every model."""
    outcomes = current(found, grammar.models(COUNT, SEED), TARGETS)
    if len(outcomes) == COUNT * len(TARGETS):
        filesystem.write_bytes(PAGE, page.page(outcomes, COUNT, SEED).encode())
        print(PAGE)


if __name__ == "__main__":
    sys.exit(main())
