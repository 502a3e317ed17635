"""The corpus, lowered once per test session and group."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ethosu_sdk import proc, records

_ROOT = Path(__file__).resolve().parents[2]
_TIME_LIMIT_S = 300


@dataclass(frozen=True)
class Delegate:
    """What Vela was given and what it made of it for each MAC count of Ethos-U55."""

    tosa: bytes
    payloads: dict[int, bytes]


Corpus = Callable[[str, str], list[Delegate]]


def read_delegate(tosa: Path) -> Delegate:
    """The delegate whose TOSA graph is in `tosa`, with the payloads beside it."""
    payloads = {
        int(path.stem.split("-")[1]): path.read_bytes() for path in tosa.parent.glob(f"{tosa.stem}-*.bin")
    }
    return Delegate(tosa.read_bytes(), payloads)


@pytest.fixture(scope="session")
def corpus(shared_folder: Path) -> Corpus:
    """``corpus(group, model)``: the model's delegates. The first call lowers the whole group."""

    def delegates(group: str, model: str) -> list[Delegate]:
        folder = records.make_directory(shared_folder / "conformance" / f"lowered-{group}")
        done = folder / "done"
        with records.locked(folder):
            if not done.is_file():
                argv = [sys.executable, "-m", "tests.conformance.lower", str(folder), group]
                proc.run(argv, cwd=_ROOT, timeout_s=_TIME_LIMIT_S, log=folder / "lower.log")
                done.touch()
        return [read_delegate(path) for path in sorted((folder / group / model).glob("*.tosa"))]

    return delegates
