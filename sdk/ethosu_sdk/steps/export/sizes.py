"""How large the pools of other builds must be for a program, and how well that is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ethosu_sdk import pte
from ethosu_sdk.firmware_build import layout
from ethosu_sdk.firmware_build.firmware import requirements
from ethosu_sdk.records.export import Known, Size, SizeName
from ethosu_sdk.records.run import Run
from ethosu_sdk.steps.shared import fast_scratch

EXACT: Final = "exact"
LEAST: Final = "least"
MOST: Final = "most"
MEASURED: Final = "measured"
SCRATCH: Final = "scratch"
FAST_SCRATCH: Final = "fast_scratch"
PLANNED: Final = "planned"
METHOD: Final = "method_pool"
ET_TEMP: Final = "executorch_temp"
ET_METHOD: Final = "executorch_method"


def of(program: pte.Pte, method: str, run: Run | None) -> dict[str, Size]:
    """The sizes of `program` by their names, with what `run` measured. InputError when it is no Ethos-U's program."""
    return {row.name: row for row in (*_by_program(program, method), *_measured(run))}


def _by_program(program: pte.Pte, method: str) -> Iterator[Size]:
    plan = program.plan(method)
    needs = requirements(program.size, [plan], program.target(), None)
    scratch, planned = needs.scratch_bytes, _planned(needs.planned_bytes)
    yield _size(
        SCRATCH, scratch, EXACT, "the largest delegate's, of all its inputs, outputs and feature maps"
    )
    fast = fast_scratch.most_bytes([plan])
    if fast is not None:
        yield _size(
            FAST_SCRATCH, fast, EXACT, "what the command streams write to region 2; no runtime can check it"
        )
    yield _size(PLANNED, planned, EXACT, "ExecuTorch's planned buffers, each begun at a multiple of 16 bytes")
    yield _size(METHOD, needs.method_pool_bytes, MOST, "of the SDK's firmware, beside the planned buffers")
    yield _size(ET_TEMP, scratch, LEAST, "the scratch; kernels on the CPU may take temporary memory too")
    detail = "the planned buffers; ExecuTorch's own structures and the inputs come on top"
    yield _size(ET_METHOD, planned, LEAST, detail)


def _size(name: SizeName, size_bytes: int, known: Known, detail: str) -> Size:
    return Size(name=name, bytes=size_bytes, known=known, detail=detail)


def _planned(sizes: Sequence[int]) -> int:
    """Where the last of buffers of `sizes` ends, of which each begins at a multiple of 16."""
    return sum(map(layout.aligned, sizes[:-1])) + sum(sizes[-1:])


def _measured(run: Run | None) -> Iterator[Size]:
    if run is None:
        return
    used = {row.name: row.used_bytes for row in run.memory.pools}
    names: dict[str, SizeName] = {"method_pool": METHOD}
    detail = "used in a run of the SDK's firmware"
    if run.runtime.name == "executorch":
        names = {"method_pool": ET_METHOD, "temp_pool": ET_TEMP}
        detail = f"used in a run by {run.runtime.version}; another build of ExecuTorch may take more"
    for pool, name in names.items():
        if pool in used:
            yield _size(name, used[pool], MEASURED, detail)
