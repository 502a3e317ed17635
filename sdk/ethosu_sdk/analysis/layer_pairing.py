"""Which values of the model a tensor of a delegate holds, and how far it is from what PyTorch computes.

A tensor that is computed has the value that is quantised at its node of the model. For one that operators only moved,
the TOSA graph tells where each element comes from, so that the model's values of its sources are moved in the same
way. Everything else is a guess, which holds only if the values are alike: otherwise the tensor is not comparable.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk.compile.compile_facts import LayerFacts, TensorOrigin
from ethosu_sdk.compile.graphs.tosa_graph import CONSTANT_PLACE, TosaMoves
from ethosu_sdk.program.output_comparison import Comparison
from ethosu_sdk.records.debug import Range

Array = NDArray[Any]
Axes = tuple[int, ...]

MOST_STEPS = 1.5  # a whole step, and what float64 arithmetic does to it: PyTorch rounds ties in another way
_ALIKE_DB = 20.0  # least SQNR of values that are taken for the same
_MOST_AXES = 5  # beyond them, orders of axes are too many to try
_OTHER_SIZE = "the model's value there has another type or number of elements"
_UNSURE = "not comparable: which of the model's values it holds, or in which order, is not known for sure"


@dataclass(frozen=True)
class Reference:
    """What the compiler process left of the model in PyTorch."""

    facts: LayerFacts
    folder: Path

    def load(self, kind: str, index: int) -> Array:
        """The array of a value: ``quantised`` as stored, or ``float``."""
        array: Array = np.load(self.folder / f"{kind}{index}.npy")
        return array


@dataclass(frozen=True)
class Pair:
    """What the model has where a tensor is: number `value` of its values with the order of its axes, or, of a tensor
    that was moved, the values of its `sources`, the first of which is number `value`.

    `stored` and `exact` are the quantised and the float values, in the tensor's form; `known` says which elements are
    the model's, None for all. `certain` pairs are compared whatever the values are.
    """

    value: int
    stored: Array
    exact: Array | None
    axes: Axes | None = None
    sources: tuple[str, ...] = ()
    known: Array | None = None
    certain: bool = False

    def of(self, array: Array) -> Array:
        """The elements of an array in the tensor's form that are the model's."""
        return array if self.known is None else array[self.known]


class Pairing:
    """Pairs the tensors of one delegate, in the order of execution."""

    def __init__(
        self,
        reference: Reference,
        origins: Mapping[str, TensorOrigin],
        moves: TosaMoves,
        inputs: Mapping[str, Array],
        least_db: float,
    ) -> None:
        """`inputs` are the delegate's, by the names of their tensors. Below `least_db` a layer is to blame."""
        self._reference, self._origins, self._moves, self._inputs = reference, origins, moves, inputs
        self._least_db = max(least_db, _ALIKE_DB)
        self._found: dict[str, Pair | None] = {}
        self._strict: frozenset[str] = frozenset()

    def hold(self, names: Iterable[str]) -> None:
        """From now on, take for certain that each tensor of these `names` has the value of its node, with its axes as
        they are or with channels last. What was paired is forgotten."""
        self._strict |= frozenset(names)
        self._found = {}

    def of_values(self, names: Iterable[str], values: Collection[int]) -> list[str]:
        """Those tensors of these `names` that hold one of these `values`."""
        return [name for name in names if self._values(name).intersection(values)]

    def unusual_before(self, names: Iterable[str], inputs: Mapping[str, Sequence[str]]) -> list[str]:
        """The tensors whose values have their axes in an unusual order, neither that of the model nor with channels
        last, and that one of these `names` is computed from which is unusual itself."""
        pending, seen = [name for name in names if self._is_unusual(name)], set[str]()
        while pending:
            current = pending.pop()
            if current not in seen:
                seen.add(current)
                pending += inputs.get(current, ())
        return [name for name in seen if self._is_unusual(name)]

    def _is_unusual(self, name: str) -> bool:
        pair = self._found.get(name)
        return (
            pair is not None
            and pair.axes is not None
            and not is_usual(pair.axes, self._reference.load("quantised", pair.value).shape)
        )

    @property
    def facts(self) -> LayerFacts:
        return self._reference.facts

    def node(self, name: str) -> str | None:
        """The node of the lowered program that the tensor `name` was made from."""
        origin = self._origins.get(name)
        return None if origin is None else origin.node

    def pair(self, name: str, values: Array) -> Pair | str:
        """The pair of the tensor `name`, which has these `values`; the reason why it has none."""
        choices = list(self._choices(name, values))
        found = next((row for row in choices if row.certain or self._is_alike(row, values)), None)
        if found is not None:
            certain = found.certain or np.array_equal(found.of(found.stored), found.of(values))
            found = replace(found, certain=certain)
        self._found[name] = found
        if found is not None:
            return found
        origin = self._origins.get(name)
        return _UNSURE if choices else (origin.reason if origin is not None else "") or _OTHER_SIZE

    def misplaced(self, name: str, inputs: Mapping[str, Sequence[str]]) -> str:
        """The moved tensor from which `name` is computed that holds none of the values which the model computes it
        from, neither in their order nor with channels last; empty when there is none. `inputs` are those of each
        tensor of the graph."""
        pair = self._found.get(name)
        if pair is None or len(pair.sources) > 1:
            return ""
        operands = [self._reference.load("quantised", row) for row in self.facts.values[pair.value].operands]
        if not operands:
            return ""
        pending, seen = list(inputs.get(name, ())), {name}
        while pending:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            found = self._found.get(current)
            if current in self._moves:
                found = found or self._moved(current, None)
            is_own = found is not None and found.value == pair.value
            if found is not None and not is_own and current in self._moves:
                if not _holds_one_of(operands, found):
                    return current
            elif is_own or current in self._moves or not self._values(current) - {pair.value}:
                pending += inputs.get(current, ())
        return ""

    def _values(self, name: str) -> set[int]:
        origin = self._origins.get(name)
        return set() if origin is None else set(origin.values)

    def _choices(self, name: str, values: Array) -> Iterator[Pair]:
        """The pairs that may be, the likelier one first."""
        direct = self._direct(name, values.shape, lambda array: _apart(values, array))
        if name in self._strict:
            yield from () if direct is None else (replace(direct, certain=True),)
            return
        moved = self._moved(name, values) if name in self._moves else None
        if direct is not None and direct.exact is not None and np.array_equal(direct.stored, values):
            yield direct
        yield from (row for row in (moved, direct) if row is not None)

    def _is_alike(self, pair: Pair, values: Array) -> bool:
        value = self._reference.facts.values[pair.value]
        if pair.stored.dtype != values.dtype:
            return False
        rows = (pair.of(row) for row in (values, pair.stored))
        ours, theirs = (real_values(row, value.scale, value.zero_point) for row in rows)
        found = distance_from(ours, theirs, value.scale)
        return found.largest_error < MOST_STEPS * value.scale or found.sqnr_db >= self._least_db

    def _direct(self, name: str, shape: Axes, apart: Callable[[Array], float]) -> Pair | None:
        """The value of the node of the tensor `name`, and the order of its axes, that is the least `apart` in the
        tensor's `shape`; None when there is none of that size."""
        origin = self._origins.get(name)
        best: tuple[float, int, Axes] | None = None
        for index in () if origin is None else origin.values:
            stored = self._reference.load("quantised", index)
            for axes in arrangements(stored.shape, shape):
                if name in self._strict and not is_usual(axes, stored.shape):
                    continue
                far = apart(stored.transpose(axes).reshape(shape))
                if best is None or far < best[0]:
                    best = far, index, axes
        if origin is None or best is None or math.isinf(best[0]):
            return None
        _, index, axes = best
        found = self._arranged(index, axes, shape)
        keeps_form = is_form_kept(self._reference.load("quantised", index).shape, shape)
        return replace(found, certain=origin.certain and keeps_form and name not in self._moves)

    def _arranged(self, index: int, axes: Axes, shape: Axes) -> Pair:
        def arranged(kind: str) -> Array:
            return self._reference.load(kind, index).transpose(axes).reshape(shape)

        has_float = self._reference.facts.values[index].has_float
        return Pair(index, arranged("quantised"), arranged("float") if has_float else None, axes)

    def _moved(self, name: str, values: Array | None) -> Pair | None:
        """The values of a moved tensor's sources, moved likewise; None where one of them is not known. The tensor's
        own `values` help with sources that are not seen."""
        moved = self._moves.of(name)
        places, first = moved.places, 0
        pairs: list[Pair] = []
        for source in moved.sources:
            pair = self._source(source, values, places - first)
            if pair is None:
                return None
            pairs.append(pair)
            first += self._moves.size(source)
        facts = self._reference.facts.values
        forms = {(facts[row.value].scale, facts[row.value].zero_point, row.stored.dtype) for row in pairs}
        if len(forms) != 1:
            return None

        def gathered(parts: Sequence[Array]) -> Array:
            taken: Array = np.concatenate([part.ravel() for part in parts])[places]
            return taken

        exact = [row.exact for row in pairs if row.exact is not None]
        known = places != CONSTANT_PLACE
        return Pair(
            value=pairs[0].value,
            stored=gathered([row.stored for row in pairs]),
            exact=gathered(exact) if len(exact) == len(pairs) else None,
            sources=moved.sources,
            known=None if known.all() else known,
            certain=all(row.certain for row in pairs),
        )

    def _source(self, name: str, values: Array | None, places: Array) -> Pair | None:
        """The pair of a tensor of which some elements are moved: those of `values` are from its `places`."""
        if name in self._found:
            return self._found[name]
        if name in self._inputs:
            return self._input(self._inputs[name])
        if values is None:
            return None
        inside = (places >= 0) & (places < self._moves.size(name))
        own, taken, shape = values[inside], places[inside], self._moves.shapes[name]
        return self._direct(name, shape, lambda array: _apart(own, array.ravel()[taken]))

    def _input(self, given: Array) -> Pair | None:
        """The value of the model that an input of the delegate equals."""
        for index in range(len(self._reference.facts.values)):
            stored = self._reference.load("quantised", index)
            if stored.size != given.size or stored.dtype != given.dtype:
                continue
            for axes in arrangements(stored.shape, given.shape):
                if np.array_equal(stored.transpose(axes).reshape(given.shape), given):
                    return replace(self._arranged(index, axes, given.shape), certain=True)
        return None


