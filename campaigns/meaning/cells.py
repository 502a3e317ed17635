"""The cells of the hunt: a model on a target, and what came out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]  # whatever it holds
TARGETS = ("ethos-u55-128", "ethos-u85-256")
OWN_TARGETS = {"cortex-m": ("cortex-m55",)}  # of a family
RIGHT, REFUSED, WRONG, BAD_REFUSAL, HANG = "right", "refused", "wrong", "bad refusal", "hang"
FINDINGS = (WRONG, BAD_REFUSAL, HANG)


@dataclass(frozen=True)
class Task:
    """A cell to fill: a model's file, how to quantise it, and for which target.

    `against` is another file, whose outputs are to be met: so are faults planted for the judge. `family`, `idiom` and
    `digest` go into the outcome.
    """

    cell: str
    file: Path
    quantize: str
    target: str
    against: Path | None = None
    family: str = ""
    idiom: str = ""
    digest: str = ""

    def __str__(self) -> str:
        return self.cell

    def to_json(self) -> dict[str, Any]:
        """The task as JSON values; :meth:`from_json` is the way back."""
        against = None if self.against is None else str(self.against)
        return {**asdict(self), "file": str(self.file), "against": against}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Task:
        """The task that :meth:`to_json` wrote."""
        against = None if data["against"] is None else Path(data["against"])
        return cls(**{**data, "file": Path(data["file"]), "against": against})


@dataclass(frozen=True)
class Outcome:
    """What a cell shows.

    RIGHT: compiled, run, and equal to eager PyTorch but for rounding. REFUSED: `step` ended with 3 or 7 and a message
    that names operator and line. The findings: WRONG (exit code 0, other outputs), BAD_REFUSAL (`problem` says why)
    and HANG. `decibels` is of the worst output, None when all are equal, `largest` the largest error as a part of the
    largest value. `is_narrowed` says that whole numbers of 64 bits came out as 32, with equal values. `digest` is of
    the model's file: the outcome of another file says nothing.
    """

    verdict: str
    family: str = ""
    idiom: str = ""
    quantize: str = ""
    digest: str = ""
    step: str = ""
    exit_code: int = 0
    message: str = ""
    problem: str = ""
    decibels: float | None = None
    largest: float = 0.0
    is_narrowed: bool = False
    seconds: float = 0.0
    commit: str = ""

    def to_json(self) -> dict[str, Any]:
        """The members that say something; :meth:`from_json` is the way back."""
        usual = Outcome("")
        return {key: value for key, value in asdict(self).items() if value != getattr(usual, key)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Outcome:
        """The outcome that :meth:`to_json` wrote."""
        return cls(**data)


def finding_folder(folder: Path, cell: str) -> Path:
    """Where a finding's model and command line are kept."""
    return folder / "findings" / cell
