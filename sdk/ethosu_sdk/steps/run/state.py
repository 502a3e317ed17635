"""What repeats mean for a program that keeps a state from inference to inference."""

from __future__ import annotations

from ethosu_sdk import pte
from ethosu_sdk.errors import UsageError
from ethosu_sdk.steps.run.inputs import Samples

RESET, KEPT = "reset", "kept"


def of_repeats(plan: pte.ExecutionPlan, samples: Samples, repeats: int, keep: bool) -> str:
    """What each of several `repeats` begins with: ``reset``, the state that the program brings, or ``kept``; empty
    for one inference of each set, or a program without a state. UsageError where a reset would break a sequence."""
    if repeats == 1 or not plan.is_stateful:
        return ""
    if keep:
        return KEPT
    if samples.count > 1:
        raise UsageError(
            f"this program keeps a state, and {samples.count} sets of inputs are a sequence: repeating each of them "
            f"{repeats} times would break it",
            "give one set of inputs, or --keep-state to let every inference go on from the one before; more PMU "
            "events than the NPU has counters need repeats, too",
        )
    return RESET
