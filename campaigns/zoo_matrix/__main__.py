"""Fills the cells of the matrix and writes docs/reference/zoo-matrix.md. See --help."""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from campaigns import grid
from campaigns.zoo_matrix import page
from campaigns.zoo_matrix.cells import DELEGATES, KINDS, MEMORY, MODELS, Cell, cells
from campaigns.zoo_matrix.checks import EXACT, REFUSED, Outcome
from ethosu_sdk.base import filesystem
from ethosu_sdk.compile import zoo

_PAGE = grid.PAGES / "zoo-matrix.md"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = grid.parser(
        "zoo-matrix",
        "Compile every zoo model for one target of each family, check it, and write docs/reference/zoo-matrix.md "
        "once every cell is filled (about 40 minutes on two idle cores). Exit code 1 when a cell that was asked for "
        "is wrong or empty.",
        jobs=os.cpu_count() or 1,
    )
    parser.add_argument("--delegates", action="store_true", help="the cells of the first table only")
    parser.add_argument(
        "--memory-modes", action="store_true", help="the cells of the tables of memory modes only"
    )
    parser.add_argument(
        "--models",
        type=grid.names,
        metavar="NAME,…",
        default=MODELS,
        help="the cells of these models only; decoders, which have no rows on the page, are taken too",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="keep the outcomes of an earlier run, but those that are wrong; compiled programs are kept too",
    )
    return parser.parse_args()


def wanted_cells(options: argparse.Namespace) -> list[Cell]:
    """The cells that the command line asks for."""
    kinds = [
        kind
        for kind, chosen in ((DELEGATES, options.delegates), (MEMORY, options.memory_modes))
        if chosen or options.delegates == options.memory_modes
    ]
    return [cell for kind in kinds for cell in cells(kind, options.models)]


def stored(folder: Path) -> dict[Cell, Outcome]:
    """The outcomes in `folder`."""
    every = (cell for kind in KINDS for cell in cells(kind, zoo.names()))
    return grid.stored(folder, every, Outcome.from_json)


def run_workers(folder: Path, wanted: Sequence[Cell], jobs: int) -> None:
    """Have `jobs` processes fill the cells; what they print goes through."""
    cache = os.environ.get("ETHOSU_SDK_CACHE", str(folder / "cache"))
    grid.run_workers("campaigns.zoo_matrix.worker", [folder, *wanted], jobs, more={"ETHOSU_SDK_CACHE": cache})


def main() -> int:
    """Fill the cells and write the page; the exit code."""
    options = arguments()
    folder, wanted = options.folder.resolve(), wanted_cells(options)
    if not options.resume:
        shutil.rmtree(folder / "programs", ignore_errors=True)
    for cell, found in stored(folder).items():
        if cell in wanted and not (options.resume and found.verdict in (EXACT, REFUSED)):
            grid.outcome_file(folder, cell).unlink()
    if missing := [cell for cell in wanted if not grid.outcome_file(folder, cell).is_file()]:
        run_workers(filesystem.make_directory(folder), missing, options.jobs)
    outcomes = stored(folder)
    judged = [outcomes[cell] for cell in wanted if cell in outcomes]
    print(f"{page.tally(judged)}, {len(wanted) - len(judged)} without an outcome")
    empty = [cell for kind in KINDS for cell in cells(kind) if cell not in outcomes]
    if empty:
        print(f"the page waits for {len(empty)} cells")
    else:
        filesystem.write_bytes(_PAGE, page.page(outcomes).encode())
        print(_PAGE)
    return 0 if len(judged) == len(wanted) and page.sound(judged) else 1


if __name__ == "__main__":
    sys.exit(main())
