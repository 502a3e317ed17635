"""What rules say of calls on the CPU that would not be there any more."""

from __future__ import annotations

from collections.abc import Sequence

from ethosu_sdk.readers.advise.advice import CPU_CYCLES, CPU_INSTRUCTIONS, change
from ethosu_sdk.readers.advise.facts import Facts
from ethosu_sdk.records.advice import Change
from ethosu_sdk.records.profile import Operation

QUANTISE, DEQUANTISE = "::quantize_per_tensor.out", "::dequantize_per_tensor.out"

_WRITE_BACK = "aten::copy_"
_HOW = "the counted instructions of these calls fall away"
_HOW_CYCLES = "the modelled cycles of these calls fall away"


def is_conversion(row: Operation) -> bool:
    """Whether a row of the profile converts between floating-point and quantised values."""
    return row.name.endswith((QUANTISE, DEQUANTISE))


def is_write_back(row: Operation) -> bool:
    """Whether a row of the profile writes a new value into a buffer that the program keeps: ExecuTorch ends a program
    with these calls."""
    return row.name == _WRITE_BACK


def without(facts: Facts, rows: Sequence[Operation]) -> list[Change]:
    """The processor's instructions and cycles without the calls of `rows`; nothing where they are not known."""
    whole = facts.cpu_instructions
    if whole is None:
        return _cycles_without(facts, rows)
    own = sum(int(row.instructions.value) for row in rows if row.instructions is not None)
    return [
        change(CPU_INSTRUCTIONS, whole, whole - own, _HOW, "counted"),
        *_cycles_without(facts, rows),
    ]


def _cycles_without(facts: Facts, rows: Sequence[Operation]) -> list[Change]:
    whole = facts.profile.totals.cpu.cycles
    own = sum(int(row.cpu_cycles.value) for row in rows if row.cpu_cycles is not None)
    if whole is None or not own:
        return []
    return [change(CPU_CYCLES, whole.value, whole.value - own, _HOW_CYCLES, "modelled")]
