"""The board's memory, and what went through the NPU's ports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ethosu_sdk.records import profile, run
from ethosu_sdk.records.build import Build, Pool
from ethosu_sdk.records.common import Use
from ethosu_sdk.records.sequences.sequence import RunState
from ethosu_sdk.tables import figures


def of(memory: run.Memory, built: Build | None) -> list[dict[str, Any]]:
    """Regions, then pools, with the share that is used: as the firmware counted it, else as `build` laid it out."""
    laid = () if built is None else built.memory.pools
    regions, counted = {row.name: row.region for row in laid}, {row.name for row in memory.pools}
    pools: list[Use | Pool] = [*memory.pools, *(row for row in laid if row.name not in counted)]
    return [
        *(_row(row, "region") for row in memory.regions),
        *(_row(row, f"pool in {regions[row.name]}" if row.name in regions else "pool") for row in pools),
    ]


def _row(row: Use | Pool, kind: str) -> dict[str, Any]:
    share = _share(row.used_bytes, row.size_bytes)
    return {"kind": kind, "name": row.name, "used": row.used_bytes, "size": row.size_bytes, **share}


def traffic(memories: Sequence[profile.Memory]) -> list[dict[str, Any]]:
    """Each memory of the NPU: bytes of an inference, and what of its bandwidth that takes."""
    found = []
    for row in memories:
        peak, average = row.peak_bytes_per_s, row.average_bytes_per_s
        found.append(
            {
                "name": row.memory,
                "port": row.port,
                "read": row.read_bytes,
                "written": row.write_bytes,
                "average": "" if average is None else f"{average / 1e9:,.2f} GB/s",
                "peak": "" if peak is None else f"{peak / 1e9:,.2f} GB/s",
                **_share(average or 0, peak or 0),
            }
        )
    return found


def state(kept: RunState | None) -> list[tuple[Any, ...]]:
    """Name, shape, type, bytes and memory of each tensor that goes from one inference to the next."""
    return [
        (row.name, figures.shape(row.shape), row.dtype, row.bytes, row.memory)
        for row in (kept.tensors if kept is not None else ())
    ]


def _share(part: float, whole: float) -> dict[str, Any]:
    share = min(1.0, part / whole) if whole else 0.0
    return {"share": share, "percent": figures.percent(share)}
