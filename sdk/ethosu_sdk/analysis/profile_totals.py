"""The sums of a profile in the terms of Vela's network summary, its phases, and its time line."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from msgspec.structs import replace

from ethosu_sdk.analysis.profile_rows import DelegateProfile, cycles_metric, delegate_bursts, summed_metric
from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.npu.timing import traffic
from ethosu_sdk.npu.timing.systems import Memory
from ethosu_sdk.records import profile
from ethosu_sdk.records.common import Source, Unavailable
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.profile import Direction, Operation, Phase, Port, Traffic, TrafficKind
from ethosu_sdk.records.run import Cpu, Operator, Run, Step
from ethosu_sdk.records.time_line import Engines, TimeLine, VelaTime
from ethosu_sdk.run import time_line
from ethosu_sdk.run.time_line import TimeFacts

_OPERATIONS_PER_MAC = 2


@dataclass(frozen=True)
class Sums:
    """What is summed up: rows of the profile, the run record's entries of each delegate's calls in an inference, and
    the delegates with their figures for one call."""

    rows: Sequence[Operation]
    ran: Mapping[int, Sequence[Operator]]
    profiles: Sequence[DelegateProfile]
    delegates: tuple[profile.Delegate, ...]

    @property
    def cycles(self) -> dict[Source, int]:
        """Cycles of an inference by their source; without one that is not known of every delegate."""
        found: defaultdict[Source, int] = defaultdict(int)
        times: Counter[str] = Counter()
        for row in self.delegates:
            for cycles in row.cycles:
                found[cycles.source] += row.calls * int(cycles.value)
                times[cycles.source] += 1
        return {source: value for source, value in found.items() if times[source] == len(self.delegates)}

    @property
    def macs(self) -> int:
        return sum(row.calls * (row.macs or 0) for row in self.rows)


def delegate_totals(
    found: DelegateProfile, ran: Sequence[Operator], compiled: Compilation | None
) -> profile.Delegate:
    """A delegate with its cycles in one call, each by its source."""
    cycles = [] if found.stream is None else [cycles_metric(found.stream.cycles, "modelled")]
    cycles += [
        cycles_metric(int(estimate.value), "estimated")
        for row in (compiled.delegates if compiled is not None else ())
        if row.index == found.index
        for estimate in row.estimates
        if estimate.name == "total_cycles"
    ]
    known = {row.source for row in cycles}
    counted = [row.npu_cycles for row in ran if row.npu_cycles is not None]
    cycles += [row for row in counted[:1] if row.source not in known]
    return profile.Delegate(
        index=found.index,
        calls=len(ran),
        cycles=tuple(cycles),
        start_cycles=None if found.stream is None else found.stream.start_cycles,
        commands=found.fetched_commands,
        cpu_cycles=summed_metric([row.cpu_cycles for row in ran]),
    )


def memory_totals(sums: Sums, clock_hz: float | None) -> tuple[profile.Memory, ...]:
    """The traffic of an inference with every memory of the system that the delegates are priced with."""
    moved = list(_traffic(sums))
    systems = [row.system for row in sums.profiles]
    memories = dict.fromkeys(memory for row in systems for memory in (row.arena, row.cache, row.constants))
    return tuple(_memory(row, moved, sums, clock_hz) for row in memories)


def _traffic(sums: Sums) -> Iterator[Traffic]:
    each = [(row.calls, moved) for row in sums.rows for moved in row.traffic or ()]
    for calls, moved in (*each, *((row.calls, row.commands) for row in sums.delegates)):
        yield replace(moved, bytes=calls * moved.bytes, beats=calls * moved.beats)


def _memory(memory: Memory, moved: Sequence[Traffic], sums: Sums, clock_hz: float | None) -> profile.Memory:
    own = [row for row in moved if (row.memory, row.port) == (memory.name, memory.interface)]
    read = [row for row in own if row.direction == "read"]
    written = [row for row in own if row.direction == "write"]
    kinds: Counter[tuple[TrafficKind, Direction]] = Counter()
    for row in own:
        kinds[row.kind, row.direction] += row.bytes
    modelled, size = sums.cycles.get("modelled"), sum(row.bytes for row in own)
    return profile.Memory(
        memory=memory.name,
        port=cast(Port, memory.interface),
        read_beats=sum(row.beats for row in read),
        write_beats=sum(row.beats for row in written),
        read_bytes=sum(row.bytes for row in read),
        write_bytes=sum(row.bytes for row in written),
        kinds=tuple(
            profile.MemoryKind(kind=kind, direction=direction, bytes=count)
            for (kind, direction), count in kinds.items()
        ),
        bursts=_bursts(memory, sums),
        average_bytes_per_s=size * clock_hz / modelled if clock_hz is not None and modelled else None,
        peak_bytes_per_s=None if clock_hz is None else memory.bytes_per_cycle * clock_hz,
    )


def _bursts(memory: Memory, sums: Sums) -> tuple[profile.Bursts, ...] | None:
    found: Counter[tuple[Direction, int]] = Counter()
    for delegate in sums.profiles:
        ran = sums.ran.get(delegate.index)
        if ran is None:
            continue
        if delegate.stream is None or not traffic.has_burst_length(memory, delegate.config):
            return None
        for key, count in delegate_bursts(delegate, memory).items():
            found[key] += len(ran) * count
    return tuple(
        profile.Bursts(direction=direction, bytes=size, count=count)
        for (direction, size), count in sorted(found.items())
    )


def inference_totals(sums: Sums, cpu: Cpu, clock_hz: float | None) -> profile.Totals:
    """The sums of an inference, and the speed that the NPU alone would allow at its clock, by source of cycles."""
    macs, cycles = sums.macs, sums.cycles
    speed = (
        profile.Speed(
            source=source,
            inference_s=value / clock_hz,
            inferences_per_s=clock_hz / value,
            tera_operations_per_s=_OPERATIONS_PER_MAC * macs * clock_hz / value / 1e12,
        )
        for source, value in cycles.items()
        if clock_hz is not None and value
    )
    rows = [row for row in sums.rows if row.runs_on == "CPU"]
    return profile.Totals(
        npu=_npu(sums, macs, cycles),
        cpu=profile.CpuTotals(
            operators=sum(row.calls for row in rows),
            instructions=summed_metric([row.instructions for row in rows]),
            core=None if cpu.cycles is None else cpu.core,
            cycles=cpu.cycles,
            parts=None if cpu.cycles is None else cpu.parts,
        ),
        speed=None if clock_hz is None else tuple(speed),
    )


def _npu(sums: Sums, macs: int, cycles: Mapping[Source, int]) -> profile.NpuTotals:
    rows = [row for row in sums.rows if row.runs_on == "NPU"]
    jobs = [(row.calls, row.job.cycles) for row in rows if row.job is not None]
    per_cycle = {str(source): round(macs / value, 3) for source, value in cycles.items() if value}
    ideal = sums.profiles[0].config.macs if sums.profiles else 0
    return profile.NpuTotals(
        operations=sum(row.calls for row in rows),
        macs=macs,
        cycles=tuple(cycles_metric(value, source) for source, value in cycles.items()),
        macs_per_cycle=profile.MacsPerCycle(ideal=ideal, **per_cycle),
        jobs=profile.Jobs(
            count=sum(calls for calls, _ in jobs),
            cycles=replace(jobs[0][1], value=sum(calls * row.value for calls, row in jobs)),
        )
        if jobs
        else None,
    )


def sequence_phases(run: Run, prefill: int | None) -> tuple[Phase, ...] | None:
    """The phases of a sequence: its first step and the steady state, or the `prefill` steps of a prompt and decode.

    None for a run of one inference, or one without cycles. UsageError where there are not so many steps.
    """
    steps = () if run.sequence is None else run.sequence.steps
    if prefill is not None and prefill >= len(steps):
        raise UsageError(
            f"--prefill {prefill} leaves no step to decode: the run has {len(steps) or 1}",
            "give a run more steps with --steps",
        )
    if len(steps) < 2 or any(row.npu_cycles is None for row in steps):
        return None
    if prefill is None:
        return _phase("first step", steps[:1]), _phase("steady state", steps[1:])
    return _phase("prefill", steps[:prefill]), _phase("decode", steps[prefill:])


def _phase(name: profile.PhaseName, steps: Sequence[Step]) -> Phase:
    cycles = [row.npu_cycles or 0 for row in steps]
    return Phase(
        name=name,
        first_step=steps[0].step,
        steps=len(steps),
        npu_cycles=profile.PhaseCycles(
            total=sum(cycles), min=min(cycles), median=statistics.median_low(cycles), max=max(cycles)
        ),
    )


def inference_time(facts: TimeFacts, sums: Sums) -> tuple[TimeLine | None, list[Unavailable]]:
    """The time line of the run with what operations and Vela's estimate tell of the NPU; what is unavailable."""
    found, unavailable = time_line.time_of_run(facts)
    if found is None:
        return None, unavailable
    clock = facts.npu_clock
    active, estimated = sums.cycles.get("modelled"), sums.cycles.get("estimated")
    if clock is None or not active:
        return found, unavailable
    # Operations overlap, and each counts the memory that it uses most: the sum can be more than all of the time.
    work = (
        sum(row.calls * getattr(row.busy, stage) for row in sums.rows)
        for stage in ("mac", "weight_decoder", "memory")
    )
    mac, decoder, memory = (min(100.0, 100 * cycles / active) for cycles in work)
    return replace(
        found,
        engines=Engines(
            mac_percent=mac,
            weight_decoder_percent=decoder,
            memory_percent=memory,
            active_cycles=active,
            idle_cycles=max(0, round(found.total.duration_s * clock.hz) - active),
        ),
        vela=VelaTime(duration_s=estimated / clock.hz) if estimated else None,
    ), unavailable
