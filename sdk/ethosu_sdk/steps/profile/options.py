"""The options of `profile` alone. The module is imported for every `--help`: it must stay light."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ProfileOptions:
    """The NPU's clock (None: that of the system configuration), and how many rows the terminal shows at most.

    With `split`, every NPU operation is run as a job of its own too, and its counters are read.
    """

    clock_mhz: float | None = None
    rows: int | None = None
    split: bool = False
