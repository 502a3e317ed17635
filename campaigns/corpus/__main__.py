"""Fills the cells of the corpus and writes docs/reference/model-corpus.md. See --help."""

import argparse
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from campaigns import grid
from campaigns.corpus import catalogue, dry, page, reviews
from campaigns.corpus.cells import CAUGHT, RAN, REFUSED, TARGETS, Cell, Outcome
from campaigns.corpus.packages import FOLDER
from ethosu_sdk.base import filesystem

_PAGE = grid.PAGES / "model-corpus.md"
_MOST_JOBS = 2
# Their packages are small, pure Python, and among those that the tests need: pyproject.toml pins them.
SAMPLE = {
    Cell("tcn_causal", "ethos-u55-128"): "pytorch-tcn",
    Cell("conformer_block", "ethos-u65-256"): "conformer",
    Cell("tsmixer", "ethos-u85-256"): "pytorch-tsmixer",
}


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = grid.parser(
        "model-corpus",
        "Compile architectures of many packages for one target of each family, run them on QEMU and on "
        "the host simulator, compare, and write docs/reference/model-corpus.md once every cell is filled. An "
        "interrupted run goes on where it ended. Exit code 1 when a cell that was asked for is wrong, empty, or "
        "refused without a review.",
        jobs=min(_MOST_JOBS, os.cpu_count() or 1),
        most_jobs=_MOST_JOBS,
    )
    grid.add_choices(parser, TARGETS, limit_s=1800.0)
    parser.add_argument(
        "--only", type=grid.names, metavar="NAME,…", default=[], help="these architectures alone"
    )
    parser.add_argument("--dry", action="store_true", help="build, run in PyTorch and export; lower nothing")
    parser.add_argument(
        "--sample", action="store_true", help="three cells whose packages scripts/setup installs"
    )
    options = parser.parse_args()
    for given, known in ((options.only, catalogue.ARCHITECTURES), (options.targets, TARGETS)):
        if unknown := [name for name in given if name not in known]:
            parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return options


def all_cells() -> list[Cell]:
    """Every cell, target by target: what one shows of an architecture comes early for all of them."""
    return [Cell(name, target) for target in TARGETS for name in catalogue.ARCHITECTURES]


def wanted_cells(options: argparse.Namespace) -> list[Cell]:
    """The cells that the command line asks for."""
    return [
        cell
        for cell in (SAMPLE if options.sample else all_cells())
        if cell.name in (options.only or [cell.name]) and cell.target in options.targets
    ]


def stored(folder: Path) -> dict[Cell, Outcome]:
    """The outcomes in `folder`."""
    return grid.stored(folder, all_cells(), Outcome.from_json)


def run_workers(folder: Path, wanted: Sequence[Cell], limit_s: float, jobs: int = 1) -> None:
    """Have processes fill the cells; what they print goes through."""
    listed = [f"{cell.name}@{cell.target}" for cell in wanted]
    offline = {"HF_HUB_OFFLINE": "1"}
    grid.run_workers(
        "campaigns.corpus.worker", [folder, limit_s, *listed], jobs, paths=[FOLDER], more=offline
    )


def main() -> int:
    """Fill the cells and write the page; the exit code."""
    options = arguments()
    wanted, folder = wanted_cells(options), options.folder.resolve()
    if options.dry:
        return dry.check_all(dict.fromkeys(cell.name for cell in wanted))
    if options.fresh and wanted == all_cells():
        shutil.rmtree(folder, ignore_errors=True)
    for cell, row in stored(folder).items():
        if cell in wanted and (options.fresh or (options.retry and row.verdict != RAN)):
            grid.outcome_file(folder, cell).unlink()
    if missing := [cell for cell in wanted if not grid.outcome_file(folder, cell).is_file()]:
        run_workers(filesystem.make_directory(folder), missing, options.limit, options.jobs)
    outcomes = stored(folder)
    told = page.tally(outcomes[cell] for cell in wanted if cell in outcomes)
    problems = [str(cell) for cell in wanted if not sound(cell, outcomes.get(cell))]
    print(f"{told}; {len(problems)} are wrong, empty or not reviewed; {write_page(outcomes)}")
    return bool(problems)


def write_page(outcomes: Mapping[Cell, Outcome]) -> str:
    """Write the page when every cell has an outcome; what was done."""
    if empty := len(all_cells()) - len(outcomes):
        return f"the page waits for {empty} cells"
    filesystem.write_bytes(_PAGE, page.page(outcomes, reviews.table()).encode())
    return str(_PAGE)


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
