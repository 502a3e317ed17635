"""The board's memory, and what went through the NPU's ports."""

from __future__ import annotations

from typing import Any

from ethosu_sdk.records import Record


def of(run: Record) -> list[dict[str, Any]]:
    """Regions, then pools, with the share that is used."""
    memory = run.get("memory", {})
    return [
        {
            "kind": kind,
            "name": row["name"],
            "used": row["used_bytes"],
            "size": row["size_bytes"],
            "share": min(1.0, row["used_bytes"] / row["size_bytes"]) if row["size_bytes"] else 0.0,
        }
        for kind, rows in (("region", memory.get("regions", ())), ("pool", memory.get("pools", ())))
        for row in rows
    ]


def traffic(profile: Record) -> list[dict[str, Any]]:
    """Each memory of the NPU: bytes of an inference, and what of its bandwidth that takes."""
    found = []
    for row in profile.get("memories", ()):
        peak, average = row.get("peak_bytes_per_s"), row.get("average_bytes_per_s")
        found.append(
            {
                "name": row["memory"],
                "port": row["port"],
                "read": row["read_bytes"],
                "written": row["write_bytes"],
                "average": "" if average is None else f"{average / 1e9:,.2f} GB/s",
                "peak": "" if peak is None else f"{peak / 1e9:,.2f} GB/s",
                "share": min(1.0, average / peak) if average and peak else 0.0,
            }
        )
    return found
