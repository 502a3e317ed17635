"""What a run takes of this machine's memory, worked out from the program before anything is made."""

from __future__ import annotations

from ethosu_sdk import pte
from ethosu_sdk.errors import InputError
from ethosu_sdk.steps.run.inputs import Samples

MOST_BYTES = 1 << 29  # twice the DDR of the boards
_BOARDS = "the boards have 268,435,456 bytes of DDR: use a smaller model or input"


def check_program(plan: pte.ExecutionPlan) -> None:
    """Refuse, with InputError, a program whose memory no board has several times over."""
    parts = {
        "planned memory": sum(plan.non_const_buffer_sizes),
        "scratch memory of delegates": sum(row.vela.scratch_bytes for row in plan.delegates if row.vela),
        "inputs": sum(row.nbytes for row in plan.input_tensors()),
        "outputs": sum(row.nbytes for row in plan.output_tensors()),
    }
    name, largest = max(parts.items(), key=lambda part: part[1])
    if largest > MOST_BYTES:
        raise InputError(
            f"the program needs {largest:,} bytes of {name}; the limit is {MOST_BYTES:,}", _BOARDS
        )


def check_outputs(plan: pte.ExecutionPlan, samples: Samples) -> None:
    """Refuse, with InputError, more inferences than there is room for their outputs."""
    each = sum(row.nbytes for row in plan.output_tensors())
    if each * samples.count > MOST_BYTES:
        raise InputError(
            f"{samples.count:,} inferences give {each * samples.count:,} bytes of outputs; the limit is "
            f"{MOST_BYTES:,}",
            f"give {max(1, MOST_BYTES // each):,} inferences at a time",
        )
