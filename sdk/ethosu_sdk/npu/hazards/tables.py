"""Finds look-up tables that are missing when an operation needs them, without checking for other hazards."""

from __future__ import annotations

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.hazards import checker
from ethosu_sdk.npu.hazards.accesses import has_small_memory
from ethosu_sdk.npu.hazards.report import Hazard, HazardKind

_KINDS = (HazardKind.LUT_BEYOND_MEMORY, HazardKind.LUT_OVERWRITTEN, HazardKind.LUT_NOT_LOADED)


def lost(stream: bytes, config: NpuConfig) -> tuple[Hazard, ...]:
    """The hazards of a command stream that are about look-up tables, in its order.

    Only Ethos-U55-32 and -64, which keep tables and accumulators in one place, are looked at: for others, no such
    stream is known, and looking takes time. Raises what :func:`ethosu_sdk.npu.hazards.checker.check` does.
    """
    if not has_small_memory(config):
        return ()
    return tuple(hazard for hazard in checker.check(stream, config) if hazard.kind in _KINDS)
