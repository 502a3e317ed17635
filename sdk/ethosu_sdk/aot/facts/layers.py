"""The request for a model's layers and what the compiler process writes for it: frozen data, passed between
processes as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.aot.facts import crossing
from ethosu_sdk.aot.facts.source_line import SourceLine

FILE_NAME = "layers.json"


@dataclass(frozen=True)
class LayerRequest:
    """Execute the model in PyTorch on `inputs` (an ``.npz`` with ``input0`` …; None: the example inputs) and keep the
    values of its layers.

    Into the existing `folder` go ``inputN.npy``, and for value N ``quantisedN.npy`` (as stored) and, where it is
    known, ``floatN.npy``; and FILE_NAME, a :class:`LayerFacts`.
    """

    folder: Path
    inputs: Path | None = None


@dataclass(frozen=True)
class SharedScale:
    """Has to have the scale of value number `value`, which is wider, because of the operator `through`."""

    value: int
    through: str


@dataclass(frozen=True)
class WeightLoss:
    """What quantisation costs an operator's weights: their SQNR in dB, None where it costs nothing."""

    elements: int
    sqnr_db: float | None


@dataclass(frozen=True)
class LayerValue:
    """A quantised value of the model in PyTorch: the node that is quantised and its operator, value = (stored -
    zero_point) * scale, and whether the value before quantisation is known too. `operands` number the values that it
    is computed from; `weights` are those of its operator."""

    node: str
    operator: str
    scale: float
    zero_point: int
    dtype: str
    has_float: bool
    source: SourceLine | None
    operands: tuple[int, ...] = ()
    shared: SharedScale | None = None
    weights: WeightLoss | None = None


@dataclass(frozen=True)
class TensorOrigin:
    """Where a tensor of a TOSA graph comes from: its node of the lowered program, which of `values` it can hold (with
    several, data decide), or the `reason` why none. It is `certain` where the node computes a single value that is
    quantised in its own form."""

    node: str | None
    values: tuple[int, ...]
    reason: str
    certain: bool = False


@dataclass(frozen=True)
class LayerFacts:
    """The values in the order of execution, and the origins of each delegate's tensors, by SHA-256 of its payload and
    by name. `missing` says of an execution in PyTorch that does not exist why. With `ties_up`, quantised values are
    rounded as on the NPU. `outputs` number the values that the model gives; None for one that is none of
    them."""

    values: tuple[LayerValue, ...]
    tensors: dict[str, dict[str, TensorOrigin]]
    missing: dict[str, str]
    ties_up: bool = False
    outputs: tuple[int | None, ...] = ()

    def write(self, folder: Path) -> None:
        """Leave the facts in `folder`."""
        (folder / FILE_NAME).write_text(crossing.to_text(self), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> LayerFacts:
        """The facts that :meth:`write` left."""
        return crossing.from_json(cls, json.loads((folder / FILE_NAME).read_text(encoding="utf-8")))
