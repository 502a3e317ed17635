"""How large the pools of other builds must be for a program, and how well that is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ethosu_sdk import pte
from ethosu_sdk.firmware_build import layout
from ethosu_sdk.firmware_build.firmware import requirements
from ethosu_sdk.records import Record
from ethosu_sdk.steps.shared import fast_scratch

EXACT, LEAST, MOST, MEASURED = "exact", "least", "most", "measured"
SCRATCH, FAST_SCRATCH, PLANNED, METHOD = "scratch", "fast_scratch", "planned", "method_pool"
ET_TEMP, ET_METHOD = "executorch_temp", "executorch_method"


@dataclass(frozen=True)
class Size:
    """Bytes of a pool: `exact`, at `least` or at `most`, or `measured` in a run."""

    name: str
    bytes: int
    known: str
    detail: str


def of(program: pte.Pte, method: str, run: Record | None) -> dict[str, Size]:
    """The sizes of `program` by their names, with what `run` measured. InputError when it is no Ethos-U's program."""
    return {row.name: row for row in (*_by_program(program, method), *_measured(run))}


def _by_program(program: pte.Pte, method: str) -> Iterator[Size]:
    plan = program.plan(method)
    needs = requirements(program.size, plan, program.target(), None)
    scratch, planned = needs.scratch_bytes, _planned(needs.planned_bytes)
    yield Size(SCRATCH, scratch, EXACT, "the largest delegate's, of all its inputs, outputs and feature maps")
    fast = fast_scratch.most_bytes([plan])
    if fast is not None:
        yield Size(
            FAST_SCRATCH, fast, EXACT, "what the command streams write to region 2; no runtime can check it"
        )
    yield Size(PLANNED, planned, EXACT, "ExecuTorch's planned buffers, each begun at a multiple of 16 bytes")
    yield Size(METHOD, needs.method_pool_bytes, MOST, "of the SDK's firmware, beside the planned buffers")
    yield Size(ET_TEMP, scratch, LEAST, "the scratch; kernels on the CPU may take temporary memory too")
    detail = "the planned buffers; ExecuTorch's own structures and the inputs come on top"
    yield Size(ET_METHOD, planned, LEAST, detail)


def _planned(sizes: Sequence[int]) -> int:
    """Where the last of buffers of `sizes` ends, of which each begins at a multiple of 16."""
    return sum(map(layout.aligned, sizes[:-1])) + sum(sizes[-1:])


def _measured(run: Record | None) -> Iterator[Size]:
    if run is None:
        return
    used = {row["name"]: row["used_bytes"] for row in run["memory"]["pools"]}
    runtime = run.get("runtime", {})
    if runtime.get("name") == "executorch":
        names = {"method_pool": ET_METHOD, "temp_pool": ET_TEMP}
        detail = f"used in a run by {runtime['version']}; another build of ExecuTorch may take more"
    else:
        names, detail = {"method_pool": METHOD}, "used in a run of the SDK's firmware"
    for pool, name in names.items():
        if pool in used:
            yield Size(name, used[pool], MEASURED, detail)
