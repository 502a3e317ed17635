"""``run-result/1``, from which schemas/run-result.v1.schema.json is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from ethosu_sdk.records import common as c, rules
from ethosu_sdk.records.common import Derived, Part, RecordKind
from ethosu_sdk.records.time_line import TimeLine, time_adds_up

MemoryRole = Literal[
    "model", "data", "scratch", "fast_scratch", "planned", "method_pool", "code", "firmware", "harness"
]
Crc32 = Annotated[str, Meta(pattern="^[0-9a-f]{8}$")]


class AdaptedOperator(Part):
    name: c.Text  #: the operator that the program calls
    called: c.Text  #: the operator that the copy calls instead, in the form that the runtime has
    calls: c.PositiveCount
    changes: c.Some[c.Text]


class Adapted(Part):
    """How the copy of the program that the runtime got differs from the program; absent where it got the program
    itself."""

    program_sha256: c.Sha256  #: of the copy
    operators: c.Some[AdaptedOperator]


class OutputChange(Part):
    set: c.Count
    repeat: c.Count
    output: c.Count


class RepeatedOutputs(Part):
    agree: bool
    changed: c.Count  #: results that are not those of the first repeat
    first_changes: c.Some[OutputChange] | None = None


class CounterChange(Part):
    set: c.Count
    repeat: c.Count
    instruction: c.Count


class RepeatedCounters(Part):
    agree: bool
    changed: c.Count  #: results that are not those of the first repeat
    first_changes: c.Some[CounterChange] | None = None


class Repeats(Part):
    count: Annotated[int, Meta(ge=2)]  #: inferences of every set of inputs; outputs are those of the first
    #: what a repeat of a program with a state begins with: the state that the program brings, or that of the
    #: repeat before, whose outputs may then differ; absent without a state
    state: Literal["reset", "kept"] | None = None
    outputs: RepeatedOutputs
    counters: RepeatedCounters


class StateTensor(Part):
    name: c.Text  #: the buffer in the model where the compile record has it
    shape: tuple[c.Count, ...]
    dtype: c.Dtype
    bytes: c.Count
    memory: c.Text  #: the memory of the board
    arena: c.Count  #: the planned buffer of the program that holds it, from 0
    offset: c.Count  #: bytes from the arena's start
    crc32: Crc32 | None = None  #: of its bytes after the last inference


class RunState(Part):
    #: the values that the first inference begins with: the program's own, or those of a saved state
    begins_with: Literal["program", "file"]
    file: c.Text | None = None  #: the file of the saved state
    steps_before: c.Count  #: steps that led to the saved state
    #: what a repeat of a set begins with: the state that the run began with, or that of the repeat before;
    #: absent without repeats
    between_repeats: Literal["reset", "kept"] | None = None
    tensors: c.Some[StateTensor]


class Choice(Part):
    input: c.Count  #: the input that takes them in the next step
    values: c.Some[c.Count]


class Step(Part):
    step: c.Count
    npu_cycles: c.Count | None = None
    counters: c.Some[c.Count] | None = None
    choices: c.Some[Choice] | None = None  #: indices that feeds chose from the outputs
    state_crc32: c.Some[Crc32] | None = None  #: of each tensor of the state after the step
    status: Literal["pass", "fail"] | None = None  #: whether all outputs are within the tolerance
    max_abs_error: c.Amount | None = None  #: the largest difference from what is expected


class StepTolerance(Part):
    atol: c.Amount
    rtol: c.Amount
    growth: c.Amount


class Sequence(Part):
    feeds: tuple[c.Text, ...]  #: how inputs are made from the outputs of the step before, as --feed takes it
    source: c.Source | None = None
    events: c.Some[c.Text] | None = None  #: the events of every step's counters
    #: step n may differ by (atol + rtol · |expected|) · (1 + growth · n)
    tolerance: StepTolerance | None = None
    first_beyond: c.Count | None = None  #: the first step beyond the tolerance
    #: the number of steps that --steps or the inputs of fed steps asked for; a feed may have stopped before;
    #: absent where every input was given
    asked: c.PositiveCount | None = None
    steps: c.Some[Step]


class Runtime(Part):
    name: Literal["own", "executorch"]
    version: c.Text
    #: of the firmware or runner, which is among the inputs of the provenance; absent on the host
    elf_sha256: c.Sha256 | None = None
    loaded: c.Loaded | None = None
    adapted: Adapted | None = None


class Device(Part):
    """A device on a wire, by its own words, and what this machine sees at its port."""

    #: hardware: this machine sees an adapter, and no simulator says to stand for the board; unknown: neither
    kind: Literal["hardware", "simulated", "unknown"]
    place: c.Text  #: the port or socket, as --device names it
    board: c.Text
    firmware: c.Text
    code_sha256: c.Sha256  #: of the firmware's code and constants in its memory, which are those of the ELF
    simulator: c.Text | None = None  #: that says to stand for the board, and its version
    adapter: c.Text | None = None  #: of the serial port


class Input(c.Tensor):
    sha256: c.Sha256
    source: c.Text


class Output(c.Tensor):
    sha256: c.Sha256
    name: c.Text
    file: c.Text


class ReferenceOutput(Part):
    index: c.Count
    elements: c.Count
    equal: c.Count  #: elements of the same value
    max_abs_error: c.Amount | None = None  #: max |run - stored|, in the output's unit
    sqnr_db: c.Number | None = None  #: 10 log10(sum stored^2 / sum (run - stored)^2)


class Reference(Part):
    file: c.Text
    outputs: tuple[ReferenceOutput, ...]
    #: of a sequence: how many of the run's steps were compared; with --outputs last it is the last one
    steps: c.PositiveCount | None = None


class Cpu(Part):
    core: c.Core | None = None  #: the core that the cycles are modelled for
    cycles: c.Metric | None = None  #: of the first inference, with memory that answers at once
    instructions: c.Metric | None = None  #: of the first inference
    parts: c.Some[c.CpuPart] | None = None  #: of the first inference, each name once
    outside: c.Some[c.CpuPart] | None = None  #: of the run, and not of the first inference
    #: instructions of the run that are in no figure: there was more code than is counted
    unpriced: c.Metric | None = None


class MemoryUse(Part):
    memory: c.Text
    #: what takes it: parts of the program, the firmware's code, the firmware's own data and stack, or the harness,
    #: which holds the inputs of many inferences and is not part of a product
    role: MemoryRole
    used_bytes: c.Count
    size_bytes: c.Count | None = None  #: of the memory; absent where it is not public


class Memory(Part):
    regions: tuple[c.Use, ...]  #: of the simulator, with all that the firmware needs for the run
    pools: tuple[c.Use, ...]
    #: the board that `uses` are of: the one that was named for the run or the compilation, else the simulated one;
    #: absent where it is not known which of its memories hold what
    board: c.Text | None = None
    hardware: c.Untested | None = None  #: of a named board on which nothing was tried
    #: what the program takes of each memory of that board. Of a named board, neither the harness nor the firmware's
    #: own data are listed: a product has others
    uses: c.Some[MemoryUse] | None = None


class Operator(Part):
    instruction: c.Count
    kind: Literal["kernel", "delegate", "move", "jump", "free"]
    name: c.Text
    npu_cycles: c.Metric | None = None
    instructions: c.Metric | None = None  #: that the CPU executed in it, where the run counted them
    cpu_cycles: c.Metric | None = None  #: of the processor in it, with memory that answers at once
    cpu_parts: c.Some[c.CpuPart] | None = None  #: in the order of time


class NpuCounter(c.Counter):
    group: c.Count | None = None  #: counters of one group were read together; absent when all were


class CounterGroup(Part):
    group: c.Count
    cycles: c.Metric | None = None


class Interface(Part):
    axi: Literal[0, 1]
    bytes_per_cycle: c.PositiveAmount
    read_latency_cycles: c.Count
    write_latency_cycles: c.Count


class MemoryTiming(Part):
    name: c.Text  #: executorch, board (of the profile) or the name of a file
    interfaces: Annotated[tuple[Interface, ...], Meta(min_length=1, max_length=2)]


class Npu(Part):
    id: c.Count
    config: c.Count
    delegate_calls: c.Count
    counters: tuple[NpuCounter, ...]
    cycles: c.Metric | None = None
    #: groups of PMU events, each of an inference of its own
    groups: Annotated[tuple[CounterGroup, ...], Meta(min_length=2)] | None = None
    groups_agree: bool | None = None  #: whether the cycle counter said the same in every group
    #: the timing adapters that modelled cycles are for; absent where the memories are those of the system
    memory_timing: MemoryTiming | None = None


class SecondOpinionOutput(Part):
    index: c.Count
    sha256: c.Sha256
    file: c.Text
    differing: c.Count  #: elements of other bits than the run's
    atol: c.Amount  #: allowed are atol + rtol * |value|; both 0: no bit
    rtol: c.Amount


class SecondOpinionNpu(Part):
    cycles: c.Metric | None = None
    counters: tuple[NpuCounter, ...]


class SecondOpinion(Part):
    runtime: Runtime
    outputs: tuple[SecondOpinionOutput, ...]
    npu: SecondOpinionNpu | None = None


class Piece(Part):
    instruction: c.Count  #: number of the program's instruction that calls the delegate
    delegate: c.Count
    call: c.Count  #: of the instruction in the inference, from 0
    #: of the job's operations in the delegate's command stream, in bytes; none where it is not cut
    offsets: tuple[c.Count, ...]
    cycles: c.Metric
    counters: tuple[c.Counter, ...]


class Run(Derived[Literal["pass", "fail"]], tag_field="schema", tag="run-result/1"):
    """What happened in one simulated run."""

    model: c.Model
    board: c.BoardName  #: or host
    board_reason: c.Text  #: why it is this board: what was asked for, or what is installed here
    #: what interpreted the program: own, the SDK's firmware; executorch, ExecuTorch's own runtime, in Arm's
    #: prebuilt runner or on the host
    runtime: Runtime
    simulator: c.Simulator
    device: Device | None = None  #: absent where the firmware ran on a simulator of this machine
    inferences: c.PositiveCount  #: sets of inputs
    repeats: Repeats | None = None  #: absent without repeats
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    verdict: c.Verdict
    #: the distance to the outputs of the model in PyTorch, as compile stored them; information, not a
    #: verdict. Without --expect, for the example inputs
    reference: Reference | None = None
    #: what the processor did in the first inference, by executed instructions. Waiting for the NPU and the
    #: firmware's reports are not in it
    cpu: Cpu
    memory: Memory
    operators: tuple[Operator, ...]
    unavailable: c.UnavailableMembers
    wall_time_s: c.Amount
    host: c.Host
    target: c.Target | None = None
    priced: c.Priced | None = None
    time: TimeLine | None = None
    npu: Npu | None = None
    #: where the firmware does not do what the memory mode says, and other things to know
    notes: tuple[c.Text, ...] | None = None
    #: what another runtime made of the same program and inputs; whether the two agree is among the verdict's
    #: checks
    second_opinion: SecondOpinion | None = None
    #: NPU jobs of an inference whose command streams were cut between their operations, in the order in which
    #: they ran
    pieces: c.Some[Piece] | None = None
    #: what the program keeps from one inference to the next; absent where it keeps nothing
    state: RunState | None = None
    sequence: Sequence | None = None  #: the inferences as steps of a sequence; absent for one inference
    data_memory: Literal["sram", "ddr"] | None = None  #: where the data files of the model were asked to lie


def status_follows_checks(record: Run) -> Iterator[str]:
    """One check that fails fails the run."""
    expected = "pass" if all(row.status != "fail" for row in record.verdict.checks) else "fail"
    if record.verdict.status != expected or record.status != expected:
        yield f"the checks say '{expected}', the record says '{record.status}'"


def indices_count_up(record: Run) -> Iterator[str]:
    """Inputs and outputs stand in the order of their numbers."""
    for key, rows in (("inputs", record.inputs), ("outputs", record.outputs)):
        if [row.index for row in rows] != list(range(len(rows))):
            yield f"{key} are not numbered 0, 1, 2 …"


def npu_calls_have_cycles(record: Run) -> Iterator[str]:
    """Cycles of an NPU that ran are there, or listed as unavailable."""
    npu = record.npu
    if npu is None or not npu.delegate_calls or npu.cycles is not None:
        return
    if not any(row.path == "/npu/cycles" for row in record.unavailable):
        yield "the NPU ran, but its cycles are neither given nor listed as unavailable"


def repeats_count_what_changed(record: Run) -> Iterator[str]:
    """Outputs that changed between repeats cannot be part of a pass, unless each went on from the state before."""
    repeats = record.repeats
    if repeats is None:
        return
    for name, row in (("outputs", repeats.outputs), ("counters", repeats.counters)):
        if row.agree != (row.changed == 0):
            yield f"{name} agree: {row.agree}, but {row.changed} changed"
    if repeats.state != "kept" and not repeats.outputs.agree and record.status == "pass":
        yield "outputs changed between repeats, but the record says 'pass'"


def groups_hold_every_counter(record: Run) -> Iterator[str]:
    """Either all counters were read together, or each says in which group."""
    npu = record.npu
    if npu is None:
        return
    groups = [row.group for row in npu.groups or ()]
    if groups != list(range(len(groups))) or bool(groups) != (npu.groups_agree is not None):
        yield "groups of events are not numbered 0, 1, 2 …, or groups_agree is missing"
    for row in npu.counters:
        if not (row.group in groups if groups else row.group is None):
            yield f"{row.event} is in group {row.group} of {len(groups)}"


def runtime_is_that_of_the_provenance(record: Run) -> Iterator[str]:
    """The firmware or runner that ran is among the files that shaped the result."""
    known = {row.sha256 for row in record.provenance.inputs if row.role in ("firmware", "runner")}
    other = () if record.second_opinion is None else (record.second_opinion.runtime,)
    for row in (record.runtime, *other):
        if row.elf_sha256 is not None and row.elf_sha256 not in known:
            yield f"the ELF of the runtime '{row.name}' is not among the inputs of the provenance"


def second_opinion_is_of_another(record: Run) -> Iterator[str]:
    """A runtime cannot confirm itself, and has as many outputs as the other."""
    opinion = record.second_opinion
    if opinion is None:
        return
    if opinion.runtime.name == record.runtime.name:
        yield f"both runtimes are '{opinion.runtime.name}'"
    if [row.index for row in opinion.outputs] != [row.index for row in record.outputs]:
        yield "the second opinion has other outputs than the run"


def pass_has_outputs_and_checks(record: Run) -> Iterator[str]:
    """Nothing came back, or nothing was checked: no evidence of a pass."""
    for name, part in (("outputs", record.outputs), ("checks", record.verdict.checks)):
        if record.status == "pass" and not part:
            yield f"the record says 'pass' and has no {name}"


def operators_add_up(record: Run) -> Iterator[str]:
    """The NPU's cycles of one inference hold those of its operators."""
    npu = record.npu
    if record.inferences != 1 or record.repeats is not None or npu is None or npu.cycles is None:
        return
    total = sum(row.npu_cycles.value for row in record.operators if row.npu_cycles is not None)
    if total > npu.cycles.value:
        yield f"its operators took {total} cycles of the NPU, all of it {npu.cycles.value}"


