"""Figures for the difference between one output of a stage and of the stage before it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ethosu_sdk.aot.facts.chain import LinkedOutput
from ethosu_sdk.aot.graph.arrays import Array


def figures(index: int, name: str, executed: Array, reference: Array) -> LinkedOutput:
    """The figures of one output from arrays of one shape."""
    same = int(equal(executed, reference).sum())
    if reference.dtype.kind != "f":
        return LinkedOutput(index, name, reference.size, same, None, None)
    e, r = executed.astype(np.float64), reference.astype(np.float64)
    finite = np.isfinite(e) & np.isfinite(r)
    error, signal = (e - r)[finite], r[finite]
    noise, power = float(error @ error), float(signal @ signal)
    ratio = 10.0 * math.log10(power / noise) if noise and power else None
    return LinkedOutput(index, name, reference.size, same, float(np.abs(error).max(initial=0.0)), ratio)


def equal(one: Array, other: Array) -> Any:
    """Which elements are equal; NaN is equal to NaN."""
    same = one == other
    if other.dtype.kind == "f":
        same |= np.isnan(one) & np.isnan(other)
    return same
