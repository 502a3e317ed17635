"""Conversions between floating-point and quantised values, which the CPU makes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ethosu_sdk.plain_text import counted
from ethosu_sdk.readers.advise.advice import CPU_OPERATORS, IO_BYTES, Advice, change, figure
from ethosu_sdk.readers.advise.facts import Facts
from ethosu_sdk.readers.advise.rules import cpu
from ethosu_sdk.records.common import Tensor
from ethosu_sdk.records.profile import Operation

_FLOAT_BYTES = 4


def quantised_io(facts: Facts) -> list[Advice]:
    """quantize_per_tensor behind each float input of an int8 program, dequantize_per_tensor before each output."""
    compiled = facts.compiled
    if compiled.options.io != "float" or compiled.options.quantize != "int8":
        return []
    borders = [row for row in (*compiled.inputs, *compiled.outputs) if _is_float(row)]
    rows = _conversions(facts, compiled.inputs, cpu.QUANTISE)
    rows += _conversions(facts, compiled.outputs, cpu.DEQUANTISE)
    if not borders or len(rows) != len(borders):
        return []
    calls = sum(row.calls for row in facts.cpu_rows)
    size = sum(_FLOAT_BYTES * math.prod(row.shape) for row in borders)
    return [
        Advice(
            finding=f"{counted(len(rows), 'conversion')} between float and int8 on the CPU in every inference",
            evidence=(figure("float inputs and outputs", len(borders), "tensors"),),
            command=facts.compiled_again(io="int8"),
            gains=(
                *cpu.without(facts, rows),
                change(CPU_OPERATORS, calls, calls - len(rows), "these conversions fall away"),
                change(IO_BYTES, size, size // _FLOAT_BYTES, "one byte for a value instead of four"),
            ),
            limits=(
                "the application quantises inputs, q = clamp(round(x / scale) + zero_point, -128, 127), and reads "
                "outputs as (q - zero_point) * scale: constant methods (input0_scale, …) have the figures",
                "a sensor or an image that has integers already is where this saves work; elsewhere it moves it",
            ),
        )
    ]


def _conversions(facts: Facts, tensors: Sequence[Tensor], name: str) -> list[Operation]:
    """The CPU's rows that convert `tensors`, each row once."""
    rows = [row for row in facts.cpu_rows if row.name.endswith(name)]
    if name == cpu.DEQUANTISE:
        rows.reverse()  # outputs are converted last, inputs first
    found = []
    for tensor in filter(_is_float, tensors):
        for row in rows:
            if row.ofm == tensor.shape:
                found.append(row)
                rows.remove(row)
                break
    return found


def _is_float(row: Tensor) -> bool:
    return row.dtype == "float32"
