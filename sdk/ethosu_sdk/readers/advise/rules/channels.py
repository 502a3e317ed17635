"""Numbers of channels that leave a part of the MAC unit idle."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from ethosu_sdk import plain_text
from ethosu_sdk.readers.advise.advice import CHANNELS, Advice, change, figure
from ethosu_sdk.readers.advise.facts import WORTH_SHARE, Facts, modelled
from ethosu_sdk.records.profile import Operation
from ethosu_sdk.results import source_place

_HOW = "the MAC unit computes {step} channels at once, and the last of them are computed and thrown away now"


def channel_steps(facts: Facts) -> list[Advice]:
    """Convolutions whose pace the MAC unit sets, with channels that are no multiple of what it computes at once."""
    step = facts.channel_step
    if step is None:
        return []
    return [advice for rows in _convolutions(facts) for advice in _partial(facts, rows, step)]


def _convolutions(facts: Facts) -> Iterator[Sequence[Operation]]:
    """The NPU operations of each convolution: Vela cuts one into slices of channels, or into stripes."""
    rows = [row for row in facts.npu_rows if row.kind == "conv" and row.scheduled is not None]
    for _, group in itertools.groupby(rows, lambda row: (row.delegate, row.scheduled)):
        yield list(group)


def _partial(facts: Facts, rows: Sequence[Operation], step: int) -> Iterator[Advice]:
    """What a convolution of slices has to gain; of stripes, all are partial, and nothing is said."""
    partial = [row for row in rows if _depth(row) % step]
    if len(partial) != 1 or partial[0].bound_by != "MAC unit" or not all(map(_depth, rows)):
        return
    row, channels = partial[0], sum(map(_depth, rows))
    cycles = sum(map(modelled, rows))
    more = -(-channels // step) * step
    saved = modelled(row) * step // (_depth(row) + more - channels)
    if saved < WORTH_SHARE * facts.npu_cycles:
        return
    name = source_place.module_or_line(row.source)
    fewer = f" {more - step} save one step." if more > step else ""
    yield Advice(
        finding=f"{channels} output channels take as long as {more}.{fewer}",
        where=name,
        evidence=(
            figure("cycles of the convolution", cycles, "cycles", "modelled"),
            figure(f"cycles of one step of {step} channels", saved, "cycles", "modelled"),
        ),
        code=(
            f"# {plain_text.line(name)}: out_channels={more} in place of {channels}, "
            "and in_channels of what reads it",
        ),
        gains=(change(CHANNELS, channels, more, _HOW.format(step=step)),),
        limits=(
            "the network has to be trained again",
            "weights and feature maps grow: where a memory sets the pace behind it, that costs",
        ),
    )


def _depth(row: Operation) -> int:
    """The channels of a row's OFM, 0 where the profile does not tell."""
    return (row.ofm or (0,))[-1]
