"""What makes a compilation faster and leaves its every byte as it is."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator

from ethosu_sdk.aot import lazy_code, replay

SWITCH = "ETHOSU_SDK_ACCELERATE"  # "0" leaves all of it out: for the test that compares, and to find faults
_COLLECT_AFTER = 100_000  # objects; Python's own 700 spend a tenth of the time in walks over torch's graphs


@contextlib.contextmanager
def accelerated() -> Iterator[None]:
    """Run the block faster, unless the environment forbids it."""
    if os.environ.get(SWITCH) == "0":
        yield
        return
    with contextlib.ExitStack() as stack:
        stack.enter_context(_rare_collections())
        stack.enter_context(lazy_code.written_on_demand())
        stack.enter_context(replay.short_cuts())
        stack.enter_context(replay.remembered())
        yield


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    """Collect garbage less often, and leave out what was imported: those objects live as long as the process."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
