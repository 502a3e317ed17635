"""Fills the cells of the matrix and writes docs/reference/zoo-matrix.md. See --help."""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from ethosu_sdk.aot import zoo
from ethosu_sdk.files import json_text, writing
from tests import campaigns
from tests.conformance.zoo_matrix import page
from tests.conformance.zoo_matrix.cells import DELEGATES, KINDS, MEMORY, MODELS, Cell, cells
from tests.conformance.zoo_matrix.checks import EXACT, REFUSED, Outcome
from tests.conformance.zoo_matrix.worker import outcome_file
from tests.places import ROOT

_WORK = ROOT / "build" / "zoo-matrix"
_PAGE = ROOT / "docs" / "reference" / "zoo-matrix.md"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/zoo-matrix",
        description="Compile every zoo model for one target of each family, check it, and write docs/reference/"
        "zoo-matrix.md once every cell is filled (about 40 minutes on two idle cores). Exit code 1 when a cell is "
        "wrong or empty.",
    )
    parser.add_argument("--delegates", action="store_true", help="the cells of the first table only")
    parser.add_argument(
        "--memory-modes", action="store_true", help="the cells of the tables of memory modes only"
    )
    parser.add_argument(
        "--models",
        metavar="NAME,…",
        default="",
        help="the cells of these models only; decoders, which have no rows on the page, are taken too",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="keep the outcomes of an earlier run, but those that are wrong; compiled programs are kept too",
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)"
    )
    parser.add_argument("--folder", type=Path, default=_WORK, help=f"where outcomes are kept ({_WORK})")
    return parser.parse_args()


def wanted_cells(options: argparse.Namespace) -> list[Cell]:
    """The cells that the command line asks for."""
    kinds = [
        kind
        for kind, chosen in ((DELEGATES, options.delegates), (MEMORY, options.memory_modes))
        if chosen or options.delegates == options.memory_modes
    ]
    models = campaigns.names(options.models) or MODELS
    return [cell for kind in kinds for cell in cells(kind, models)]


def stored(folder: Path) -> dict[Cell, Outcome]:
    """The outcomes in `folder`."""
    return {
        cell: Outcome.from_json(json_text.read_json(outcome_file(folder, cell)))
        for kind in KINDS
        for cell in cells(kind, zoo.names())
        if outcome_file(folder, cell).is_file()
    }


def run_workers(folder: Path, wanted: Sequence[Cell], jobs: int) -> None:
    """Have `jobs` processes fill the cells; what they print goes through."""
    environment = {"ETHOSU_SDK_CACHE": str(folder / "cache"), **os.environ, "PYTHONHASHSEED": "0"}
    argv = [sys.executable, "-m", "tests.conformance.zoo_matrix.worker", str(folder), *map(str, wanted)]
    campaigns.run_workers(argv, environment, jobs)


def main() -> int:
    """Fill the cells and write the page; the exit code."""
    options = arguments()
    folder, wanted = options.folder.resolve(), wanted_cells(options)
    if not options.resume:
        shutil.rmtree(folder / "programs", ignore_errors=True)
    for cell, found in stored(folder).items():
        if cell in wanted and not (options.resume and found.verdict in (EXACT, REFUSED)):
            outcome_file(folder, cell).unlink()
    if missing := [cell for cell in wanted if not outcome_file(folder, cell).is_file()]:
        run_workers(writing.make_directory(folder), missing, options.jobs)
    outcomes = stored(folder)
    empty = [str(cell) for kind in KINDS for cell in cells(kind) if cell not in outcomes]
    if empty:
        print(f"{len(empty)} cells have no outcome yet, the page is not written: {', '.join(empty[:5])} …")
        return 1
    writing.write_bytes(_PAGE, page.page(outcomes).encode())
    print(f"{_PAGE}: {page.tally(outcomes.values())}")
    return 0 if page.sound(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
