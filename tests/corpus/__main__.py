"""Fills the cells of the corpus and writes docs/reference/model-corpus.md. See --help."""

import argparse
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ethosu_sdk.files import json_text, writing
from tests import campaigns
from tests.campaigns import names
from tests.corpus import catalogue, dry, page, reviews
from tests.corpus.cells import CAUGHT, RAN, REFUSED, TARGETS, Cell, Outcome, outcome_file
from tests.corpus.packages import FOLDER, ROOT

_WORK = ROOT / "build" / "model-corpus"
_PAGE = ROOT / "docs" / "reference" / "model-corpus.md"
_KEPT = Path(__file__).with_name(
    "outcomes.json"
)  # what the page shows, so that a sweep goes on in another checkout
_MOST_JOBS = 2


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/model-corpus",
        description="Compile architectures of many packages for one target of each family, run them on QEMU and on "
        "the host simulator, compare, and write docs/reference/model-corpus.md from all outcomes that exist. An "
        "interrupted run goes on where it ended. Exit code 1 "
        "when a cell is wrong, empty, or refused without a review.",
    )
    parser.add_argument("--only", type=names, metavar="NAME,…", default=[], help="these architectures alone")
    parser.add_argument(
        "--targets", type=names, metavar="NAME,…", default=list(TARGETS), help="these targets alone"
    )
    parser.add_argument("--fresh", action="store_true", help="do again what has an outcome")
    parser.add_argument("--retry", action="store_true", help="do again what has an outcome and did not run")
    parser.add_argument("--dry", action="store_true", help="build, run in PyTorch and export; lower nothing")
    parser.add_argument(
        "--limit", type=float, default=1800.0, metavar="S", help="time of each command (1800 s)"
    )
    parser.add_argument(
        "--jobs", type=int, choices=range(1, _MOST_JOBS + 1), default=min(_MOST_JOBS, os.cpu_count() or 1)
    )
    parser.add_argument("--folder", type=Path, default=_WORK, help=f"where outcomes are kept ({_WORK})")
    options = parser.parse_args()
    for given, known in ((options.only, catalogue.ARCHITECTURES), (options.targets, TARGETS)):
        if unknown := [name for name in given if name not in known]:
            parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return options


def all_cells() -> list[Cell]:
    """Every cell, target by target: what one shows of an architecture comes early for all of them."""
    return [Cell(name, target) for target in TARGETS for name in catalogue.ARCHITECTURES]


def kept() -> dict[Cell, Outcome]:
    """The outcomes that belong to the repository."""
    rows = json_text.read_json(_KEPT)
    return {cell: Outcome.from_json(rows[str(cell)]) for cell in all_cells() if str(cell) in rows}


def stored(folder: Path) -> dict[Cell, Outcome]:
    """The outcomes in `folder`."""
    return {
        cell: Outcome.from_json(json_text.read_json(outcome_file(folder, cell)))
        for cell in all_cells()
        if outcome_file(folder, cell).is_file()
    }


def forget(folder: Path, wanted: Iterable[Cell], *, fresh: bool, retry: bool) -> None:
    """Take away the outcomes that are to be had again."""
    found = stored(folder)
    for cell in wanted:
        if cell in found and (fresh or (retry and found[cell].verdict != RAN)):
            outcome_file(folder, cell).unlink()


def bring(folder: Path, wanted: Iterable[Cell], *, retry: bool) -> None:
    """Put the repository's outcomes of `wanted` into `folder`, where it has none."""
    rows = kept()
    for cell in wanted:
        path = outcome_file(folder, cell)
        if cell in rows and not path.is_file() and not (retry and rows[cell].verdict != RAN):
            writing.make_directory(path.parent)
            json_text.write_json(path, rows[cell].to_json())


def run_workers(folder: Path, wanted: Sequence[Cell], options: argparse.Namespace) -> None:
    """Have processes fill the cells; what they print goes through."""
    path = os.pathsep.join(filter(None, (str(FOLDER), str(ROOT), os.environ.get("PYTHONPATH", ""))))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0", "HF_HUB_OFFLINE": "1"}
    cells = [f"{cell.name}@{cell.target}" for cell in wanted]
    argv = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "tests.corpus.worker",
        str(folder),
        str(options.limit),
        *cells,
    ]
    campaigns.run_workers(argv, environment, options.jobs)


def main() -> int:
    """Fill the cells and write the page; the exit code."""
    options = arguments()
    if options.dry:
        return dry.check_all(options.only)
    folder = options.folder.resolve()
    if options.fresh and not options.only and options.targets == list(TARGETS):
        shutil.rmtree(folder, ignore_errors=True)
    wanted = [
        cell
        for cell in all_cells()
        if cell.name in (options.only or [cell.name]) and cell.target in options.targets
    ]
    forget(folder, wanted, fresh=options.fresh, retry=options.retry)
    if not options.fresh:
        bring(folder, wanted, retry=options.retry)
    if missing := [cell for cell in wanted if not outcome_file(folder, cell).is_file()]:
        run_workers(writing.make_directory(folder), missing, options)
    outcomes = {**kept(), **stored(folder)}
    json_text.write_json(
        _KEPT, {str(cell): outcomes[cell].to_json() for cell in all_cells() if cell in outcomes}
    )
    writing.write_bytes(_PAGE, page.page(outcomes, reviews.table()).encode())
    problems = [str(cell) for cell in all_cells() if not sound(cell, outcomes.get(cell))]
    print(f"{_PAGE}: {page.tally(outcomes.values())}; {len(problems)} cells are wrong, empty or not reviewed")
    return bool(problems)


def sound(cell: Cell, found: Outcome | None) -> bool:
    """Whether a cell ran, or was refused truthfully."""
    if found is None:
        return False
    judged = reviews.judge(reviews.table(), cell, found)
    return found.verdict == RAN or (
        found.verdict in (REFUSED, CAUGHT) and judged is not None and judged.truthful
    )


if __name__ == "__main__":
    sys.exit(main())
