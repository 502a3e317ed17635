"""The figures of a program that was profiled, and the distance of its outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk import boards, npz, pte
from ethosu_sdk.errors import SdkError
from ethosu_sdk.evidence.accuracy import Comparison
from ethosu_sdk.firmware_build import MemoryFitError, choose_board, fit as memory_fit
from ethosu_sdk.firmware_build.firmware import requirements
from ethosu_sdk.records.profile import Profile, cycles
from ethosu_sdk.records.time_line import headline
from ethosu_sdk.results.trials import Distance, Measured
from ethosu_sdk.steps.run_facts import programs
from ethosu_sdk.steps.shared import systems

Array = npt.NDArray[Any]
_CONVERSIONS = ("::quantize_per_tensor.out", "::dequantize_per_tensor.out")
_ROUNDING = 2.0**-20
_SIMULATOR = "qemu"  # on whose board a program has to fit


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
        fits=fits(program, own),
        cpu_calls=dict(calls),
    )


def fits(program: pte.Pte, own: systems.Priced | None) -> bool:
    """Whether the firmware of `program` has room on the board of its NPU; `own` is its system."""
    areas = None if own is None else own.areas
    needs = requirements(program.size, program.plan(), program.target(), None, areas)
    board = boards.board(choose_board(program.npu(), None, _SIMULATOR).board)
    try:
        memory_fit.plan(needs, board, 1, (), allow_spill=False)
    except MemoryFitError:
        return False
    return True


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
    scale, zero_point = (_constant(program, f"output{index}_{name}") for name in ("scale", "zp"))
    if scale is None or zero_point is None:
        return array
    return ((array.astype(np.float64) - zero_point) * scale).astype(np.float32)


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


def distance(reference: Sequence[Array], candidate: Sequence[Array]) -> Distance | None:
    """The least SQNR among all outputs, and how many elements are equal but for the rounding of floating point; None
    where shapes differ."""
    if [row.shape for row in reference] != [row.shape for row in candidate]:
        return None
    found = []
    for one, other in zip(reference, candidate, strict=True):
        row = Comparison()
        row.add(0, one, other)
        found.append(row)
    ratios = [row.sqnr_db for row in found if not np.isnan(row.sqnr_db)]
    return Distance(
        elements=sum(row.elements for row in found),
        equal=sum(_equal(one, other) for one, other in zip(reference, candidate, strict=True)),
        sqnr_db=min(ratios, default=float("inf")),
    )


def _equal(one: Array, other: Array) -> int:
    """How many elements are equal, to within 2^-20 of the largest: the scales of two calibrations may differ so."""
    largest = float(np.abs(one).max(initial=0.0))
    close = np.abs(one.astype(np.float64) - other.astype(np.float64)) <= _ROUNDING * largest
    return int(np.count_nonzero(close))
