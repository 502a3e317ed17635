"""Conversions between floating-point and quantised values, which the CPU makes."""

from __future__ import annotations

import math

from ethosu_sdk.readers.advise.advice import CPU_OPERATORS, IO_BYTES, Advice, Change, Figure
from ethosu_sdk.readers.advise.facts import Facts
from ethosu_sdk.readers.advise.rules import cpu
from ethosu_sdk.records import Record

_FLOAT_BYTES = 4


def quantised_io(facts: Facts) -> list[Advice]:
    """quantize_per_tensor behind each float input of an int8 program, dequantize_per_tensor before each output."""
    options = facts.compiled["options"]
    if options["io"] != "float" or options.get("quantize") != "int8":
        return []
    borders = [row for row in (*facts.compiled["inputs"], *facts.compiled["outputs"]) if _is_float(row)]
    rows = _conversions(facts, facts.compiled["inputs"], cpu.QUANTISE)
    rows += _conversions(facts, facts.compiled["outputs"], cpu.DEQUANTISE)
    if not borders or len(rows) != len(borders):
        return []
    calls = sum(row["calls"] for row in facts.cpu_rows)
    size = sum(_FLOAT_BYTES * math.prod(row["shape"]) for row in borders)
    return [
        Advice(
            finding=f"{len(rows)} conversions between floating point and int8 run on the CPU in every inference",
            evidence=(Figure("float inputs and outputs", len(borders), "tensors"),),
            command=facts.compiled_again(io="int8"),
            gains=(
                *cpu.without(facts, rows),
                Change(CPU_OPERATORS, calls, calls - len(rows), "these conversions fall away"),
                Change(IO_BYTES, size, size // _FLOAT_BYTES, "one byte for a value instead of four"),
            ),
            limits=(
                "the application quantises inputs, q = clamp(round(x / scale) + zero_point, -128, 127), and reads "
                "outputs as (q - zero_point) * scale: constant methods (input0_scale, …) have the figures",
                "a sensor or an image that has integers already is where this saves work; elsewhere it moves it",
            ),
        )
    ]


def _conversions(facts: Facts, tensors: list[Record], name: str) -> list[Record]:
    """The CPU's rows that convert `tensors`, each row once."""
    rows = [row for row in facts.cpu_rows if row["name"].endswith(name)]
    if name == cpu.DEQUANTISE:
        rows.reverse()  # outputs are converted last, inputs first
    found = []
    for tensor in filter(_is_float, tensors):
        for row in rows:
            if row.get("shapes", {}).get("ofm") == tensor["shape"]:
                found.append(row)
                rows.remove(row)
                break
    return found


def _is_float(row: Record) -> bool:
    return bool(row["dtype"] == "float32")
