"""What the layers of a run say together: where it breaks first, the largest drop, and what to change."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ethosu_sdk.analysis.debug_layers import DebuggedLayer, DelegateNotes
from ethosu_sdk.records.debug import Advice, Against, Change, Misplaced, Remedy

TO_QUANTISED: Literal["quantised"] = "quantised"
TO_FLOAT: Literal["float"] = "float"
BITS: Literal["16 bits"] = "16 bits"
CALIBRATION: Literal["calibration"] = "calibration"
WEIGHTS: Literal["weights"] = "weights"
FAULT: Literal["fault"] = "fault"
_MOST_ADVICE = 10  # of a remedy
_REFUTED = (
    "not comparable: all that is computed from it equals the model, so that its counterpart is another value"
)

_Key = tuple[int, str]  # a delegate and a tensor


@dataclass(frozen=True)
class Step:
    """A layer with its SQNR in dB, as it is shown, and the least of those of its inputs: infinite where all are
    equal, None where none is compared. `perhaps` are layers between them that are not comparable.

    `sources` are its inputs, `reliable_db` the least that they have if rounding errors are evenly spread.
    `misplaced` is the tensor that brings values to other places than the model does, so that the layer is off.
    """

    layer: DebuggedLayer
    output_db: float
    input_db: float | None
    perhaps: tuple[DebuggedLayer, ...] = ()
    misplaced: Misplaced | None = None
    sources: tuple[DebuggedLayer, ...] = ()
    reliable_db: float | None = None

    @property
    def drop_db(self) -> float:
        return 0.0 if self.input_db is None else self.input_db - self.output_db

    def counts(self, against: Against) -> bool:
        """Whether it can be to blame: its counterpart in the model is certain, and, beside the quantised model,
        rounding does not explain it."""
        pair = self.layer.pair
        return pair is not None and pair.certain and (against == TO_FLOAT or self.layer.is_off)


def compared_steps(
    layers: Sequence[DebuggedLayer], notes: Mapping[int, DelegateNotes], against: Against
) -> list[Step]:
    """The compared layers in the order of execution, each with what it starts from."""
    known = {row.key: row for row in layers}
    every = {key: row.quantised if against == TO_QUANTISED else row.float_ for key, row in known.items()}
    distances = {key: row for key, row in every.items() if row is not None and not math.isnan(row.sqnr_db)}
    graph = _inputs(notes)
    found = []
    for key, distance in distances.items():
        layer = known[key]
        sources, between = _nearest(key, graph, distances)
        ratios = [distances[row] for row in sources]
        perhaps = sorted((known[row] for row in between if row in known), key=lambda row: row.index)
        found.append(
            Step(
                layer,
                output_db=distance.shown_db,
                input_db=min((row.shown_db for row in ratios), default=None),
                perhaps=tuple(perhaps),
                misplaced=_misplaced(layer, known, notes) if layer.misplaced else None,
                sources=tuple(known[row] for row in sources),
                reliable_db=min((min(row.sqnr_db, row.even_db) for row in ratios), default=None),
            )
        )
    return found


def _misplaced(
    layer: DebuggedLayer, known: Mapping[_Key, DebuggedLayer], notes: Mapping[int, DelegateNotes]
) -> Misplaced:
    moves = notes[layer.delegate].moves
    name = moves.turned(layer.misplaced)
    seen = known.get((layer.delegate, name))
    return Misplaced(tensor=name, operator=moves.operator(name), layer=None if seen is None else seen.index)


def _inputs(notes: Mapping[int, DelegateNotes]) -> dict[_Key, list[_Key]]:
    return {
        (index, name): [(index, row) for row in rows]
        for index, known in notes.items()
        for name, rows in known.inputs.items()
    }


def _nearest(
    start: _Key, graph: Mapping[_Key, Sequence[_Key]], wanted: Iterable[_Key]
) -> tuple[list[_Key], list[_Key]]:
    """The nearest tensors of `wanted` along the `graph`, and those on the way to them or beside."""
    wanted = set(wanted)
    pending, seen, found = list(graph.get(start, ())), {start}, list[_Key]()
    between = []
    while pending:
        key = pending.pop()
        if key in seen:
            continue
        seen.add(key)
        if key in wanted:
            found.append(key)
        else:
            between.append(key)
            pending += graph.get(key, ())
    return found, between


def without_refuted(
    layers: Sequence[DebuggedLayer], notes: Mapping[int, DelegateNotes], threshold_db: float
) -> list[DebuggedLayer]:
    """`layers`, without comparison where one is far from the quantised model and nothing computed from it is off."""
    users: dict[_Key, list[_Key]] = {}  # the tensors that are computed from each tensor
    for name, rows in _inputs(notes).items():
        for row in rows:
            users.setdefault(row, []).append(name)
    kept = {row.key: row for row in layers if row.quantised is not None}
    for key, layer in reversed(list(kept.items())):
        assert layer.quantised is not None
        if not layer.is_off or layer.quantised.shown_db >= threshold_db:
            continue
        later, _ = _nearest(key, users, kept)
        if later and not any(kept[row].is_off for row in later):
            del kept[key]
    return [
        layer if layer.quantised is None or layer.key in kept else layer.not_compared(_REFUTED)
        for layer in layers
    ]


def first_break(found: Sequence[Step], threshold_db: float, against: Against) -> Step | None:
    return next(breaks(found, threshold_db, against), None)


def breaks(found: Sequence[Step], threshold_db: float, against: Against) -> Iterator[Step]:
    """The layers whose SQNR is below the threshold although those of their inputs are not."""
    for row in found:
        inputs_hold = row.input_db is None or row.input_db >= threshold_db
        if row.output_db < threshold_db and inputs_hold and row.counts(against):
            yield row


def largest_drop(found: Sequence[Step], against: Against) -> Step | None:
    """The layer in which the SQNR falls most, of those that fall from equal inputs the one with the least; None where
    it falls in none."""
    rows = [row for row in found if row.counts(against)]
    worst = max(rows, key=lambda row: (row.drop_db, -row.output_db), default=None)
    return worst if worst is not None and worst.drop_db > 0 else None


def layer_advice(layers: Sequence[DebuggedLayer], limit_db: float) -> list[Advice]:
    """For each remedy the layers whose quantisation by itself leaves less than `limit_db`, the worst first: 16 bits
    where it is rounding to the steps of an int8 tensor, other calibration samples where it is clipping to the
    tensor's range.

    What is ranked is a tensor's own loss: the float model's values, rounded or clipped as the tensor would, and
    nothing that comes from layers before; likewise the loss of its operator's weights. Tensors that hold the same
    value of the model count once.
    """
    found: list[Advice] = []
    remedies: tuple[Remedy, ...] = (BITS, CALIBRATION, WEIGHTS)
    for remedy in remedies:
        ranked: dict[str, Advice] = {}
        for row in layers:
            left = _losses(row).get(remedy, math.inf)
            if left < limit_db and row.value is not None:
                advice = Advice(
                    remedy=remedy, layer=row.index, node=row.value.node, module=row.module, sqnr_db=left
                )
                ranked.setdefault(row.value.node, advice)
        found += sorted(ranked.values(), key=lambda row: (row.sqnr_db, row.layer))[:_MOST_ADVICE]
    return found


def _losses(row: DebuggedLayer) -> dict[Remedy, float]:
    """The SQNR in dB that each loss of a layer's own leaves, by what helps."""
    found: dict[Remedy, float] = {}
    if row.own is not None and row.value is not None:
        found[CALIBRATION] = row.own.clipping_db
        if row.value.dtype == "int8":
            found[BITS] = row.own.rounding_db
    if row.weights is not None and row.weights.sqnr_db is not None:
        found[WEIGHTS] = row.weights.sqnr_db
    return found


