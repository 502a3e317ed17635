"""The stages of a compilation: which is running, and how long each took."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

Progress = Callable[[str], None]


class StageClock:
    """Names the running stage to `progress` and adds up the seconds of each."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.timings_s: dict[str, float] = {}

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time the block as the stage `name` of STAGES, or as more of it: a stage is announced once."""
        if name not in self.timings_s:
            self._progress(name)
        start = time.monotonic()
        try:
            yield
        finally:
            self.timings_s[name] = self.timings_s.get(name, 0.0) + round(time.monotonic() - start, 3)
