"""The samples of a chain of comparisons: example inputs, calibration samples, and shuffled copies if these are too
few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Tensors = tuple[Any, ...]

COUNT = 3
STEPS = 16  # of a model with a state
EXAMPLE, CALIBRATION, SHUFFLED = "example", "calibration", "shuffled"
_SEED = 20


@dataclass(frozen=True)
class Sample:
    """Inputs, where they come from, and whether observers saw them."""

    inputs: Tensors
    source: str
    calibrated: bool


def choose(inputs: Tensors, calibration: Sequence[Tensors]) -> list[Sample]:
    """`COUNT` samples that differ, the example inputs first; fewer only when the inputs have no two orders."""
    found = [Sample(inputs, EXAMPLE, any(_equal(inputs, row) for row in calibration))]
    half = len(calibration) // 2
    for row in [*calibration[:1], *calibration[half:], *calibration[1:half]]:
        if len(found) < COUNT and not any(_equal(row, known.inputs) for known in found):
            found.append(Sample(row, CALIBRATION, True))
    for number in range(COUNT - len(found)):
        row = _shuffled(inputs, number)
        if not any(_equal(row, known.inputs) for known in found):
            found.append(Sample(row, SHUFFLED, False))
    return found


def longer(samples: Sequence[Sample], calibration: Sequence[Tensors]) -> list[Sample]:
    """A sequence of `STEPS` for a model with a state: the calibration samples in their order behind the example, as a
    sequence that was calibrated. If these are too few, `samples` and what follows them: the calibration samples
    again and again, or without any the samples themselves."""
    if len(calibration) >= STEPS:
        first = 1 if _equal(samples[0].inputs, calibration[0]) else 0
        return [samples[0], *(Sample(row, CALIBRATION, True) for row in calibration[first:][: STEPS - 1])]
    found = list(samples)
    rows = [Sample(row, CALIBRATION, True) for row in calibration] or list(samples)
    while len(found) < STEPS:
        found.append(rows[(len(found) - len(samples)) % len(rows)])
    return found


def _equal(one: Tensors, other: Tensors) -> bool:
    import torch

    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def _shuffled(inputs: Tensors, number: int) -> Tensors:
    """Inputs with the elements of the example in another order, so that their range stays the same."""
    import torch

    generator = torch.Generator().manual_seed(_SEED + number)
    rows = []
    for item in inputs:
        if item.numel() == 1 and item.is_floating_point():
            rows.append(item * (0.75 - 0.5 * number))
            continue
        order = torch.randperm(item.numel(), generator=generator)
        shuffled = item.reshape(-1)[order].reshape(item.shape)
        rows.append(torch.empty_like(item).copy_(shuffled))
    return tuple(rows)
