"""The layers of a run: tensors that NPU operations wrote, joined with the TOSA graph and PyTorch's values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk.aot.facts.layers import LayerFacts, LayerValue, TensorOrigin
from ethosu_sdk.records.compile import Operation
from ethosu_sdk.records.debug import Range
from ethosu_sdk.steps.debug import figures
from ethosu_sdk.steps.debug.figures import Distance, Own
from ethosu_sdk.steps.debug.gathering import Gathered
from ethosu_sdk.steps.debug.notes import DelegateNotes

Array = NDArray[Any]

_MOST_LETTERS = 120  # of a name in a dump: a file's names are others'
_VELAS_OWN = "a tensor of Vela's own: the TOSA graph has none of this name"
_NO_NOTES = "nothing is known of the operation beside its command stream"
_WIDE = "{dtype} values are inner ones: the model quantises none of them"
_OTHER_SIZE = "the model's value there has another type or number of elements"


@dataclass(frozen=True)
class Layer:
    """A tensor that the NPU wrote. `name` is the TOSA tensor's, or Vela's, or that of the NPU operation.

    `writers` are the entries of the compile record: several where each writes a part. `value` is what the model
    computes there, with the order of its axes (`axes`) in which the tensor has them, and the distances from it;
    `reason` says why there is no value.
    """

    index: int
    delegate: int
    name: str
    gathered: Gathered
    values: Array | None
    range: Range | None
    writers: tuple[Operation, ...] = ()
    inputs: tuple[str, ...] = ()
    node: str | None = None
    value: LayerValue | None = None
    axes: tuple[int, ...] = ()
    quantised: Distance | None = None
    float_: Distance | None = None
    own: Own | None = None
    reason: str = ""

    @property
    def origin(self) -> Operation | None:
        """The entry of the last writer."""
        return self.writers[-1] if self.writers else None

    @property
    def key(self) -> tuple[int, str]:
        """The tensor's name in its delegate."""
        return self.delegate, self.name

    @property
    def dump_name(self) -> str:
        """The name of its array in a dump."""
        plain = re.sub(r"[^A-Za-z0-9_.-]", "_", self.name[:_MOST_LETTERS])
        return f"layer{self.index:03d}_{plain}"


@dataclass(frozen=True)
class Reference:
    """What the compiler process left of the model in PyTorch."""

    facts: LayerFacts
    folder: Path

    def load(self, kind: str, index: int) -> Array:
        """The array of a value: ``quantised`` as stored, or ``float``."""
        array: Array = np.load(self.folder / f"{kind}{index}.npy")
        return array


def of_delegate(
    delegate: int,
    first: int,
    gathered: Sequence[Gathered],
    notes: DelegateNotes | None,
    origins: Mapping[str, TensorOrigin],
    reference: Reference | None,
) -> list[Layer]:
    """The layers of one delegate, numbered from `first` on."""
    return [
        _layer(first + number, delegate, row, notes, origins, reference)
        for number, row in enumerate(gathered)
    ]


def _layer(
    index: int,
    delegate: int,
    gathered: Gathered,
    notes: DelegateNotes | None,
    origins: Mapping[str, TensorOrigin],
    reference: Reference | None,
) -> Layer:
    name = gathered.name or gathered.parts[0].operation.name
    shape = None if notes is None else notes.shapes.get(gathered.name)
    values = gathered.values
    if values is not None and shape is not None and min(shape, default=1) > 0 and prod(shape) == values.size:
        values = values.reshape(shape)
    known = None if values is None else figures.value_range(values)
    base = Layer(index, delegate, name, gathered, values, known)
    if notes is None:
        return replace(base, reason=_NO_NOTES)
    base = replace(
        base, writers=tuple(notes.origins(gathered.offsets)), inputs=notes.inputs.get(gathered.name, ())
    )
    if shape is None:
        return replace(base, reason=_VELAS_OWN)
    if values is None:
        return replace(base, reason=gathered.reason)
    origin = origins.get(gathered.name)
    if origin is None or reference is None:
        return base
    base = replace(base, node=origin.node)
    if values.dtype.itemsize > 2:
        return replace(base, reason=_WIDE.format(dtype=values.dtype.name))
    return _compared(base, values, origin, reference)


def _compared(layer: Layer, values: Array, origin: TensorOrigin, reference: Reference) -> Layer:
    """The layer with what PyTorch computes: of several values, and orders of axes, the nearest."""
    best = _nearest(values, origin, reference)
    if best is None:
        return replace(layer, reason=origin.reason or _OTHER_SIZE)
    index, axes = best
    value = reference.facts.values[index]
    scale, zero_point = value.scale, value.zero_point
    ours = figures.real(values, scale, zero_point)

    def arranged(kind: str) -> Array:
        return reference.load(kind, index).transpose(axes).reshape(values.shape)

    eager = figures.real(arranged("quantised"), scale, zero_point)
    found = replace(
        layer, node=value.node, value=value, axes=axes, quantised=figures.distance(ours, eager, scale)
    )
    if not value.has_float:
        return found
    exact = arranged("float")
    return replace(
        found,
        float_=figures.distance(ours, exact, scale),
        own=figures.own(exact, scale, zero_point, value.dtype),
    )


def _nearest(values: Array, origin: TensorOrigin, reference: Reference) -> tuple[int, tuple[int, ...]] | None:
    """The value, and the order of its axes, that is nearest to the tensor; None when none has its type and size."""
    stored = {index: reference.load("quantised", index) for index in origin.values}
    choices = [
        (index, axes)
        for index, array in stored.items()
        if array.dtype == values.dtype
        for axes in figures.arrangements(array.shape, values.shape)
    ]
    if len(choices) <= 1:
        return choices[0] if choices else None
    return min(choices, key=lambda row: _apart(values, stored[row[0]].transpose(row[1])))


def _apart(values: Array, stored: Array) -> float:
    difference = values.ravel().astype(np.float32) - stored.ravel().astype(np.float32)
    return float(difference @ difference)
