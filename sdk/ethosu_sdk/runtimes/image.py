"""Places a program and its inputs in memory for a runner, and reads its outputs from memory."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from ethosu_sdk import pte
from ethosu_sdk.errors import BuildError
from ethosu_sdk.runtimes.runners import PrebuiltRunner

_GUARD_BYTES = 64
_LEAVE = "leave --runtime out: the SDK's own firmware is built for the program"


@dataclass(frozen=True)
class Placed:
    """What lies in memory before the run, and what is read after it.

    `blank`, random bytes, fills the outputs' place and the guard behind it: what the runner does not write stays so.
    """

    images: tuple[tuple[int, bytes], ...] = field(repr=False)
    read_back: tuple[tuple[int, int], ...]
    blank: bytes = field(repr=False)
    outputs_bytes: int


def place(runner: PrebuiltRunner, plan: pte.ExecutionPlan, program: bytes, inputs: Sequence[bytes]) -> Placed:
    """Lay out one inference. BuildError, which names the limit, for what the runner has no room for."""
    tensors = plan.output_tensors()
    if len(tensors) != len(plan.outputs) or len(plan.input_tensors()) != len(plan.inputs):
        raise BuildError(
            "Arm's runner supports only tensors, but the program has other inputs or outputs", _LEAVE
        )
    if any(not row.sizes for row in (*plan.input_tensors(), *tensors)):
        raise BuildError(
            "an input or output of the program is a tensor without dimensions: Arm's runner fails when it lists one",
            _LEAVE,
        )
    outputs_bytes = sum(row.nbytes for row in tensors)
    content = b"".join(inputs)
    for what, need, room in (
        ("the program", len(program), runner.program.size_bytes),
        ("its inputs", len(content), runner.inputs.size_bytes),
        ("its outputs", outputs_bytes, runner.outputs.size_bytes - _GUARD_BYTES),
        ("its planned memory", sum(plan.non_const_buffer_sizes), runner.method_pool_bytes),
        ("a delegate's scratch memory", _scratch_bytes(plan), runner.temporary_pool_bytes),
    ):
        if need > room:
            raise BuildError(
                f"{what} takes {need:,} bytes, but Arm's runner for {runner.board} has room for {room:,}",
                _LEAVE,
            )
    blank = secrets.token_bytes(outputs_bytes + _GUARD_BYTES)
    images = [(runner.program.address, program), (runner.outputs.address, blank)]
    if content:
        images.append((runner.inputs.address, content))
    return Placed(
        images=tuple(images),
        read_back=((runner.program.address, len(program)), (runner.outputs.address, len(blank))),
        blank=blank,
        outputs_bytes=outputs_bytes,
    )


def _scratch_bytes(plan: pte.ExecutionPlan) -> int:
    return max((row.vela.scratch_bytes for row in plan.delegates if row.vela), default=0)
