"""The steps and the state of a run, in its record."""

from __future__ import annotations

from typing import Annotated, Literal, Protocol

from ethosu_sdk.records.common import Amount, Count, Crc32, Dtype, PositiveCount, Some, Source, Text
from ethosu_sdk.records.kind import Part, about


class StateTensor(Part):
    name: Annotated[Text, about("the buffer in the model where the compile record has it")]
    shape: tuple[Count, ...]
    dtype: Dtype
    bytes: Count
    memory: Annotated[Text, about("the memory of the board")]
    arena: Annotated[Count, about("the planned buffer of the program that holds it, from 0")]
    offset: Annotated[Count, about("bytes from the arena's start")]
    crc32: Annotated[Crc32 | None, about("of its bytes after the last inference")] = None


class RunState(Part):
    begins_with: Annotated[
        Literal["program", "file"],
        about(
            "the values that the first inference begins with: the program's own, or those of a saved state"
        ),
    ]
    file: Annotated[Text | None, about("the file of the saved state")] = None
    steps_before: Annotated[Count, about("steps that led to the saved state")]
    between_repeats: Annotated[
        Literal["reset", "kept"] | None,
        about(
            "what a repeat of a set begins with: the state that the run began with, or that of the "
            "repeat before; absent without repeats"
        ),
    ] = None
    tensors: Some[StateTensor]


class Choice(Part):
    input: Annotated[Count, about("the input that takes them in the next step")]
    values: Some[Count]


class Step(Part):
    step: Count
    npu_cycles: Count | None = None
    counters: Some[Count] | None = None
    choices: Annotated[Some[Choice] | None, about("indices that feeds chose from the outputs")] = None
    state_crc32: Annotated[Some[Crc32] | None, about("of each tensor of the state after the step")] = None
    status: Annotated[
        Literal["pass", "fail"] | None, about("whether all outputs are within the tolerance")
    ] = None
    max_abs_error: Annotated[Amount | None, about("the largest difference from what is expected")] = None


class StepTolerance(Part):
    atol: Amount
    rtol: Amount
    growth: Amount


class Sequence(Part):
    feeds: Annotated[
        tuple[Text, ...], about("how inputs are made from the outputs of the step before, as --feed takes it")
    ]
    source: Source | None = None
    events: Annotated[Some[Text] | None, about("the events of every step's counters")] = None
    tolerance: Annotated[
        StepTolerance | None, about("step n may differ by (atol + rtol · |expected|) · (1 + growth · n)")
    ] = None
    first_beyond: Annotated[Count | None, about("the first step beyond the tolerance")] = None
    asked: Annotated[
        PositiveCount | None,
        about(
            "the number of steps that --steps or the inputs of fed steps asked for; a feed may have "
            "stopped before; absent where every input was given"
        ),
    ] = None
    steps: Some[Step]


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
