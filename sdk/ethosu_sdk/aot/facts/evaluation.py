"""The request of an evaluation and what the compiler process writes for it: frozen data, passed between processes as
JSON."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FLOAT, QUANTISED = "float", "quantised"  # the executions in PyTorch


@dataclass(frozen=True)
class EvaluationRequest:
    """Evaluate the model on the samples of `data` (:mod:`ethosu_sdk.aot.comparison.evaluation.evaluation_data`).

    Into the existing `folder` go arrays with samples on a leading axis, each in a ``.npy`` file: ``inputN`` (the
    program's inputs, in its own types), ``floatN`` and ``quantisedN`` (the outputs in PyTorch, before and after
    quantisation), ``expectedN``, and ``labelN`` (int64 [samples, B]).
    """

    data: Path
    folder: Path


@dataclass(frozen=True)
class Quantisation:
    """value = (stored - zero_point) * scale; `dtype` is of what is stored."""

    scale: float
    zero_point: int
    dtype: str


@dataclass(frozen=True)
class EvaluatedOutput:
    """One output: shape and dtype in PyTorch; `classes` (B, C) when it can be one of class scores; how the program
    quantises it, or the reason why that is not known."""

    shape: tuple[int, ...]
    dtype: str
    classes: tuple[int, int] | None
    quantisation: Quantisation | None
    reason: str


@dataclass(frozen=True)
class EvaluationFacts:
    """What :class:`EvaluationRequest`'s folder holds.

    `missing` says of an execution in PyTorch that does not exist why. `labels` are the outputs that have them.
    `calibration_overlap` counts samples that the model was calibrated with, None when that is not known.
    """

    samples: int
    missing: dict[str, str]
    outputs: tuple[EvaluatedOutput, ...]
    labels: tuple[int, ...]
    expected: bool
    calibration_overlap: int | None
