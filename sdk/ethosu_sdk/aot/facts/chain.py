"""What the chain of comparisons found: frozen data that also crosses the process boundary as JSON."""

from __future__ import annotations

from dataclasses import dataclass

GRAPH, PREPARED, QUANTISED, EXECUTED = "graph", "prepared", "quantised", "executed"
EQUAL, ROUNDING, EXPLAINED = "equal", "float-rounding", "explained"


@dataclass(frozen=True)
class LinkedOutput:
    """One output in a link, over all samples: its name in the program, how many of the `elements` are equal, the
    largest difference and the signal-to-noise ratio; both None for integers and truth values, the second where there
    is no noise or no signal too."""

    index: int
    name: str
    elements: int
    equal: int
    largest: float | None
    sqnr_db: float | None


@dataclass(frozen=True)
class NoisyLayer:
    """A layer whose own quantisation adds much noise: its operator, line, and signal-to-noise ratio by itself."""

    operator: str
    place: str | None
    sqnr_db: float


@dataclass(frozen=True)
class Link:
    """One comparison that held: ``equal``, ``float-rounding`` (equal but for the order of sums) or ``explained`` (by
    the steps of quantisation). With `unavailable`, the reason why nothing was compared."""

    name: str
    verdict: str
    outputs: tuple[LinkedOutput, ...] = ()
    layers: int | None = None
    unavailable: str = ""


@dataclass(frozen=True)
class ChainFacts:
    """The links in order; where each of the samples came from (``example``, ``calibration`` or ``shuffled``); the
    noisiest layers of a quantised model."""

    samples: tuple[str, ...]
    links: tuple[Link, ...]
    noisy: tuple[NoisyLayer, ...] = ()
