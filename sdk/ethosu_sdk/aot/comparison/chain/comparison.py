"""Compares the outputs of one stage with those of the stage before it, over several samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ethosu_sdk import plain_text
from ethosu_sdk.aot.comparison.chain.figures import equal, figures
from ethosu_sdk.aot.comparison.distance import distance, moved
from ethosu_sdk.aot.facts.chain import EQUAL, ROUNDING, LinkedOutput
from ethosu_sdk.aot.graph import tensors
from ethosu_sdk.aot.graph.arrays import Array

Tensors = tuple[Any, ...]
Rows = Sequence[Tensors]  # for each sample its outputs

_CLOSE = 2.0**-14  # of the largest value: what the order of float32 sums changes in a deep network


@dataclass(frozen=True)
class Difference:
    """The first output that is not what it should be, in words, and the sample where it is seen."""

    output: int
    sample: int
    text: str


def form(reference: Rows, candidate: Rows) -> Difference | None:
    """A difference in number, shapes or types of outputs."""
    for number, (wanted, given) in enumerate(zip(reference, candidate, strict=True)):
        if len(wanted) != len(given):
            return Difference(0, number, f"it has {len(given)} outputs, but the model has {len(wanted)}")
        for index, (one, other) in enumerate(zip(wanted, given, strict=True)):
            if one.shape != other.shape or not _holds(other.dtype, one.dtype):
                return Difference(
                    index, number, f"output {index} is {_type(other)}, the model's is {_type(one)}"
                )
    return None


def _holds(given: Any, wanted: Any) -> bool:
    """Whether values of a type may come as another one: Arm's passes make int32 of int64. The values are compared."""
    import torch

    return given == wanted or (given, wanted) == (torch.int32, torch.int64)


@dataclass(frozen=True)
class Trials:
    """An execution, and others of the same graph in which each result is moved by a few units in the last place."""

    base: Rows
    moved: Sequence[Rows]


def within_rounding(
    reference: Rows, candidate: Rows, trials: Callable[[], Trials]
) -> tuple[str, Difference | None]:
    """Whether outputs of one form are ``equal``, or differ by what floating-point arithmetic leaves open.

    `trials` are made only when a difference is larger than networks usually show.
    """
    verdict, far = EQUAL, None
    for number, (wanted, given) in enumerate(zip(reference, candidate, strict=True)):
        for index, (one, other) in enumerate(zip(wanted, given, strict=True)):
            e, r = tensors.as_numpy(other), tensors.as_numpy(one)
            if _identical(e, r):
                continue
            verdict = ROUNDING
            if far is None and not is_close(e, r):
                far = (index, number)
    if far is None:
        return verdict, None
    return verdict, _unexplained(reference, candidate, trials())


def _unexplained(reference: Rows, candidate: Rows, trials: Trials) -> Difference | None:
    steady = {index for index in range(len(reference[0])) if _is_steady(trials, index)}
    for number, (wanted, given) in enumerate(zip(reference, candidate, strict=True)):
        for index, (one, other) in enumerate(zip(wanted, given, strict=True)):
            wanted_array, base = tensors.as_numpy(one), tensors.as_numpy(trials.base[number][index])
            lost = int(np.count_nonzero(np.isfinite(wanted_array) & ~np.isfinite(base)))
            if lost:  # what the graph itself makes infinite has no rounding to be compared with
                return Difference(
                    index,
                    number,
                    f"output {index}: {plain_text.counted(lost, 'element')} not finite, but finite in the model",
                )
            around = [
                moved(wanted_array, base, tensors.as_numpy(rows[number][index])) for rows in trials.moved
            ]
            exact = index in steady and wanted_array.dtype.kind != "f"
            found = distance(tensors.as_numpy(other), wanted_array, around, None, exact=exact)
            if not found.explained:
                return Difference(index, number, f"output {index}: {found.detail}")
    return None


def _is_steady(trials: Trials, index: int) -> bool:
    """Whether no rounding changes an output in any sample."""
    return all(
        _identical(tensors.as_numpy(one[index]), tensors.as_numpy(other[index]))
        for rows in trials.moved
        for one, other in zip(trials.base, rows, strict=True)
    )


def outputs(reference: Rows, candidate: Rows, names: Sequence[str]) -> tuple[LinkedOutput, ...]:
    """The figures of each output over all samples."""
    return tuple(
        figures(
            index,
            name,
            np.stack([tensors.as_numpy(row[index]) for row in candidate]),
            np.stack([tensors.as_numpy(row[index]) for row in reference]),
        )
        for index, name in enumerate(names)
    )


def _identical(one: Array, other: Array) -> bool:
    return bool(np.all(equal(one, other)))


def is_close(one: Array, other: Array) -> bool:
    """Whether `one` is `other` but for the order of sums; integers must be equal."""
    if _identical(one, other):
        return True
    if other.dtype.kind != "f":
        return False
    finite = np.isfinite(other)
    if not np.array_equal(finite, np.isfinite(one)) or not np.all(equal(one, other)[~finite]):
        return False
    e, r = one[finite].astype(np.float64), other[finite].astype(np.float64)
    return bool(np.all(np.abs(e - r) <= _CLOSE * np.abs(r).max(initial=0.0)))


def _type(tensor: Any) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
