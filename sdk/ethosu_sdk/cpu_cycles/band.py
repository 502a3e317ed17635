"""How far modelled cycles of the CPU are from published ones."""

from __future__ import annotations

ERROR = 0.20
"""The bound of errors, as a share. Of nine published operators of CMSIS-NN on a Cortex-M55 whose memories are known,
the worst is off by 18.1 %; DS-CNN on a Cortex-M85 is off by 1.2 % without waits (docs/reference/fidelity.md)."""

BAND = (
    f"±{100 * ERROR:.0f} % on published runs of CMSIS-NN kernels, with the waits of the board's memories; "
    "without them up to 65 % too low; scalar code with many branches was not judged"
)
"""The band in words, as records quote it."""

TOO_LOW = 0.65
"""The share of the published cycles that is missing at most where memory waits are left out: quantize_per_tensor
(docs/reference/fidelity.md)."""
