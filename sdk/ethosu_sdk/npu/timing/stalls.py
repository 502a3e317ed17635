"""What the MAC unit waits for: the hardware's stall events, as the stages of operations give them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ethosu_sdk.npu.timing.memories import Stream
from ethosu_sdk.npu.timing.pipeline import Stages


class Cause(Enum):
    """What is missing: weights, room for accumulators (the output unit is behind), or the IFM."""

    WEIGHTS = "weights"
    ACCUMULATORS = "accumulators"
    IFM = "ifm"


@dataclass(frozen=True)
class Stalls:
    """Cycles in which the MAC unit has work and waits. Each cycle has one cause: the one that is removed last."""

    weights: int = 0
    accumulators: int = 0
    ifm: int = 0

    def __add__(self, other: Stalls) -> Stalls:
        return Stalls(
            self.weights + other.weights,
            self.accumulators + other.accumulators,
            self.ifm + other.ifm,
        )


@dataclass(frozen=True)
class Span:
    """When the MAC unit is `free` for an operation, its command is `issued`, its IFM `fetched`, and it has `ended`.

    An operation is fetched from `fetched` on, while the one before is still computed.
    """

    free: int
    issued: int
    fetched: int
    ended: int

    @property
    def begin(self) -> int:
        """From when on the MAC unit has this operation to work on."""
        return max(self.free, self.issued)


def stalls(stages: Stages, span: Span) -> Stalls:
    """The stalls of an operation; none where the MAC unit has no part in it."""
    if not stages.mac:
        return Stalls()
    left = span.ended - stages.end - span.begin - stages.mac
    found = {Cause.IFM: 0, Cause.WEIGHTS: 0, Cause.ACCUMULATORS: 0}
    ifm = span.fetched + stages.begin
    weights = ifm + stages.weights if stages.serial else span.issued + stages.weights
    waits = (
        (Cause.IFM, ifm - span.begin),
        (Cause.WEIGHTS, weights - max(ifm, span.begin)),
        (Cause.IFM, stages.refetch),
        (Cause.ACCUMULATORS, stages.behind(span.issued, span.fetched)),
        (_slowest(stages), left),
    )
    for cause, cycles in waits:
        part = max(0, min(cycles, left))
        found[cause] += part
        left -= part
    return Stalls(found[Cause.WEIGHTS], found[Cause.ACCUMULATORS], found[Cause.IFM])


def _slowest(stages: Stages) -> Cause:
    """What an operation waits for that no unit holds up: the slowest of decoder and memory's streams."""
    if stages.decoder > stages.transfer or stages.slowest in (Stream.WEIGHTS, Stream.FAST_WEIGHTS):
        return Cause.WEIGHTS
    return Cause.ACCUMULATORS if stages.slowest is Stream.OFM else Cause.IFM
