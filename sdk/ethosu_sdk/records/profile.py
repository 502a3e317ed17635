"""``profile/1``, from which schemas/profile.v1.schema.json is made."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from ethosu_sdk.records import common as c, rules
from ethosu_sdk.records.common import Derived, Part, RecordKind
from ethosu_sdk.records.time_line import Clock, TimeLine, time_adds_up

TrafficKind = Literal[
    "commands", "ifm", "ifm_stream", "weights", "fast_weights", "scales", "ofm", "copy", "copy_write"
]

Direction = Literal["read", "write"]
Port = Literal[0, 1]
PhaseName = Literal["first step", "steady state", "prefill", "decode"]

# What every operation on the NPU has: the command stream alone tells it.
_ON_THE_NPU = ("delegate", "offset", "macs", "cycles", "stages", "utilisation", "bound_by", "traffic")


class Shapes(Part):
    ifm: tuple[c.Count, ...] | None = None
    ofm: tuple[c.Count, ...] | None = None
    block: tuple[c.Count, ...] | None = None
    kernel: tuple[c.Count, ...] | None = None
    stride: tuple[c.Count, ...] | None = None


class Dtypes(Part):
    ifm: c.Text | None = None
    ofm: c.Text | None = None


class Weights(Part):
    bytes: c.Count
    encoded_bytes: c.Count


class Stages(Part):
    mac: c.Count
    output: c.Count
    weight_decoder: c.Count
    memory: c.Count


_IDLE = Stages(mac=0, output=0, weight_decoder=0, memory=0)


class Traffic(Part):
    memory: c.Text
    port: Port
    direction: Direction
    kind: TrafficKind
    beats: c.Count
    bytes: c.Count


class Job(Part):
    operations: c.PositiveCount  #: that were one job: this one and those behind it
    cycles: c.Metric
    counters: tuple[c.Counter, ...]


class Operation(Part):
    index: c.Count  #: from 0, in the order in which the operations run
    instruction: c.Count  #: number of the program's instruction
    #: in one inference; all other figures are those of one call, but for `instructions`
    calls: c.PositiveCount
    runs_on: Literal["NPU", "CPU"]
    name: c.Text  #: of the NPU operation in the words of the command stream, or of the operator
    kind: Literal["conv", "matmul", "depthwise", "pool", "elementwise", "resize", "dma", "kernel"]
    delegate: c.Count | None = None
    offset: c.Count | None = None  #: of the operation in the command stream, in bytes
    #: number of the operation that Vela scheduled it for, among the delegate's in the compile record
    scheduled: c.Count | None = None
    vela: c.VelaOperation | None = None
    tosa: c.TosaOperation | None = None  #: absent when Vela added the operation
    source: c.SourceLine | None = None
    reason: c.Text | None = None  #: why the operator is not on the NPU
    shapes: Shapes | None = None  #: height, width, channels; a kernel's operator has its output's sizes
    dtypes: Dtypes | None = None
    #: over the weights, biases and scales that it reads of the program; absent when it reads none there
    constants_sha256: c.Sha256 | None = None
    weights: Weights | None = None  #: before and after Vela's compression
    bytes: c.Count | None = None  #: that a DMA transfer copies
    #: multiply-accumulates of weights or of a matrix; pooling and elementwise operations have none
    macs: c.Count | None = None
    #: modelled: by which the stream takes longer for the operation; estimated: Vela's, at the first of the
    #: NPU operations that it schedules as one
    cycles: tuple[c.Metric, ...] | None = None
    stages: Stages | None = None  #: cycles for which each stage of the pipeline is busy; they overlap
    #: of the MAC unit: MACs by MACs per cycle and the modelled cycles, at least those of the MAC unit
    utilisation: c.Share | None = None
    #: the slowest stage, by the memory's name where that is it; latency and start-up where waiting takes
    #: longer
    bound_by: c.Text | None = None
    traffic: tuple[Traffic, ...] | None = None
    scratch_bytes: c.Count | None = None  #: alive in the arena meanwhile, by Vela
    instructions: c.Metric | None = None  #: that the CPU executed in all calls of an inference
    #: of the processor in all calls of an inference, with memory that answers at once
    cpu_cycles: c.Metric | None = None
    #: counters of the NPU job that the operation was when the command stream was run in pieces
    job: Job | None = None

    @property
    def modelled_cycles(self) -> int:
        """Of one call; 0 where they are not known."""
        return cycles(self.cycles, "modelled") or 0

    @property
    def busy(self) -> Stages:
        """The cycles for which each stage works; 0 where they are not known."""
        return self.stages or _IDLE

    @property
    def operator(self) -> str:
        """The TOSA operator that it comes from; empty where that is not known."""
        return self.tosa.operator if self.tosa is not None else ""

    @property
    def ifm(self) -> tuple[int, ...]:
        """The shape of the IFM; empty where it is not known."""
        return (self.shapes.ifm or ()) if self.shapes is not None else ()

    @property
    def ofm(self) -> tuple[int, ...]:
        """The shape of the OFM; empty where it is not known."""
        return (self.shapes.ofm or ()) if self.shapes is not None else ()

    def moved_bytes(self, direction: str) -> int:
        """Bytes that are read or written (`direction`) through the NPU's ports."""
        return sum(row.bytes for row in self.traffic or () if row.direction == direction)


