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
from tests.conformance.selection import ALL_GROUPS, FULL, Pair, profile_of
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


def groups_of(items: Iterable[pytest.Item]) -> set[str]:
    """The groups whose models the tests of a session run."""
    parameters = (
        item.callspec.params
        for item in items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
    )
    return {pair.group for pair in (row.get("pair") for row in parameters) if isinstance(pair, Pair)}


def lower(folder: Path, group: str, others: Iterable[str]) -> None:
    """Have a group lowered into `folder`, and `others` that nobody is lowering; wait for the group alone."""
    if not (folder / group / "done").is_file():
        argv = [sys.executable, "-m", "tests.conformance.lower", str(folder), group, *others]
        proc.run(argv, cwd=ROOT, timeout_s=_TIME_LIMIT_S, log=folder / f"lower-{os.getpid()}.log")
        with (folder / group / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
    assert (folder / group / "done").is_file(), f"the process that was lowering {group} failed"


@pytest.fixture(scope="session")
def corpus(shared_folder: Path, request: pytest.FixtureRequest) -> Corpus:
    """``corpus(pair)``: the delegates of a model for a target. The first call lowers, and Vela compiles what is asked
    for.

    Two workers of pytest-xdist share the work by groups. The environment variable ETHOSU_SDK_CORPUS names a folder
    that keeps what is lowered for later sessions.
    """
    kept = os.environ.get("ETHOSU_SDK_CORPUS")
    folder = writing.make_directory(
        (Path(kept) if kept else shared_folder / "conformance") / ("full" if FULL else "quick")
    )
    needed = groups_of(request.session.items)

    def delegates(pair: Pair) -> list[Delegate]:
        lower(folder, pair.group, (group for group in ALL_GROUPS if group in needed))
        place = folder / pair.group / pair.model
        assert place.is_dir(), f"{pair} is not in the set of models that is lowered: selection.py"
        compile_missing(place, pair)
        return read_delegates(place, pair.target)

    return delegates
