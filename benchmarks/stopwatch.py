"""The time that something takes on a shared machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def median_s(action: Callable[[], object], repeats: int = 5) -> float:
    """The median wall time of `action`."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
