"""Words for the system that modelled cycles are for."""

from __future__ import annotations

from ethosu_sdk.records.common import Priced


def line(priced: Priced) -> str:
    """The system, and that it is another than the program's where it is."""
    system = priced.system
    return priced.caveat or f"for {system.name} with {system.memory_mode} ({system.source})"
