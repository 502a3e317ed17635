"""The Ethos-U delegates of a program: what is refused before anything runs, on whichever simulator, and what their
command streams may reach there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ethosu_sdk import pte
from ethosu_sdk.vela_blocks import VelaBlocks

if TYPE_CHECKING:
    from ethosu_sdk.npu.reach import Reach


def check(plan: pte.ExecutionPlan) -> None:
    """InputError for a delegate that is no Ethos-U's, or that the NPU model does not run."""
    plan.check_backends()
    # Here and not above: NumPy comes with it, and a command's --help must not wait for that.
    from ethosu_sdk import npu

    for row in plan.delegates:
        if row.vela is not None:
            npu.load(row.payload)


def streams(
    plans: Iterable[pte.ExecutionPlan], pieces: Mapping[int, Iterable[bytes]] | None = None
) -> dict[bytes, Reach]:
    """What each command stream may reach, and each of the `pieces` of those of the first method, by delegate."""
    from ethosu_sdk.npu.reach import reach_of

    found: dict[bytes, Reach] = {}
    for number, plan in enumerate(plans):
        for index, vela in _velas(plan):
            reach = reach_of(vela)
            parts = (pieces or {}).get(index, ()) if number == 0 else ()
            for stream in parts:
                _add(found, stream, replace(reach, begins=False))
            _add(found, bytes(vela.command_stream), reach)
    return found


def _velas(plan: pte.ExecutionPlan) -> Iterator[tuple[int, VelaBlocks]]:
    for index, row in enumerate(plan.delegates):
        if row.vela is not None:
            yield index, row.vela


def _add(found: dict[bytes, Reach], stream: bytes, reach: Reach) -> None:
    """Where two delegates have the same commands, those reach what either does."""
    other = found.setdefault(stream, reach)
    if other != reach:
        sizes = {region: max(size, other.sizes[region]) for region, size in reach.sizes.items()}
        begins = reach.begins and other.begins and reach.inputs == other.inputs
        found[stream] = replace(reach, sizes=sizes, begins=begins)
