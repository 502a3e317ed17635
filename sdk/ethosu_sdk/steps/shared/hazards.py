"""Hazards: commands that hardware, which runs operations in parallel, may start too early."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ethosu_sdk import pte
from ethosu_sdk.errors import InputError, SdkError
from ethosu_sdk.plain_text import counted
from ethosu_sdk.vela_blocks import VelaBlocks

_SHOWN = 3
HINT = "`ethosu-sdk inspect MODEL.pte --hazards` lists them"


_AGAIN = (
    "Vela 4.5.0 to 5.2.0 write such a stream for an activation after a change of the order of axes: "
    "`ethosu-sdk compile` avoids it, and so does another target, such as ethos-u55-128"
)


def refuse_lost_tables(plans: Iterable[pte.ExecutionPlan]) -> None:
    """InputError for a command stream that loads a look-up table to where the NPU has no memory."""
    from ethosu_sdk.npu.config import NpuConfig
    from ethosu_sdk.npu.hazards import tables
    from ethosu_sdk.npu.hazards.report import HazardKind

    for index, vela in _streams(plans):
        try:
            config = NpuConfig.from_word(vela.config_word)
            found = tables.lost(bytes(vela.command_stream), config)
        except SdkError:
            continue  # whoever runs it says why
        beyond = [hazard for hazard in found if hazard.kind is HazardKind.LUT_BEYOND_MEMORY]
        if beyond:
            raise InputError(
                f"delegate {index} cannot run on {config.npu}-{config.macs}: {beyond[0].describe()}", _AGAIN
            )


def _streams(plans: Iterable[pte.ExecutionPlan]) -> Iterator[tuple[int, VelaBlocks]]:
    for plan in plans:
        for index, delegate in enumerate(plan.delegates):
            if delegate.vela is not None:
                yield index, delegate.vela


def sentences(vela: VelaBlocks) -> list[str]:
    """A sentence for each hazard of a delegate's command stream; none for a stream that cannot be read."""
    from ethosu_sdk.npu.config import NpuConfig
    from ethosu_sdk.npu.hazards import checker

    try:
        found = checker.check(bytes(vela.command_stream), NpuConfig.from_word(vela.config_word))
    except SdkError:
        return []  # whoever runs it says why
    return [hazard.describe() for hazard in found]


def warnings(plan: pte.ExecutionPlan) -> Iterator[str]:
    """What to say of the delegates of a program whose results on hardware may differ from the model's."""
    for index, delegate in enumerate(plan.delegates):
        found = sentences(delegate.vela) if delegate.vela is not None else []
        if found:
            more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            yield (
                f"delegate {index} has {counted(len(found), 'hazard')}: hardware may compute something else than the "
                f"NPU model, which runs operations one by one: {'; '.join(found[:_SHOWN])}{more}"
            )
