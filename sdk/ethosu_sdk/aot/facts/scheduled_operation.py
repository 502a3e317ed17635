"""One operation that Vela scheduled, as the facts of a compilation have it too."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ScheduledOperation:
    """An operation of the command stream: Vela's operator and name, and the offsets of its NPU operations, in bytes
    from behind the header of the driver actions. `cycles`, `macs` and `staging_bytes` (what is alive in the arena
    meanwhile) are Vela's estimates (None where it gives none). `tosa_index` is that of the TOSA operator behind it,
    None when Vela added it.
    """

    operator: str
    name: str
    offsets: tuple[int, ...]
    cycles: int | None
    macs: int | None
    staging_bytes: int | None
    tosa_index: int | None
