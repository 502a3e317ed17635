"""What the layers of a run say together: where it breaks first, the largest drop, which layers to give 16 bits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ethosu_sdk.records.debug import Against, Remedy
from ethosu_sdk.steps.debug.figures import Distance
from ethosu_sdk.steps.debug.layers import Layer
from ethosu_sdk.steps.debug.notes import DelegateNotes

QUANTISED: Literal["quantised"] = "quantised"
FLOAT: Literal["float"] = "float"
BITS: Literal["16 bits"] = "16 bits"
CALIBRATION: Literal["calibration"] = "calibration"
MOST_ADVICE = 10  # of a remedy
_MOST_STEPS = 1.5  # a whole step, and what float64 arithmetic does to it


@dataclass(frozen=True)
class Step:
    """A layer with its SQNR (bounded, in dB) and the least of those of its inputs; None: no input is compared."""

    layer: Layer
    output_db: float
    input_db: float | None

    @property
    def drop_db(self) -> float:
        """By how much the SQNR falls from the worst input to the output."""
        return 0.0 if self.input_db is None else self.input_db - self.output_db

    @property
    def is_rounding(self) -> bool:
        """Whether the layer is within a step of the quantised model: PyTorch rounds ties in another way."""
        near, value = self.layer.quantised, self.layer.value
        return near is not None and value is not None and near.largest_error < _MOST_STEPS * value.scale


def steps(layers: Sequence[Layer], notes: Mapping[int, DelegateNotes], against: Against) -> list[Step]:
    """The compared layers in the order of execution, each with what it starts from."""
    compared = {row.key: row for row in layers if _usable(_distance(row, against))}
    found = []
    for layer in compared.values():
        distance = _distance(layer, against)
        assert distance is not None
        sources = _sources(layer, compared, notes.get(layer.delegate))
        inputs = [row.bounded_db for source in sources if (row := _distance(source, against)) is not None]
        found.append(Step(layer, distance.bounded_db, min(inputs, default=None)))
    return found


def _distance(layer: Layer, against: Against) -> Distance | None:
    return layer.quantised if against == QUANTISED else layer.float_


def _usable(distance: Distance | None) -> bool:
    return distance is not None and not math.isnan(distance.bounded_db)


def _sources(
    layer: Layer, compared: Mapping[tuple[int, str], Layer], notes: DelegateNotes | None
) -> list[Layer]:
    """The nearest compared layers that `layer` is computed from in its TOSA graph."""
    if notes is None:
        return []
    pending, seen, found = list(notes.inputs.get(layer.name, ())), set[str](), []
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        known = compared.get((layer.delegate, name))
        if known is not None:
            found.append(known)
        else:
            pending += notes.inputs.get(name, ())
    return found


def first_break(found: Sequence[Step], threshold_db: float, against: Against) -> Step | None:
    """The first layer whose SQNR is below the threshold although those of its inputs are not. Against the quantised
    model, an error of one step is none."""
    return next(
        (
            row
            for row in found
            if row.output_db < threshold_db
            and (row.input_db is None or row.input_db >= threshold_db)
            and not (against == QUANTISED and row.is_rounding)
        ),
        None,
    )


def largest_drop(found: Sequence[Step], against: Against) -> Step | None:
    """The layer in which the SQNR falls most; None where it falls in none, or by rounding alone."""
    rows = [row for row in found if not (against == QUANTISED and row.is_rounding)]
    worst = max(rows, key=lambda row: row.drop_db, default=None)
    return worst if worst is not None and worst.drop_db > 0 else None


@dataclass(frozen=True)
class Advice:
    """A layer whose quantisation loses much by itself, what helps, and the SQNR that the loss leaves."""

    layer: Layer
    remedy: Remedy
    sqnr_db: float


def advice(layers: Sequence[Layer], limit_db: float) -> list[Advice]:
    """For each remedy the layers whose own loss leaves less than `limit_db`, the worst first: 16 bits where it is
    rounding to the steps of an int8 tensor, other calibration samples where it is clipping to the tensor's range.

    What is ranked is a tensor's own loss: the float model's values, rounded or clipped as the tensor would, and
    nothing that comes from layers before. Tensors that hold the same value of the model count once.
    """
    found: list[Advice] = []
    remedies: tuple[Remedy, ...] = (BITS, CALIBRATION)
    for remedy in remedies:
        ranked: dict[str, Advice] = {}
        for row in layers:
            if row.own is None or row.value is None or (remedy == BITS and row.value.dtype != "int8"):
                continue
            left = row.own.rounding_db if remedy == BITS else row.own.clipping_db
            if left < limit_db:
                ranked.setdefault(row.value.node, Advice(row, remedy, left))
        found += sorted(ranked.values(), key=lambda row: (row.sqnr_db, row.layer.index))[:MOST_ADVICE]
    return found
