"""The corpus, lowered and compiled once for each state of what shapes it, and kept between runs."""

import csv
import fcntl
import functools
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ethosu_sdk.base import proc
from tests import kept
from tests.conformance.selection import ALL_GROUPS, Pair, profile_of
from tests.places import ROOT

_TIME_LIMIT_S = 2700
_SDK, _HERE = ROOT / "sdk" / "ethosu_sdk", Path(__file__).parent
# What a lowered graph and Vela's payload depend on.
SOURCES = (
    *(_SDK / "compile").rglob("*.py"),
    *(_SDK / "base" / name for name in ("targets.py", "targets.toml")),
    *(_HERE / "models").glob("*.py"),
    *(_HERE / f"{name}.py" for name in ("lower", "targets", "tosa_graph", "tosa_graphs", "tosa_operators")),
)


@functools.cache
def kept_folder() -> Path:
    """The folder of the corpus."""
    return kept.shared("conformance", SOURCES)


@dataclass(frozen=True)
class Delegate:
    """What Vela was given for a target and what it made of it.

    `layers` are the rows of Vela's own table of layers.
    """

    tosa: bytes
    payload: bytes
    layers: list[dict[str, str]]


Corpus = Callable[[Pair], list[Delegate]]


def delegates_of(pair: Pair, others: Iterable[Pair] = ()) -> list[Delegate]:
    """The delegates of a model for a target, in order: made now, with `others` that nobody is making, or kept."""
    folder = kept_folder()
    make(folder, pair, others)
    return [
        Delegate(
            graph.read_bytes(),
            graph.with_suffix(f".{pair.target}.bin").read_bytes(),
            list(csv.DictReader(graph.with_suffix(f".{pair.target}.csv").read_text().splitlines())),
        )
        for graph in sorted((folder / pair.group / pair.model).glob(f"{profile_of(pair.target)}-*.tosa"))
    ]


def make(folder: Path, wanted: Pair, others: Iterable[Pair]) -> None:
    """Have a pair made in `folder`, and `others` that nobody is making; wait for that pair alone.

    The second try is for a pair that is none of those for which another process has locked its group.
    """
    for _ in range(2):
        if (folder / wanted.done).is_file():
            return
        words = dict.fromkeys(pair.path for pair in (wanted, *others) if not (folder / pair.done).is_file())
        argv = [sys.executable, "-m", "tests.conformance.lower", str(folder), *words]
        proc.run(argv, cwd=ROOT, timeout_s=_TIME_LIMIT_S, log=folder / f"lower-{os.getpid()}.log")
        with (folder / wanted.group / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
    assert (folder / wanted.done).is_file(), f"the process that was making {wanted} failed"


def pairs_of(items: Iterable[pytest.Item]) -> list[Pair]:
    """What the tests of a session need, the largest groups first."""
    parameters = (
        item.callspec.params
        for item in items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
    )
    found = dict.fromkeys(pair for row in parameters if isinstance(pair := row.get("pair"), Pair))
    return sorted(found, key=lambda row: ALL_GROUPS.index(row.group))


@pytest.fixture(scope="session")
def corpus(request: pytest.FixtureRequest) -> Corpus:
    """``corpus(pair)``: the delegates of a model for a target. The first call makes what the session needs; workers
    of pytest-xdist share the work by groups."""
    needed = pairs_of(request.session.items)
    return lambda pair: delegates_of(pair, needed)
