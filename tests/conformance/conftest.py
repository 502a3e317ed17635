"""The corpus, lowered once per test session and group."""

from __future__ import annotations

import csv
import fcntl
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ethosu_sdk import proc, records
from tests.conformance.models import GROUPS
from tests.conformance.tosa_graphs import NUMERIC

_ROOT = Path(__file__).resolve().parents[2]
_TIME_LIMIT_S = 600


@dataclass(frozen=True)
class Delegate:
    """What Vela was given and what it made of it for each MAC count of Ethos-U55.

    `layers` are the rows of Vela's own table of layers.
    """

    tosa: bytes
    payloads: dict[int, bytes]
    layers: dict[int, list[dict[str, str]]]


Corpus = Callable[[str, str], list[Delegate]]


def read_delegate(tosa: Path) -> Delegate:
    """The delegate whose TOSA graph is in `tosa`, with the payloads beside it."""

    def files(suffix: str) -> dict[int, Path]:
        return {int(path.stem.split("-")[1]): path for path in tosa.parent.glob(f"{tosa.stem}-*.{suffix}")}

    return Delegate(
        tosa.read_bytes(),
        {macs: path.read_bytes() for macs, path in files("bin").items()},
        {macs: list(csv.DictReader(path.read_text().splitlines())) for macs, path in files("csv").items()},
    )


def lower(folder: Path, group: str, *, wait: bool) -> None:
    """Lower a group into `folder`, unless that is done. Without `wait`, leave it to a process that is at it."""
    place = records.make_directory(folder / group)
    with (place / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return
        if not (place / "done").is_file():
            argv = [sys.executable, "-m", "tests.conformance.lower", str(place), group]
            proc.run(argv, cwd=_ROOT, timeout_s=_TIME_LIMIT_S, log=place / "lower.log")
            (place / "done").touch()


@pytest.fixture(scope="session")
def corpus(shared_folder: Path) -> Corpus:
    """``corpus(group, model)``: the model's delegates. The first call lowers.

    A worker of pytest-xdist that finds its group in work lowers another one before it waits.
    """
    folder = shared_folder / "conformance"

    def delegates(group: str, model: str) -> list[Delegate]:
        if not (folder / group / "done").is_file():
            for other in (group, *GROUPS, NUMERIC):
                lower(folder, other, wait=False)
            lower(folder, group, wait=True)
        return [read_delegate(path) for path in sorted((folder / group / model).glob("*.tosa"))]

    return delegates
