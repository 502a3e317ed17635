"""The search for the range of a quantised tensor, which torchao's histogram observers begin with.

torchao 0.18 reads a cumulated histogram one tensor element at a time: a fifth of the compilation of a recurrent
network. Here the bins are numbers, found by bisection; the ranges are the same bit for bit.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ethosu_sdk.aot.graph.patching import patched

_STEP = 1e-5  # of the histogram's sum, by which torchao narrows the range from one side or the other


def _range(observer: Any) -> tuple[int, int]:
    """The first and the last bin of the range with the least error, as torchao looks for it.

    The quantile limits are rounded to float32, as torch does where it compares a number with a tensor.
    """
    total = observer.histogram.sum().item()
    sums = observer.histogram.cumsum(dim=0).tolist()
    low, high, first, last, least = 0.0, 1.0, 0, observer.bins - 1, math.inf
    while low < high:
        next_low, next_high = low + _STEP, high - _STEP
        left = bisect_left(sums, float(np.float32(next_low * total)), first, last)
        right = bisect_right(sums, float(np.float32(next_high * total)), first + 1, last + 1) - 1
        if left - first > last - right:
            low, bins = next_low, (left, last)
        else:
            high, bins = next_high, (first, right)
        if bins == (first, last):
            continue
        error = observer._compute_quantization_error(*bins)
        if error > least:
            break
        least = error
        first, last = bins
    return first, last


def _quick(search: Callable[[Any], tuple[Any, Any]]) -> Callable[[Any], tuple[Any, Any]]:
    """torchao's `search` by other means; by its own for a histogram that is not of finite float32 counts."""

    def quick_search(observer: Any) -> tuple[Any, Any]:
        import torch

        counts = observer.histogram
        plain = counts.dtype == torch.float32 and len(counts) == observer.bins
        if not (plain and bool((counts >= 0).all()) and math.isfinite(counts.sum().item())):
            return search(observer)
        first, last = _range(observer)
        width = (observer.max_val - observer.min_val) / observer.bins
        return observer.min_val + width * first, observer.min_val + width * (last + 1)

    return quick_search


def by_bisection() -> AbstractContextManager[None]:
    """While the block runs, histogram observers find their ranges quickly."""
    from torchao.quantization.pt2e.observer import HistogramObserver

    search = HistogramObserver._non_linear_param_search
    return patched(HistogramObserver, _non_linear_param_search=_quick(search))
