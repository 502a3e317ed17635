"""Figures as text."""

from __future__ import annotations

from collections.abc import Sequence


def shape(sizes: Sequence[int]) -> str:
    """Sizes as text, such as ``8x8x16``."""
    return "x".join(map(str, sizes))
