"""What campaigns over many cells share: command lines, workers, outcomes in a folder, texts of pages."""

import argparse
import contextlib
import fcntl
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

from ethosu_sdk.base import filesystem, json_text, proc
from tests.places import ROOT

PAGES = ROOT / "docs" / "reference"
Cell = TypeVar("Cell")


class Outcome(Protocol):
    """What a cell shows."""

    @property
    def verdict(self) -> str:
        """In a word."""

    def to_json(self) -> dict[str, Any]:
        """The outcome as JSON values."""


Found = TypeVar("Found", bound=Outcome)


def names(text: str) -> list[str]:
    """Names that commas separate."""
    return [name for name in text.split(",") if name]


def parser(
    script: str, description: str, *, jobs: int, most_jobs: int | None = None
) -> argparse.ArgumentParser:
    """A command line with --folder and --jobs."""
    found = argparse.ArgumentParser(prog=f"scripts/{script}", description=description)
    work = ROOT / "build" / script
    found.add_argument("--folder", type=Path, default=work, help=f"where outcomes are kept ({work})")
    choices = range(1, most_jobs + 1) if most_jobs else None
    found.add_argument("--jobs", type=int, choices=choices, default=jobs, help=f"processes ({jobs})")
    return found


def add_choices(found: argparse.ArgumentParser, targets: Sequence[str], limit_s: float) -> None:
    """Options on which cells to fill, and which of them again."""
    found.add_argument("--targets", type=names, metavar="NAME,…", default=list(targets), help="these alone")
    found.add_argument("--fresh", action="store_true", help="do again what has an outcome")
    found.add_argument("--retry", action="store_true", help="do again what has an outcome and is not right")
    limit = f"time of each command ({limit_s:g} s)"
    found.add_argument("--limit", type=float, default=limit_s, metavar="S", help=limit)


def outcome_file(folder: Path, cell: object) -> Path:
    """Where a cell's outcome is kept."""
    return folder / "outcomes" / f"{cell}.json"


def stored(
    folder: Path, wanted: Iterable[Cell], read: Callable[[dict[str, Any]], Found]
) -> dict[Cell, Found]:
    """The outcomes in `folder` of those cells that have one."""
    return {
        cell: read(json_text.read_json(outcome_file(folder, cell)))
        for cell in wanted
        if outcome_file(folder, cell).is_file()
    }


def run_workers(
    module: str,
    arguments: Sequence[object],
    jobs: int = 1,
    *,
    log: IO[bytes] | None = None,
    paths: Sequence[Path] = (),
    more: Mapping[str, str] | None = None,
) -> None:
    """Have `jobs` processes of `module` fill cells; what they print goes through, their errors too or into `log`.

    `paths` come first on their PYTHONPATH; `more` are variables that they get beside this process's own.
    """
    path = os.pathsep.join(filter(None, (*map(str, paths), str(ROOT), os.environ.get("PYTHONPATH"))))
    variables = {**os.environ, **(more or {}), "PYTHONPATH": path, "PYTHONHASHSEED": "0"}
    argv = [sys.executable, "-W", "ignore", "-m", module, *map(str, arguments)]
    with contextlib.ExitStack() as stack:
        running = [
            stack.enter_context(proc.spawn(argv, cwd=ROOT, env=variables, stdout=None, stderr=log))
            for _ in range(jobs)
        ]
        for process in running:
            process.wait()


@contextlib.contextmanager
def claimed(outcome: Path) -> Iterator[bool]:
    """Whether the file `outcome` is this process's to make, while the block runs."""
    filesystem.make_directory(outcome.parent)
    with outcome.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield not outcome.is_file()


def fill(folder: Path, wanted: Iterable[Cell], work: Callable[[Cell], Found], *told: str) -> None:
    """Do `work` for those of the cells that nobody has done or is doing. On stdout, each is told with its verdict and
    the members `told` of its outcome."""
    for cell in wanted:
        path = outcome_file(folder, cell)
        with claimed(path) as ours:
            if not ours:
                continue
            found = work(cell)
            json_text.write_json(path, found.to_json())
            print(
                json.dumps([str(cell), found.verdict, *(getattr(found, name) for name in told)]), flush=True
            )


def escaped(text: str, longest: int) -> str:
    """`text` for a table, no longer than that, files without the folders of this machine."""
    local = re.sub(r"(?<![\w.])(/[\w.@+-]+)+/(?=\w)", "", text)
    short = local if len(local) <= longest else f"{local[:longest]} …"
    return short.replace("|", "\\|")


def commits(found: Iterable[str]) -> str:
    """The commits of the SDK whose cells these are, each with its number of cells."""
    counts = Counter(commit[:9] or "unknown" for commit in found)
    return ", ".join(f"{commit} ({cells} cells)" for commit, cells in counts.most_common())


def rows_of(text: str, heading: Sequence[str]) -> list[list[str]]:
    """The cells of a page's table whose heading is `heading`, without the heading."""
    lines = iter(text.splitlines())
    found = []
    if any(_split(line) == list(heading) for line in lines):
        next(lines)
        for line in lines:
            if not line.startswith("|"):
                break
            found.append(_split(line))
    return found


def _split(line: str) -> list[str]:
    return [part.strip() for part in line.strip().strip("|").split("|")]
