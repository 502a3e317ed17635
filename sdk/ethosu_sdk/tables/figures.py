"""Figures of a profile's row, as its table and its CSV file show them."""

from __future__ import annotations

from collections.abc import Sequence

from ethosu_sdk.records import Record


def cycles(row: Record, source: str) -> int | None:
    """Cycles from `source`, the sum where a row stands for several operations; None where there are none."""
    found = [int(part["value"]) for part in row.get("cycles", ()) if part["source"] == source]
    return sum(found) if found else None


def moved_bytes(row: Record, direction: str) -> int:
    """Bytes that are read or written (`direction`) through the NPU's ports."""
    return sum(int(part["bytes"]) for part in row.get("traffic", ()) if part["direction"] == direction)


def shape(sizes: Sequence[int]) -> str:
    """Sizes as text, such as ``8x8x16``."""
    return "x".join(map(str, sizes))