def cpu_parts_add_up(record: Run) -> Iterator[str]:
    """The CPU's cycles are those of its parts, of an operator and of the inference, which holds its operators."""
    sums: list[tuple[str, c.Metric | None, tuple[c.CpuPart, ...] | None]] = [
        ("the inference", record.cpu.cycles, record.cpu.parts),
        *((f"operator {place}", row.cpu_cycles, row.cpu_parts) for place, row in enumerate(record.operators)),
    ]
    for what, whole, parts in sums:
        total = sum(row.cycles.value for row in parts or ())
        if (whole is None) != (parts is None) or (whole is not None and whole.value != total):
            yield f"the CPU's cycles of {what} are not the sum of its parts, {total}"
    each = [row.cpu_cycles.value for row in record.operators if row.cpu_cycles is not None]
    if each and (record.cpu.cycles is None or sum(each) > record.cpu.cycles.value):
        yield f"operators take {sum(each)} cycles of the CPU, more than the inference"


def time_is_that_of_the_cycles(record: Run) -> Iterator[str]:
    """The CPU's time is that of its cycles by its clock, and its waits."""
    time, cycles = record.time, record.cpu.cycles
    if time is None:
        return
    waits_s = 0.0 if time.waits is None else time.waits.duration_s
    found = round((time.sums.cpu_s - waits_s) * time.clocks.cpu.hz)
    if cycles is None or found != cycles.value:
        known = "not there" if cycles is None else cycles.value
        yield f"the time line has {found} cycles of the CPU, the record's are {known}"


