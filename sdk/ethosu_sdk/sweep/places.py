"""Where things lie in the folder of a sweep: a folder for each task, named by the beginning of its key."""

from __future__ import annotations

from pathlib import Path

LOWERED, COMPILED, CELLS = "lowered", "compiled", "cells"
_CHARACTERS = 12


READS_NAME = ".reads.json"  # beside a compilation: the files of its lowering, which no manifest lists


def short(key: str) -> str:
    """The short name of a task."""
    return key[:_CHARACTERS]


def lowered(store: Path, key: str) -> Path:
    """The folder of a lowering."""
    return store / LOWERED / short(key)


def compiled(store: Path, key: str) -> Path:
    """The folder of a compilation."""
    return store / COMPILED / short(key)


def cell(store: Path, key: str) -> Path:
    """The folder of a cell."""
    return store / CELLS / short(key)
