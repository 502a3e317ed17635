"""The figures of a program that was profiled, and the distance of its outputs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk import npz, pte
from ethosu_sdk.errors import SdkError
from ethosu_sdk.evidence.accuracy import Comparison
from ethosu_sdk.records.parts.time_line import headline
from ethosu_sdk.records.profile import Profile, cycles
from ethosu_sdk.results.trials import Distance, Measured
from ethosu_sdk.steps.run_facts import programs, room
from ethosu_sdk.steps.shared import systems

Array = npt.NDArray[Any]
_CONVERSIONS = ("::quantize_per_tensor.out", "::dequantize_per_tensor.out")
_ROUNDING = 2.0**-20


def measured(path: Path, profile: Profile) -> Measured:
    """The figures of the program at `path`, of which `profile` is."""
    program = pte.read(path)
    time = headline(profile)
    cpu = profile.totals.cpu.cycles
    own = systems.of_program(path, program)
    sram = 0 if own is None else programs.sram_bytes(program, own.system)
    is_in_sram = own is not None and own.system.constants.interface == 0
    calls: Counter[str] = Counter()
    for row in profile.operations:
        if row.runs_on == "CPU" and not row.name.endswith(_CONVERSIONS):
            calls[row.name] += row.calls
    return Measured(
        npu_cycles=cycles(profile.totals.npu.cycles, "modelled"),
        cpu_cycles=None if cpu is None else int(cpu.value),
        time_ms=None if time is None else time.total.duration_s * 1e3,
        sram_bytes=sram,
        flash_bytes=0 if is_in_sram else program.size,
        fits=not room.lacking(program, own),
        cpu_calls=dict(calls),
    )


def outputs(path: Path, file: Path) -> list[Array]:
    """The outputs in the `.npz` `file` of the program at `path`; quantised ones in the values that they stand for."""
    arrays = npz.read_npz(file)
    program = pte.read(path)
    return [_real(program, index, arrays[f"output{index}"]) for index in range(_count(arrays))]


def _count(arrays: Mapping[str, Array]) -> int:
    return sum(name.startswith("output") for name in arrays)


def _real(program: pte.Pte, index: int, array: Array) -> Array:
    if array.dtype not in (np.int8, np.int16):
        return array
    scale, zero_point = _quantisation(program, f"output{index}")
    if scale is None or zero_point is None:
        return array
    return ((array.astype(np.float64) - zero_point) * scale).astype(np.float32)


def _quantisation(program: pte.Pte, name: str) -> tuple[float | None, float | None]:
    """Scale and zero point of the quantised tensor `name`, as constant methods of the program have them."""
    return _constant(program, f"{name}_scale"), _constant(program, f"{name}_zp")


def are_inputs(path: Path, stored: Sequence[Array], given: Sequence[Array]) -> bool:
    """Whether `stored`, the example inputs of the program at `path`, are those `given` in floating point; quantised
    ones to within a step, since a tie may be rounded either way."""
    if [row.shape for row in stored] != [row.shape for row in given]:
        return False
    program = pte.read(path)
    return all(
        _is_input(row, other, _quantisation(program, f"input{index}"))
        for index, (row, other) in enumerate(zip(stored, given, strict=True))
    )


def _is_input(stored: Array, given: Array, quantisation: tuple[float | None, float | None]) -> bool:
    scale, zero_point = quantisation
    if stored.dtype == given.dtype or not scale or zero_point is None:
        return _equal(given, stored) == given.size
    limits = np.iinfo(stored.dtype)
    steps = np.clip(np.rint(given.astype(np.float64) / scale) + zero_point, limits.min, limits.max)
    return bool((np.abs(steps - stored) <= 1).all())


def _constant(program: pte.Pte, method: str) -> float | None:
    """What the constant method `method` returns; None where the program has none."""
    try:
        plan = program.plan(method)
    except SdkError:
        return None
    (index,) = plan.outputs
    value = plan.values[index]
    number = value.value if isinstance(value, pte.Scalar) else None
    return float(number) if isinstance(number, int | float) else None


def distance(reference: Sequence[Array], candidate: Sequence[Array]) -> Distance:
    """The least SQNR among all outputs, and how many elements are equal but for the rounding of floating point.
    Nothing is equal, and the SQNR is -inf, where shapes differ."""
    if [row.shape for row in reference] != [row.shape for row in candidate]:
        return Distance(elements=sum(row.size for row in reference), equal=0, sqnr_db=-math.inf)
    found = []
    for one, other in zip(reference, candidate, strict=True):
        row = Comparison()
        row.add(0, one, other)
        found.append(row)
    ratios = [row.sqnr_db for row in found if not np.isnan(row.sqnr_db)]
    if any(_loses_values(one, other) for one, other in zip(reference, candidate, strict=True)):
        ratios = [-math.inf]
    return Distance(
        elements=sum(row.elements for row in found),
        equal=sum(_equal(one, other) for one, other in zip(reference, candidate, strict=True)),
        sqnr_db=min(ratios, default=float("inf")),
    )


def _loses_values(reference: Array, candidate: Array) -> bool:
    """Whether an element is not finite that is finite in the reference."""
    return bool((np.isfinite(reference) & ~np.isfinite(candidate)).any())


def _equal(one: Array, other: Array) -> int:
    """How many elements are equal, to within 2^-20 of the largest finite one: so far the scales of two calibrations
    may differ."""
    one, other = one.astype(np.float64), other.astype(np.float64)
    is_finite = np.isfinite(one) & np.isfinite(other)
    largest = float(np.abs(one[np.isfinite(one)]).max(initial=0.0))
    with np.errstate(invalid="ignore"):
        close = np.abs(one - other) <= _ROUNDING * largest
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    return int(np.count_nonzero(np.where(is_finite, close, same)))
