"""From P-Net's maps to boxes: what MTCNN does after its first network (Zhang et al., 2016), on one scale."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_STRIDE, _WINDOW = 2, 12  # P-Net's window in pixels of its input, and how far it moves
_THRESHOLD = 0.6  # facenet-pytorch's default for the first stage
_OVERLAP = 0.5


@dataclass(frozen=True)
class Proposal:
    """A box (left, top, right, bottom) in pixels of the photograph, and the probability of a face in it."""

    box: tuple[float, ...]
    score: float


def iou(one: Sequence[float], two: Sequence[float]) -> float:
    """Intersection over union of two boxes."""
    width = max(0.0, min(one[2], two[2]) - max(one[0], two[0]))
    height = max(0.0, min(one[3], two[3]) - max(one[1], two[1]))
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, two))
    return width * height / (areas - width * height)


def cells(corrections: Array, probabilities: Array, scale: float) -> dict[tuple[int, int], Proposal]:
    """Every place (row, column) of P-Net's maps, float [4, h, w] and [2, h, w], that shows a face. `scale` is that
    of P-Net's input to the photograph."""
    found = {}
    for row, column in np.argwhere(probabilities[1] >= _THRESHOLD).tolist():
        left, top = _STRIDE * column / scale, _STRIDE * row / scale
        side = _WINDOW / scale
        window = np.array([left, top, left + side, top + side])
        box = window + side * corrections[:, row, column]
        found[row, column] = Proposal(tuple(box.tolist()), float(probabilities[1, row, column]))
    return found


def proposals(corrections: Array, probabilities: Array, scale: float) -> list[Proposal]:
    """The faces, best first: boxes that overlap the best one are merged with it, weighted by their scores.

    MTCNN keeps the best box alone. In int8 the scores of neighbours are often equal, and which is the best is then
    chance; their mean is not.
    """
    left = sorted(cells(corrections, probabilities, scale).values(), key=lambda item: -item.score)
    merged = []
    while left:
        group = [item for item in left if iou(item.box, left[0].box) > _OVERLAP]
        box = np.average([item.box for item in group], axis=0, weights=[item.score for item in group])
        merged.append(Proposal(tuple(box.tolist()), group[0].score))
        left = [item for item in left if item not in group]
    return merged
