"""The corpus, lowered once per test session and group, and the size of the run."""

import csv
import fcntl
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ethosu_sdk import proc
from ethosu_sdk.files import writing
from tests.conformance.lower import compile_missing
from tests.conformance.selection import ALL_GROUPS, FULL, Lowering, Pair, profile_of
from tests.places import ROOT

_TIME_LIMIT_S = 2700


@dataclass(frozen=True)
class Delegate:
    """What Vela was given for a target and what it made of it.

    `layers` are the rows of Vela's own table of layers.
    """

    tosa: bytes
    payload: bytes
    layers: list[dict[str, str]]


Corpus = Callable[[Pair], list[Delegate]]


def read_delegates(folder: Path, target: str) -> list[Delegate]:
    """The delegates of the model in `folder` for a target, in order."""
    graphs = sorted(folder.glob(f"{profile_of(target)}-*.tosa"))
    return [
        Delegate(
            graph.read_bytes(),
            graph.with_suffix(f".{target}.bin").read_bytes(),
            list(csv.DictReader(graph.with_suffix(f".{target}.csv").read_text().splitlines())),
        )
        for graph in graphs
    ]


def lowerings_of(items: Iterable[pytest.Item]) -> list[Lowering]:
    """What the tests of a session need, the largest groups first."""
    parameters = (
        item.callspec.params
        for item in items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
    )
    pairs = (row.get("pair") for row in parameters)
    found = dict.fromkeys(pair.lowering for pair in pairs if isinstance(pair, Pair))
    return sorted(found, key=lambda row: ALL_GROUPS.index(row.group))


def lower(folder: Path, wanted: Lowering, others: Iterable[Lowering]) -> None:
    """Have a model lowered into `folder`, and `others` that nobody is lowering; wait for that model alone.

    The second try is for a model that is none of those for which another process has locked its group.
    """
    for _ in range(2):
        if (folder / wanted.done).is_file():
            return
        argv = [sys.executable, "-m", "tests.conformance.lower", str(folder), *map(str, (wanted, *others))]
        proc.run(argv, cwd=ROOT, timeout_s=_TIME_LIMIT_S, log=folder / f"lower-{os.getpid()}.log")
        with (folder / wanted.group / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
    assert (folder / wanted.done).is_file(), f"the process that was lowering {wanted} failed"


@pytest.fixture(scope="session")
def corpus(shared_folder: Path, request: pytest.FixtureRequest) -> Corpus:
    """``corpus(pair)``: the delegates of a model for a target. The first call lowers, and Vela compiles what is asked
    for.

    Workers of pytest-xdist share the work by groups. The environment variable ETHOSU_SDK_CORPUS names a folder
    that keeps what is lowered for later sessions.
    """
    kept = os.environ.get("ETHOSU_SDK_CORPUS")
    folder = writing.make_directory(
        (Path(kept) if kept else shared_folder / "conformance") / ("full" if FULL else "quick")
    )
    needed = lowerings_of(request.session.items)

    def delegates(pair: Pair) -> list[Delegate]:
        lower(folder, pair.lowering, needed)
        place = folder / pair.group / pair.model
        compile_missing(place, pair)
        return read_delegates(place, pair.target)

    return delegates
