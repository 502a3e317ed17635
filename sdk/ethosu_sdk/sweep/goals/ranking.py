"""Which of several points are better: the Pareto set, and the first by goals in their order."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Points = Sequence[
    Sequence[float]
]  # a row for each cell, a column for each goal; less is better in all of them


def pareto(points: Points) -> list[bool]:
    """Of each point, whether no other is at least as good in every column and better in one."""
    if not points:
        return []
    rows, owner = np.unique(np.asarray(points, dtype=np.float64), axis=0, return_inverse=True)
    front = np.empty_like(rows)
    count = 0
    is_free = np.zeros(len(rows), dtype=bool)
    for index, row in enumerate(rows):  # in rising order: no later one dominates an earlier one
        if not np.any(np.all(front[:count] <= row, axis=1)):
            front[count] = row
            count += 1
            is_free[index] = True
    return [bool(is_free[index]) for index in owner.reshape(-1)]


def first(points: Points, tolerances_percent: Sequence[float]) -> list[int]:
    """The places of the best points: all of them are equal.

    Goal by goal, in their order, those of the Pareto set stay that are within the goal's tolerance of the best one
    left. Of those, the least in the first column win; of those, the least in the second; and so on.
    """
    left = [index for index, free in enumerate(pareto(points)) if free]
    for column, percent in enumerate(tolerances_percent):
        best = min((points[index][column] for index in left), default=0.0)
        most = best + abs(best) * percent / 100 if math.isfinite(best) else best
        left = [index for index in left if points[index][column] <= most]
    best_row = min((tuple(points[index]) for index in left), default=())
    return [index for index in left if tuple(points[index]) == best_row]
