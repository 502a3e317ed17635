"""What sweeps over many cells share: names on the command line, workers, and texts of their pages."""

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import IO

from ethosu_sdk import proc
from tests.places import ROOT


def names(text: str) -> list[str]:
    """Names that commas separate."""
    return [name for name in text.split(",") if name]


def run_workers(
    argv: Sequence[str], environment: Mapping[str, str], jobs: int, log: IO[bytes] | None = None
) -> None:
    """Have `jobs` processes of the same command line fill cells; what they print goes through, or into `log`."""
    with contextlib.ExitStack() as stack:
        running = [
            stack.enter_context(proc.spawn(argv, cwd=ROOT, env=environment, stdout=None, stderr=log))
            for _ in range(jobs)
        ]
        for process in running:
            process.wait()


def escaped(text: str, longest: int) -> str:
    """`text` for a table, no longer than that, files without the folders of this machine."""
    local = re.sub(r"(?<![\w.])(/[\w.@+-]+)+/(?=\w)", "", text)
    short = local if len(local) <= longest else f"{local[:longest]} …"
    return short.replace("|", "\\|")


def commits(found: Iterable[str]) -> str:
    """The commits of the SDK whose cells these are, each with its number of cells."""
    counts = Counter(commit[:9] or "unknown" for commit in found)
    return ", ".join(f"{commit} ({cells} cells)" for commit, cells in counts.most_common())
