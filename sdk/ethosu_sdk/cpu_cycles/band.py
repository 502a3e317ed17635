"""How far modelled cycles of the CPU are from published ones."""

from __future__ import annotations

from dataclasses import dataclass

ERROR = 0.20
"""The bound of errors, as a share of the published cycles, with the waits of the board's memories. Of nine published
operators of CMSIS-NN on a Cortex-M55 whose memories are known, the worst is off by 18.1 %; DS-CNN on a Cortex-M85 is
off by 2.1 % (docs/reference/fidelity.md)."""

TOO_LOW = 0.65
"""The share of the published cycles that is missing at most where memory waits are left out: quantize_per_tensor
(docs/reference/fidelity.md)."""

_JUDGED = f"±{100 * ERROR:.0f} % on published runs of CMSIS-NN kernels"
_NOT_JUDGED = "scalar code with many branches was not judged, and is probably priced too dear"


@dataclass(frozen=True)
class Band:
    """The share of the true cycles that is missing at most, and the band in words, as records quote it."""

    too_low: float
    words: str


def band(*, waits: bool) -> Band:
    """The band of cycles with the waits of the board's memories, or without them."""
    if waits:
        return Band(ERROR, f"{_JUDGED}, with the waits of the board's memories as here; {_NOT_JUDGED}")
    missing = f"without them, as here, up to {100 * TOO_LOW:.0f} % too low"
    return Band(TOO_LOW, f"{_JUDGED}, with the waits of the board's memories; {missing}; {_NOT_JUDGED}")
