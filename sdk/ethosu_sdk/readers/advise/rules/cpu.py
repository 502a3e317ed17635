"""What rules say of calls on the CPU that would not be there any more."""

from __future__ import annotations

from collections.abc import Sequence

from ethosu_sdk.readers.advise.advice import CPU_INSTRUCTIONS, change
from ethosu_sdk.readers.advise.facts import Facts
from ethosu_sdk.records.advice import Change
from ethosu_sdk.records.profile import Operation

QUANTISE, DEQUANTISE = "::quantize_per_tensor.out", "::dequantize_per_tensor.out"

_HOW = "the counted instructions of these calls fall away"


def is_conversion(row: Operation) -> bool:
    """Whether a row of the profile converts between floating-point and quantised values."""
    return row.name.endswith((QUANTISE, DEQUANTISE))


def without(facts: Facts, rows: Sequence[Operation]) -> list[Change]:
    """The processor's instructions without the calls of `rows`; nothing where they were not counted."""
    whole = facts.cpu_instructions
    if whole is None:
        return []
    own = sum(int(row.instructions.value) for row in rows if row.instructions is not None)
    return [change(CPU_INSTRUCTIONS, whole, whole - own, _HOW, "counted")]
