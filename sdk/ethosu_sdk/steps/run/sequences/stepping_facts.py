"""What each step of a run gave and cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class StepFacts:
    """One step: what feeds chose, by input; the CRC of each tensor of the state after it; the NPU's cycles and
    counters, by event, where they mean something; the CRC of each output, in the order of memory."""

    choices: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    state_crcs: tuple[str, ...] = ()
    npu_cycles: int | None = None
    counters: Mapping[int, int] = field(default_factory=dict)
    output_crcs: tuple[str, ...] = ()