def _holds_one_of(operands: Sequence[Array], moved: Pair) -> bool:
    """Whether a moved tensor has the elements of one of `operands`, in their order or with channels last. One that
    was padded is not judged."""
    return moved.known is not None or any(
        np.array_equal(order.ravel(), moved.stored.ravel())
        for operand in operands
        for order in (operand, np.moveaxis(operand, 1, -1) if operand.ndim > 2 else operand)
    )


def _apart(values: Array, stored: Array) -> float:
    """The squared distance; infinite for another type."""
    if values.dtype != stored.dtype:
        return math.inf
    difference = values.ravel().astype(np.float32) - stored.ravel().astype(np.float32)
    return float(difference @ difference)


def arrangements(shape: Sequence[int], wanted: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Orders of the axes of `shape` that give it `wanted`, axes of one element left out of account; the order as it
    is first, then with channels last. Where none does and the number of elements is the same, these two."""
    if prod(shape) != prod(wanted):
        return
    rank = len(shape)
    plain = tuple(range(rank))
    last = (*plain[:1], *plain[2:], 1) if rank >= 3 else plain
    squeezed = [size for size in wanted if size != 1]
    orders = itertools.permutations(plain) if rank <= _MOST_AXES else iter((plain, last))
    fitting = [order for order in orders if [shape[axis] for axis in order if shape[axis] != 1] == squeezed]
    unique: dict[tuple[int, ...], tuple[int, ...]] = {}
    for order in sorted(fitting, key=lambda row: (row != plain, row != last, row)):
        unique.setdefault(tuple(axis for axis in order if shape[axis] != 1), order)
    yield from unique.values() if unique else dict.fromkeys((plain, last))


def is_usual(order: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether an order of the axes of `shape` is that as it is, or that with channels last."""
    plain = tuple(range(len(shape)))
    orders = (order, plain, (*plain[:1], *plain[2:], *plain[1:2]))
    ours, *usual = ([axis for axis in row if shape[axis] != 1] for row in orders)
    return ours in usual


def is_form_kept(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether one of :func:`arrangements` is sure to be the tensor's: its axes are those of `shape` in some order, or
    leading ones are joined and the last one stays."""
    sizes, others = ([size for size in row if size != 1] for row in (shape, wanted))
    return sorted(sizes) == sorted(others) or (sizes[-1:] == others[-1:] and prod(sizes) == prod(others))


def value_range(values: Array) -> Range:
    """The range of a tensor of whole numbers as stored."""
    limits = np.iinfo(values.dtype)
    least, largest = int(values.min()), int(values.max())
    return Range(
        least=least,
        largest=largest,
        low_share=np.count_nonzero(values == limits.min) / values.size,
        high_share=np.count_nonzero(values == limits.max) / values.size,
        used_share=(largest - least + 1) / (int(limits.max) - int(limits.min) + 1),
        distinct=int(np.unique(values).size),
    )


@dataclass(frozen=True)
class Distance:
    """How far a tensor is from a reference. `sqnr_db` is infinite for equal ones, and NaN where it says nothing.

    `even_db` is that of a reference whose rounding errors are evenly spread over a step: more cannot be relied on.
    """

    elements: int
    differing: int
    sqnr_db: float
    cosine: float
    largest_error: float
    mean_error: float
    even_db: float = math.inf

    @property
    def shown_db(self) -> float:
        return round(self.sqnr_db, 1)


def distance_from(values: Array, reference: Array, step: float) -> Distance:
    compared = Comparison(step)
    compared.add(0, reference, values)
    error = values.astype(np.float64) - reference.astype(np.float64)
    power = float(np.mean(np.square(reference, dtype=np.float64)))
    return Distance(
        elements=compared.elements,
        differing=compared.elements - compared.equal,
        sqnr_db=compared.sqnr_db,
        cosine=compared.cosine,
        largest_error=compared.max_abs_error,
        mean_error=float(np.mean(error)),
        even_db=10 * math.log10(power / (step * step / 12)) if power and step else math.inf,
    )


@dataclass(frozen=True)
class Own:
    """What one tensor's quantisation costs by itself: the SQNR in dB when the float model's values are rounded to its
    steps, and when they are clipped to its range. Infinite where that costs nothing."""

    rounding_db: float
    clipping_db: float


def own_quantisation_loss(values: Array, scale: float, zero_point: int, dtype: str) -> Own | None:
    """Of the float model's `values`; None when they are zero everywhere or not finite."""
    exact = values.astype(np.float64)
    power = float(np.mean(np.square(exact)))
    if not power or not math.isfinite(power):
        return None
    limits = np.iinfo(dtype)
    steps = exact / scale + zero_point
    inside = np.clip(steps, limits.min, limits.max)
    errors = (np.rint(inside) - inside, steps - inside)  # of rounding and of clipping
    noises = (float(np.mean(np.square(row * scale))) for row in errors)
    return Own(*(10 * math.log10(power / noise) if noise else math.inf for noise in noises))


def real_values(stored: Array, scale: float, zero_point: int) -> Array:
    result: Array = (stored.astype(np.float64) - zero_point) * scale
    return result