def first_change(
    fault: Step | None, found: Sequence[Step], outputs: Collection[int], limit_db: float
) -> Change | None:
    """What to change first; None where the program's outputs have `limit_db` beside the float model, or each loss by
    itself leaves as much.

    A `fault` of the NPU's values comes before all. Otherwise it is the layer whose own loss is the largest of those
    that the worst output is computed from, itself included. `outputs` are the values that the program gives; of one
    that gives none of its layers, the worst layer counts. `found` are the steps beside the float model.
    """
    if fault is not None:
        return Change(remedy=FAULT, layer=fault.layer.index, module=fault.layer.module)
    given = [row for row in found if row.layer.pair is not None and row.layer.pair.value in outputs]
    worst = min(given or found, key=lambda row: row.output_db, default=None)
    if worst is None or worst.output_db >= limit_db:
        return None
    losses = [
        (left, layer.index, remedy, layer)
        for layer in _ancestors(worst, found)
        for remedy, left in _losses(layer).items()
        if left < limit_db
    ]
    if not losses:
        return None
    left, _, remedy, layer = min(losses, key=lambda row: row[:2])
    return Change(remedy=remedy, layer=layer.index, module=layer.module, sqnr_db=left)


def _ancestors(step: Step, found: Sequence[Step]) -> list[DebuggedLayer]:
    """The layers that a step's is computed from, itself and those of delegates before included."""
    steps_of = {row.layer.index: row for row in found}
    pending, seen = [step], dict[int, DebuggedLayer]()
    while pending:
        row = pending.pop()
        if row.layer.index not in seen:
            seen[row.layer.index] = row.layer
            pending += [steps_of[layer.index] for layer in row.sources]
    before = [row.layer for row in found if row.layer.delegate < step.layer.delegate]
    return [*seen.values(), *before]
