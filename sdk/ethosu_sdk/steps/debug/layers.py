"""The layers of a run: tensors that NPU operations wrote, joined with the TOSA graph and PyTorch's values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from numpy.typing import NDArray

from ethosu_sdk.aot.facts.layers import LayerFacts, LayerValue, WeightLoss
from ethosu_sdk.records.compile import Operation
from ethosu_sdk.records.debug import Range
from ethosu_sdk.steps.debug import figures
from ethosu_sdk.steps.debug.figures import Distance, Own
from ethosu_sdk.steps.debug.gathering import Gathered
from ethosu_sdk.steps.debug.notes import DelegateNotes
from ethosu_sdk.steps.debug.pairing import MOST_STEPS, Pair, Pairing

Array = NDArray[Any]

_MOST_LETTERS = 120  # of a name in a dump: a file's names are others'
_VELAS_OWN = "a tensor of Vela's own: the TOSA graph has none of this name"
_NO_NOTES = "nothing is known of the operation beside its command stream"
_WIDE = "{dtype} values are inner ones: the model quantises none of them"


@dataclass(frozen=True)
class Layer:
    """A tensor that the NPU wrote. `name` is the TOSA tensor's, or Vela's, or that of the NPU operation.

    `writers` are the entries of the compile record: several where each writes a part. `pair` is what the model
    computes there, `value` says how it is quantised, `shared` is the value whose scale it has to have; `reason` says
    why there is none. `misplaced` is the moved tensor from which a layer that is off is computed, and which the model
    has in another order.
    """

    index: int
    delegate: int
    name: str
    gathered: Gathered
    values: Array | None
    range: Range | None
    writers: tuple[Operation, ...] = ()
    node: str | None = None
    value: LayerValue | None = None
    pair: Pair | None = None
    shared: LayerValue | None = None
    quantised: Distance | None = None
    float_: Distance | None = None
    own: Own | None = None
    misplaced: str = ""
    reason: str = ""

    @property
    def origin(self) -> Operation | None:
        """The entry of the last writer."""
        return self.writers[-1] if self.writers else None

    @property
    def is_off(self) -> bool:
        """Whether it is more than a step from the quantised model, so that rounding does not explain it."""
        near, value = self.quantised, self.value
        return near is not None and value is not None and near.largest_error >= MOST_STEPS * value.scale

    @property
    def weights(self) -> WeightLoss | None:
        """The loss of the weights of the operator that computes it; None for one that several compute."""
        if self.value is None or (self.pair is not None and len(self.pair.sources) > 1):
            return None
        return self.value.weights

    def not_compared(self, reason: str) -> Layer:
        """The layer without what the model computes."""
        return replace(
            self,
            value=None,
            pair=None,
            shared=None,
            quantised=None,
            float_=None,
            own=None,
            misplaced="",
            reason=reason,
        )

    @property
    def key(self) -> tuple[int, str]:
        """The tensor's name in its delegate."""
        return self.delegate, self.name

    @property
    def dump_name(self) -> str:
        """The name of its array in a dump."""
        plain = re.sub(r"[^A-Za-z0-9_.-]", "_", self.name[:_MOST_LETTERS])
        return f"layer{self.index:03d}_{plain}"


def of_delegate(
    delegate: int,
    first: int,
    gathered: Sequence[Gathered],
    notes: DelegateNotes | None,
    pairing: Pairing | None,
) -> list[Layer]:
    """The layers of one delegate, numbered from `first` on."""
    return [_layer(first + number, delegate, row, notes, pairing) for number, row in enumerate(gathered)]


def _layer(
    index: int, delegate: int, gathered: Gathered, notes: DelegateNotes | None, pairing: Pairing | None
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
    base = replace(base, writers=tuple(notes.origins(gathered.offsets)))
    if shape is None:
        return replace(base, reason=_VELAS_OWN)
    if values is None:
        return replace(base, reason=gathered.reason)
    if pairing is None:
        return base
    base = replace(base, node=pairing.node(name))
    if values.dtype.itemsize > 2:
        return replace(base, reason=_WIDE.format(dtype=values.dtype.name))
    pair = pairing.pair(name, values)
    return (
        replace(base, reason=pair) if isinstance(pair, str) else _compared(base, values, pair, pairing.facts)
    )


def _compared(layer: Layer, values: Array, pair: Pair, facts: LayerFacts) -> Layer:
    """The layer with what PyTorch computes."""
    value = facts.values[pair.value]
    scale, zero_point = value.scale, value.zero_point
    ours, eager = (figures.real(pair.of(row), scale, zero_point) for row in (values, pair.stored))
    found = replace(
        layer,
        node=value.node,
        value=value,
        pair=pair,
        shared=None if value.shared is None else facts.values[value.shared.value],
        quantised=figures.distance(ours, eager, scale),
    )
    if pair.exact is None:
        return found
    exact = pair.of(pair.exact)
    return replace(
        found,
        float_=figures.distance(ours, exact, scale),
        own=figures.own(exact, scale, zero_point, value.dtype),
    )
