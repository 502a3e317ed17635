"""``profile/1``: schemas/profile.v1.schema.json says what each member means."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Literal

from ethosu_sdk.records import rules
from ethosu_sdk.records.common import (
    Core,
    Counter,
    CpuPart,
    Delegation,
    Derived,
    Estimate,
    Host,
    Metric,
    Model,
    Number,
    Priced,
    Simulator,
    Source,
    SourceLine,
    Target,
    TosaOperation,
    Unavailable,
    VelaOperation,
)
from ethosu_sdk.records.kind import Part, RecordKind
from ethosu_sdk.records.parts.time_line import Clock, TimeLine, time_adds_up

TrafficKind = Literal[
    "commands", "ifm", "ifm_stream", "weights", "fast_weights", "scales", "ofm", "copy", "copy_write"
]

# What every operation on the NPU has: the command stream alone tells it.
_ON_THE_NPU = ("delegate", "offset", "macs", "cycles", "stages", "utilisation", "bound_by", "traffic")


class Shapes(Part):
    ifm: tuple[int, ...] | None = None
    ofm: tuple[int, ...] | None = None
    block: tuple[int, ...] | None = None
    kernel: tuple[int, ...] | None = None
    stride: tuple[int, ...] | None = None


class Dtypes(Part):
    ifm: str | None = None
    ofm: str | None = None


class Weights(Part):
    bytes: int
    encoded_bytes: int


class Stages(Part):
    mac: int
    output: int
    weight_decoder: int
    memory: int


_IDLE = Stages(mac=0, output=0, weight_decoder=0, memory=0)


class Traffic(Part):
    memory: str
    port: Literal[0, 1]
    direction: Literal["read", "write"]
    kind: TrafficKind
    beats: int
    bytes: int


class Job(Part):
    operations: int
    cycles: Metric
    counters: tuple[Counter, ...]


class Operation(Part):
    index: int
    instruction: int
    calls: int
    runs_on: Literal["NPU", "CPU"]
    name: str
    kind: Literal["conv", "matmul", "depthwise", "pool", "elementwise", "resize", "dma", "kernel"]
    delegate: int | None = None
    offset: int | None = None
    scheduled: int | None = None
    vela: VelaOperation | None = None
    tosa: TosaOperation | None = None
    source: SourceLine | None = None
    reason: str | None = None
    shapes: Shapes | None = None
    dtypes: Dtypes | None = None
    constants_sha256: str | None = None
    weights: Weights | None = None
    bytes: int | None = None
    macs: int | None = None
    cycles: tuple[Metric, ...] | None = None
    stages: Stages | None = None
    utilisation: Number | None = None
    bound_by: str | None = None
    traffic: tuple[Traffic, ...] | None = None
    scratch_bytes: int | None = None
    instructions: Metric | None = None
    cpu_cycles: Metric | None = None
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
    index: int
    calls: int
    cycles: tuple[Metric, ...]
    start_cycles: int | None = None
    commands: Traffic
    cpu_cycles: Metric | None = None


class MemoryKind(Part):
    kind: TrafficKind
    direction: Literal["read", "write"]
    bytes: int


class Bursts(Part):
    direction: Literal["read", "write"]
    bytes: int
    count: int


class Memory(Part):
    memory: str
    port: Literal[0, 1]
    read_beats: int
    write_beats: int
    read_bytes: int
    write_bytes: int
    kinds: tuple[MemoryKind, ...]
    bursts: tuple[Bursts, ...] | None = None
    average_bytes_per_s: Number | None = None
    peak_bytes_per_s: Number | None = None


class MacsPerCycle(Part):
    ideal: Number
    modelled: Number | None = None
    estimated: Number | None = None
    measured: Number | None = None

    def known(self) -> list[tuple[Source, Number]]:
        """The sources that have a figure, with it."""
        rows: tuple[tuple[Source, Number | None], ...] = (
            ("modelled", self.modelled),
            ("estimated", self.estimated),
            ("measured", self.measured),
        )
        return [(source, value) for source, value in rows if value is not None]


class Jobs(Part):
    count: int
    cycles: Metric


class NpuTotals(Part):
    operations: int
    macs: int
    cycles: tuple[Metric, ...]
    macs_per_cycle: MacsPerCycle
    jobs: Jobs | None = None


class CpuTotals(Part):
    operators: int
    instructions: Metric | None = None
    core: Core | None = None
    cycles: Metric | None = None
    parts: tuple[CpuPart, ...] | None = None


class Speed(Part):
    source: Source
    inference_s: Number
    inferences_per_s: Number
    tera_operations_per_s: Number


class Totals(Part):
    npu: NpuTotals
    cpu: CpuTotals
    speed: tuple[Speed, ...] | None = None


class VelaEstimates(Part):
    delegate: int
    estimates: tuple[Estimate, ...]


class PhaseCycles(Part):
    total: int
    min: int
    median: int
    max: int


class Phase(Part):
    name: Literal["first step", "steady state", "prefill", "decode"]
    first_step: int
    steps: int
    npu_cycles: PhaseCycles


class Profile(Derived[Literal["pass", "fail"]], tag_field="schema", tag="profile/1"):
    """Where the cycles and bytes of an inference go."""

    model: Model
    target: Target | None = None
    priced: Priced | None = None
    board: Literal["corstone-300", "corstone-320", "host"]
    simulator: Simulator
    clock: Clock | None = None
    operations: tuple[Operation, ...]
    delegates: tuple[Delegate, ...]
    memories: tuple[Memory, ...]
    totals: Totals
    phases: tuple[Phase, ...] | None = None
    time: TimeLine | None = None
    vela: tuple[VelaEstimates, ...] | None = None
    delegation: tuple[Delegation, ...] | None = None
    unavailable: tuple[Unavailable, ...]
    host: Host

    @property
    def caveat(self) -> str:
        """What a total must say of its system; empty where it is the one that the program was compiled for."""
        return "" if self.priced is None else self.priced.caveat

    @property
    def vela_version(self) -> str:
        """Of the Vela that made the estimates; empty where that is not known."""
        return next((row.version for row in self.provenance.tools if row.name == "ethos-u-vela"), "")

    @property
    def headline(self) -> tuple[Speed, ...]:
        """The times of an inference, which are no headline where they are for another system."""
        return () if self.caveat else self.totals.speed or ()


def cycles(metrics: tuple[Metric, ...] | None, source: str) -> int | None:
    """Cycles from `source`, the sum where there are several; None where there are none."""
    found = [int(row.value) for row in metrics or () if row.source == source]
    return sum(found) if found else None


def npu_operations_are_whole(record: Profile) -> list[str]:
    """An operation on the NPU has its place in a command stream, and the figures that come with it."""
    return [
        f"operation {row.index} runs on the NPU and has no {name}"
        for row in record.operations
        if row.runs_on == "NPU"
        for name in _ON_THE_NPU
        if getattr(row, name) is None
    ]


def cycles_are_given_once(record: Profile) -> list[str]:
    """Of each operation, delegate and inference a source says its cycles once."""
    return [
        f"{what} has cycles '{source}' {count} times"
        for what, metrics in _cycles(record)
        for source, count in collections.Counter(row.source for row in metrics).items()
        if count > 1
    ]


def _cycles(record: Profile) -> Iterator[tuple[str, tuple[Metric, ...]]]:
    yield from ((f"operation {row.index}", row.cycles or ()) for row in record.operations)
    yield from ((f"delegate {row.index}", row.cycles) for row in record.delegates)
    yield "the inference", record.totals.npu.cycles


def profile_adds_up(record: Profile) -> list[str]:
    """A delegate's modelled cycles are those of its operations and its start."""
    found = []
    for delegate in record.delegates:
        whole = cycles(delegate.cycles, "modelled")
        if delegate.start_cycles is None or whole is None:
            continue
        rows = [row for row in record.operations if row.delegate == delegate.index]
        parts = delegate.calls * delegate.start_cycles
        parts += sum(row.calls * (cycles(row.cycles, "modelled") or 0) for row in rows)
        if parts != delegate.calls * whole:
            found.append(
                f"delegate {delegate.index} takes {delegate.calls * whole} cycles, its operations {parts}"
            )
    return found


def bursts_move_the_beats(record: Profile) -> list[str]:
    """The bursts of a memory move the bytes of its beats."""
    return [
        f"the bursts of {memory.memory} that {verb} move {moved} bytes, its beats {size}"
        for memory in record.memories
        if memory.bursts is not None
        for verb, size in (("read", memory.read_bytes), ("write", memory.write_bytes))
        if (moved := sum(row.count * row.bytes for row in memory.bursts if row.direction == verb)) != size
    ]


KIND = RecordKind(
    Profile,
    (
        rules.unavailable_is_absent,
        rules.model_is_that_of_the_provenance,
        rules.measured_on_the_fvp_alone,
        npu_operations_are_whole,
        cycles_are_given_once,
        profile_adds_up,
        bursts_move_the_beats,
        rules.priced_is_a_system,
        time_adds_up,
    ),
    file="profile.json",
    role="record of the profile",
)