class Delegate(Part):
    index: c.Count
    calls: c.PositiveCount
    cycles: tuple[c.Metric, ...]  #: of one call
    #: until the first command is decoded; the operations' cycles come on top
    start_cycles: c.Count | None = None
    commands: Traffic
    #: of the processor in all calls of an inference: the interpreter, copies, driver and interrupt. It waits
    #: for the NPU in none of them
    cpu_cycles: c.Metric | None = None


class MemoryKind(Part):
    kind: TrafficKind
    direction: Direction
    bytes: c.Count


class Bursts(Part):
    direction: Direction
    bytes: c.PositiveCount
    count: c.PositiveCount


class Memory(Part):
    memory: c.Text
    port: Port
    read_beats: c.Count
    write_beats: c.Count
    read_bytes: c.Count
    write_bytes: c.Count
    kinds: tuple[MemoryKind, ...]
    #: AXI bursts by length; absent where the system configuration does not say how long a burst is
    bursts: tuple[Bursts, ...] | None = None
    average_bytes_per_s: c.Amount | None = None
    peak_bytes_per_s: c.Amount | None = None  #: that the system configuration allows


class MacsPerCycle(Part):
    ideal: c.Amount
    modelled: c.Amount | None = None
    estimated: c.Amount | None = None
    measured: c.Amount | None = None

    def known(self) -> list[tuple[c.Source, c.Number]]:
        """The sources that have a figure, with it."""
        rows: tuple[tuple[c.Source, c.Number | None], ...] = (
            ("modelled", self.modelled),
            ("estimated", self.estimated),
            ("measured", self.measured),
        )
        return [(source, value) for source, value in rows if value is not None]


class Jobs(Part):
    count: c.PositiveCount
    cycles: c.Metric


class NpuTotals(Part):
    operations: c.Count
    macs: c.Count
    cycles: tuple[c.Metric, ...]
    macs_per_cycle: MacsPerCycle
    jobs: Jobs | None = None  #: of an inference whose command streams were run in pieces


class CpuTotals(Part):
    operators: c.Count
    instructions: c.Metric | None = None
    core: c.Core | None = None  #: the core that the cycles are modelled for
    cycles: c.Metric | None = None  #: of an inference, with memory that answers at once
    parts: c.Some[c.CpuPart] | None = None  #: of an inference, each name once


class Speed(Part):
    source: c.Source
    inference_s: c.Amount
    inferences_per_s: c.Amount
    tera_operations_per_s: c.Amount


class Totals(Part):
    npu: NpuTotals
    cpu: CpuTotals
    #: that the NPU alone would allow at the clock; the CPU's time is not in it
    speed: tuple[Speed, ...] | None = None


class VelaEstimates(Part):
    delegate: c.Count
    estimates: tuple[c.Estimate, ...]


class PhaseCycles(Part):
    total: c.Count
    min: c.Count
    median: c.Count
    max: c.Count


class Phase(Part):
    name: PhaseName
    first_step: c.Count
    steps: c.PositiveCount
    npu_cycles: PhaseCycles  #: of the whole phase, and of a step


