"""The steps and the state of a run, in its record: schemas/run-result.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal, Protocol

from ethosu_sdk.records.common import Dtype, Number, Source
from ethosu_sdk.records.kind import Part


class StateTensor(Part):
    name: str
    shape: tuple[int, ...]
    dtype: Dtype
    bytes: int
    memory: str
    arena: int
    offset: int
    crc32: str | None = None


class RunState(Part):
    begins_with: Literal["program", "file"]
    file: str | None = None
    steps_before: int
    between_sets: Literal["kept"]
    between_repeats: Literal["reset", "kept"] | None = None
    tensors: tuple[StateTensor, ...]


class Choice(Part):
    input: int
    values: tuple[int, ...]


class Step(Part):
    step: int
    npu_cycles: int | None = None
    counters: tuple[int, ...] | None = None
    choices: tuple[Choice, ...] | None = None
    state_crc32: tuple[str, ...] | None = None
    status: Literal["pass", "fail"] | None = None
    max_abs_error: Number | None = None


class StepTolerance(Part):
    atol: Number
    rtol: Number
    growth: Number


class Sequence(Part):
    feeds: tuple[str, ...]
    source: Source | None = None
    events: tuple[str, ...] | None = None
    tolerance: StepTolerance | None = None
    first_beyond: int | None = None
    asked: int | None = None
    steps: tuple[Step, ...]


class HasSteps(Protocol):
    """The record of a run."""

    @property
    def status(self) -> str:
        """Whether the run passed: pass or fail."""
        ...

    @property
    def inferences(self) -> int:
        """The sets of inputs."""
        ...

    @property
    def state(self) -> RunState | None:
        """What is kept from one inference to the next."""
        ...

    @property
    def sequence(self) -> Sequence | None:
        """The steps, where there are several."""
        ...


def steps_are_all_there(record: HasSteps) -> list[str]:
    """Each inference is a step, in order, with a value for each event and each tensor of the state."""
    sequence = record.sequence
    if sequence is None:
        return []
    found = []
    if [row.step for row in sequence.steps] != list(range(record.inferences)):
        found.append(f"the steps are not numbered 0 … {record.inferences - 1}")
    tensors = 0 if record.state is None else len(record.state.tensors)
    for row in sequence.steps:
        if len(row.counters or ()) not in (0, len(sequence.events or ())):
            found.append(f"step {row.step} has {len(row.counters or ())} counters")
        if len(row.state_crc32 or ()) not in (0, tensors):
            found.append(f"step {row.step} has the CRC of {len(row.state_crc32 or ())} tensors of the state")
    return found


def steps_beyond_fail_the_run(record: HasSteps) -> list[str]:
    """The first step that failed is named, and then the run did not pass."""
    sequence = record.sequence
    if sequence is None:
        return []
    failed = next((row.step for row in sequence.steps if row.status == "fail"), None)
    if failed != sequence.first_beyond:
        return [f"step {failed} is the first that failed, the record names {sequence.first_beyond}"]
    if failed is not None and record.status == "pass":
        return [f"step {failed} is beyond the tolerance, but the record says 'pass'"]
    return []