def steps_are_all_there(record: Run) -> Iterator[str]:
    """Each inference is a step, in order, with a value for each event and each tensor of the state."""
    sequence = record.sequence
    if sequence is None:
        return
    if [row.step for row in sequence.steps] != list(range(record.inferences)):
        yield f"the steps are not numbered 0 … {record.inferences - 1}"
    tensors = 0 if record.state is None else len(record.state.tensors)
    for row in sequence.steps:
        if len(row.counters or ()) not in (0, len(sequence.events or ())):
            yield f"step {row.step} has {len(row.counters or ())} counters"
        if len(row.state_crc32 or ()) not in (0, tensors):
            yield f"step {row.step} has the CRC of {len(row.state_crc32 or ())} tensors of the state"


def steps_beyond_fail_the_run(record: Run) -> Iterator[str]:
    """The first step that failed is named, and then the run did not pass."""
    sequence = record.sequence
    if sequence is None:
        return
    failed = next((row.step for row in sequence.steps if row.status == "fail"), None)
    if failed != sequence.first_beyond:
        yield f"step {failed} is the first that failed, the record names {sequence.first_beyond}"
    elif failed is not None and record.status == "pass":
        yield f"step {failed} is beyond the tolerance, but the record says 'pass'"


KIND = RecordKind(
    Run,
    (
        *(status_follows_checks, indices_count_up, rules.use_fits_size, rules.unavailable_is_absent),
        *(npu_calls_have_cycles, repeats_count_what_changed, groups_hold_every_counter),
        *(rules.model_is_that_of_the_provenance, runtime_is_that_of_the_provenance),
        *(second_opinion_is_of_another, pass_has_outputs_and_checks, rules.files_stay_in_the_folder),
        *(rules.measured_on_the_fvp_alone, operators_add_up, rules.priced_is_a_system, cpu_parts_add_up),
        *(time_adds_up, time_is_that_of_the_cycles, steps_are_all_there, steps_beyond_fail_the_run),
    ),
    file="run.json",
    role="record of the run",
)
