"""What the compiler process leaves for the check of its result: frozen data that also crosses the process boundary as
JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ethosu_sdk.aot.evaluation_facts import Quantisation


@dataclass(frozen=True)
class CheckedOutput:
    """One output: dtype in PyTorch; how the program quantises it (None: not with one fixed scale). `exact` says that
    only integers lead to it, so that nothing is rounded on the way."""

    dtype: str
    quantisation: Quantisation | None
    exact: bool


@dataclass(frozen=True)
class CheckFacts:
    """The check's folder holds ``referenceN.npy``, the outputs in PyTorch of the program that was lowered, and for
    each of `trials` ``trialT_N.npy``: the outputs with every value rounded another way
    (:mod:`ethosu_sdk.aot.rounding`).

    `stateful` says that the model changes tensors of its own in an inference.
    """

    outputs: tuple[CheckedOutput, ...]
    trials: int
    stateful: bool

    def to_json(self) -> dict[str, Any]:
        """The facts as JSON values; :meth:`from_json` is the way back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> CheckFacts:
        """The facts that :meth:`to_json` wrote."""
        return cls(**{**data, "outputs": tuple(_output(row) for row in data["outputs"])})


def _output(row: dict[str, Any]) -> CheckedOutput:
    known = row["quantisation"]
    return CheckedOutput(**{**row, "quantisation": None if known is None else Quantisation(**known)})
