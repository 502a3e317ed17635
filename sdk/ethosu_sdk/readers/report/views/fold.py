"""NPU operations that are one operator of the model: slices of it, and the DMA transfers of its weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ethosu_sdk.records.profile import Operation
from ethosu_sdk.results import source_place
from ethosu_sdk.tables import figures, times

_DMA = "dma"
# Operators that only move data, often for the one behind them: their module is not what they compute.
_LAYOUT = ("TRANSPOSE", "RESHAPE", "CONCAT", "SLICE", "PAD", "REVERSE", "TILE", "IDENTITY")


def operators(rows: Iterable[Operation]) -> list[list[Operation]]:
    """The operations by operator, in the order in which each begins."""
    found: dict[tuple[Any, ...], list[Operation]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return list(found.values())


def key(row: Operation) -> tuple[Any, ...]:
    """What operations of one operator have in common: the TOSA operator, or else what Vela scheduled."""
    if row.runs_on == "NPU" and row.tosa is not None:
        return row.instruction, row.delegate, "tosa", row.tosa.index
    if row.scheduled is not None:
        return row.instruction, row.delegate, "vela", row.scheduled
    return "row", row.index


def main(rows: Sequence[Operation]) -> Operation:
    """The first that is no DMA transfer."""
    return next((row for row in rows if row.kind != _DMA), rows[0])


def name(row: Operation) -> str:
    """What people call its operator: as TOSA or Vela has it, behind the type of the model's module where that says
    more (``Mish: TANH``); of a kernel its name without library and overload."""
    if row.runs_on == "CPU":
        return times.short(row.name)
    compiled = row.operator or (row.vela.operator if row.vela is not None else "") or row.name
    kind = row.source.module_type if row.source is not None and row.source.module else None
    if (
        not kind
        or compiled in _LAYOUT
        or _letters(kind) in _letters(compiled)
        or _letters(compiled) in _letters(kind)
    ):
        return compiled
    return f"{kind}: {compiled}"


def _letters(text: str) -> str:
    return text.replace("_", "").lower()


def module(row: Operation | None) -> str:
    """The path of its module; empty where that is not known."""
    return source_place.module(row.source) if row is not None else ""


def tensor(row: Operation) -> str:
    """The tensor that its operator writes; empty where that is not known."""
    return (row.tosa.tensor or "") if row.tosa is not None else ""


def shapes(rows: Sequence[Operation]) -> str:
    """IFM and OFM where all but DMA transfers have the same."""
    found = {
        " → ".join(figures.shape(sizes) for sizes in (row.ifm, row.ofm) if sizes)
        for row in rows
        if row.kind != _DMA or len(rows) == 1
    }
    return found.pop() if len(found) == 1 else ""


def counted(rows: Sequence[Operation]) -> str:
    """Of what kinds several operations are, such as ``31 CONV, 1 DMA``."""
    names: dict[str, int] = {}
    for row in rows:
        names[row.name] = names.get(row.name, 0) + 1
    return ", ".join(f"{count:,} {text}" for text, count in names.items()) if len(rows) > 1 else ""