class Profile(Derived[Literal["pass", "fail"]], tag_field="schema", tag="profile/1"):
    """Where the cycles and bytes of an inference go."""

    model: c.Model
    target: c.Target | None = None
    priced: c.Priced | None = None
    #: that the run was on; absent, as the simulator, for a bare command stream, which does not run
    board: c.BoardName | None = None
    simulator: c.Simulator | None = None
    clock: Clock | None = None  #: of the NPU
    operations: tuple[Operation, ...]
    delegates: tuple[Delegate, ...]
    memories: tuple[Annotated[Memory, Meta(description="traffic of one inference as modelled")], ...]
    totals: Totals
    #: the steps of a sequence in two phases; absent for one inference
    phases: Annotated[tuple[Phase, ...], Meta(min_length=2, max_length=2)] | None = None
    time: TimeLine | None = None
    vela: tuple[VelaEstimates, ...] | None = None  #: Vela's network summary of each delegate
    #: nodes of the lowered graph by operator, as ExecuTorch counts them
    delegation: tuple[c.Delegation, ...] | None = None
    unavailable: c.UnavailableMembers
    host: c.Host

    @property
    def caveat(self) -> str:
        """What a total must say of its system; empty where it is the one that the program was compiled for."""
        return "" if self.priced is None else self.priced.caveat

    @property
    def simulator_name(self) -> str:
        """Of the simulator that ran the program; empty for a bare command stream, which did not run."""
        return "" if self.simulator is None else self.simulator.name

    @property
    def vela_version(self) -> str:
        """Of the Vela that made the estimates; empty where that is not known."""
        return next((row.version for row in self.provenance.tools if row.name == "ethos-u-vela"), "")

    @property
    def headline(self) -> tuple[Speed, ...]:
        """The times of an inference, which are no headline where they are for another system."""
        return () if self.caveat else self.totals.speed or ()


def cycles(metrics: tuple[c.Metric, ...] | None, source: str) -> int | None:
    """Cycles from `source`, the sum where there are several; None where there are none."""
    found = [int(row.value) for row in metrics or () if row.source == source]
    return sum(found) if found else None


def npu_operations_are_whole(record: Profile) -> Iterator[str]:
    """An operation on the NPU has its place in a command stream, and the figures that come with it."""
    for row in record.operations:
        if row.runs_on == "NPU":
            missing = (name for name in _ON_THE_NPU if getattr(row, name) is None)
            yield from (f"operation {row.index} runs on the NPU and has no {name}" for name in missing)


def cycles_are_given_once(record: Profile) -> Iterator[str]:
    """Of each operation, delegate and inference a source says its cycles once."""
    rows = [
        *((f"operation {row.index}", row.cycles or ()) for row in record.operations),
        *((f"delegate {row.index}", row.cycles) for row in record.delegates),
        ("the inference", record.totals.npu.cycles),
    ]
    for what, metrics in rows:
        for source, count in collections.Counter(row.source for row in metrics).items():
            if count > 1:
                yield f"{what} has cycles '{source}' {count} times"


def profile_adds_up(record: Profile) -> Iterator[str]:
    """A delegate's modelled cycles are those of its operations and its start."""
    for delegate in record.delegates:
        whole = cycles(delegate.cycles, "modelled")
        if delegate.start_cycles is None or whole is None:
            continue
        rows = [row for row in record.operations if row.delegate == delegate.index]
        parts = delegate.calls * delegate.start_cycles + sum(row.calls * row.modelled_cycles for row in rows)
        if parts != delegate.calls * whole:
            yield f"delegate {delegate.index} takes {delegate.calls * whole} cycles, its operations {parts}"


def bursts_move_the_beats(record: Profile) -> Iterator[str]:
    """The bursts of a memory move the bytes of its beats."""
    for memory in record.memories:
        for verb, size in (("read", memory.read_bytes), ("write", memory.write_bytes)):
            moved = sum(row.count * row.bytes for row in memory.bursts or () if row.direction == verb)
            if memory.bursts is not None and moved != size:
                yield f"the bursts of {memory.memory} that {verb} move {moved} bytes, its beats {size}"


KIND = RecordKind(
    Profile,
    (
        *(rules.unavailable_is_absent, rules.model_is_that_of_the_provenance),
        *(rules.measured_on_the_fvp_alone, npu_operations_are_whole, cycles_are_given_once),
        *(profile_adds_up, bursts_move_the_beats, rules.priced_is_a_system, time_adds_up),
    ),
    file="profile.json",
    role="record of the profile",
)
