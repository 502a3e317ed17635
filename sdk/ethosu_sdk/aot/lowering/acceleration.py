"""Makes a compilation faster without changing a byte of its result."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
from collections.abc import Iterator

from ethosu_sdk.aot.lowering import lazy_code, operator_lookup, range_search, replay

SWITCH = "ETHOSU_SDK_ACCELERATE"  # "0" leaves all of it out: for the test that compares, and to find faults
_COLLECT_AFTER = 100_000  # objects; Python's own 700 spend a tenth of the time in walks over torch's graphs


def _wanted() -> bool:
    return os.environ.get(SWITCH) != "0"


@contextlib.contextmanager
def quick_imports() -> Iterator[None]:
    """Import ExecuTorch in the block in half the time, unless the environment forbids it: ExecuTorch reads a table
    of its operators with a YAML reader written in Python; this replaces it by the one in C."""
    slow, quick = (importlib.import_module(name) for name in ("ruamel.yaml", "yaml"))
    load = slow.YAML.load
    if hasattr(quick, "CSafeLoader") and _wanted():
        slow.YAML.load = lambda self, stream: quick.load(stream, Loader=quick.CSafeLoader)
    try:
        yield
    finally:
        slow.YAML.load = load


@contextlib.contextmanager
def accelerated() -> Iterator[None]:
    """Run the block faster, unless the environment forbids it."""
    if not _wanted():
        yield
        return
    with contextlib.ExitStack() as stack:
        gc.freeze()  # what was imported lives as long as the process
        stack.callback(gc.unfreeze)
        stack.enter_context(lazy_code.written_on_demand())
        stack.enter_context(replay.short_cuts())
        stack.enter_context(replay.remembered())
        stack.enter_context(range_search.by_bisection())
        stack.enter_context(operator_lookup.looked_up_once())
        yield


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage less often in the block, unless the environment forbids it."""
    before = gc.get_threshold()
    if _wanted():
        gc.set_threshold(_COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
