"""The sums of a profile in the terms of Vela's network summary, its phases, and its time line."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ethosu_sdk.analysis import profile_rows
from ethosu_sdk.analysis.profile_rows import ESTIMATED, DelegateProfile, metric
from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.npu.timing import traffic
from ethosu_sdk.npu.timing.systems import Memory
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.run import Cpu, Operator, Run, Step
from ethosu_sdk.run import time_line
from ethosu_sdk.run.time_line import TimeFacts
from ethosu_sdk.simulate.simulation import MODELLED

# ---- steps.profile.phases
# The phases of a sequence: its first step and the steady state, or prefill and decode.


def phases_member(run: Run, prefill: int | None) -> Record:
    """The member `phases`; empty for a run of one inference, or one without cycles. The first `prefill` steps are a
    phase, by default the first alone. UsageError where there are not so many."""
    steps = () if run.sequence is None else run.sequence.steps
    if prefill is not None and prefill >= len(steps):
        raise UsageError(
            f"--prefill {prefill} leaves no step to decode: the run has {len(steps) or 1}",
            "give a run more steps with --steps",
        )
    if len(steps) < 2 or any(row.npu_cycles is None for row in steps):
        return {}
    names = ("first step", "steady state") if prefill is None else ("prefill", "decode")
    cut = 1 if prefill is None else prefill
    return {"phases": [_phase(names[0], steps[:cut]), _phase(names[1], steps[cut:])]}


def _phase(name: str, steps: Sequence[Step]) -> Record:
    cycles = [row.npu_cycles or 0 for row in steps]
    return {
        "name": name,
        "first_step": steps[0].step,
        "steps": len(steps),
        "npu_cycles": {
            "total": sum(cycles),
            "min": min(cycles),
            "median": statistics.median_low(cycles),
            "max": max(cycles),
        },
    }


# ---- steps.profile.profile_time
# The time line of a profile: the run's, with what the NPU's operations and Vela's estimate tell of it.

_ENGINES = {"mac": "mac_percent", "weight_decoder": "weight_decoder_percent", "memory": "memory_percent"}


def profile_time_member(
    facts: TimeFacts, parts: Record, rows: Sequence[Record]
) -> tuple[Record, list[Record]]:
    """The member `time` and what of it is unavailable, from the profile's `delegates`, `totals` and operations."""
    cycles = {row["source"]: row["value"] for row in parts["totals"]["npu"]["cycles"]}
    line, missing = time_line.time_of_run(facts)
    found = {} if line is None else {"time": line.to_json()}
    unavailable = [row.to_json() for row in missing]
    clock = facts.npu_clock
    if not found or clock is None or not cycles.get("modelled"):
        return found, unavailable
    active = cycles["modelled"]
    idle = max(0, round(found["time"]["total"]["duration_s"] * clock.hz) - active)
    more = {"engines": {**_engines(rows, active), "active_cycles": active, "idle_cycles": idle}}
    if cycles.get(ESTIMATED):
        more["vela"] = {"duration_s": cycles[ESTIMATED] / clock.hz}
    return {"time": {**found["time"], **more}}, unavailable


def _engines(rows: Sequence[Record], cycles: int) -> Record:
    """How much of the NPU's `cycles` its engines work, in percent.

    Operations overlap, and each counts the memory that it uses most: the sum can be more than all of the time.
    """
    work = {
        stage: sum(row["calls"] * row["stages"][stage] for row in rows if row["runs_on"] == "NPU")
        for stage in _ENGINES
    }
    return {name: min(100.0, 100 * work[stage] / cycles) for stage, name in _ENGINES.items()}


# ---- steps.profile.totals
# The sums of a profile, in the terms of Vela's network summary.

_OPERATIONS_PER_MAC = 2


@dataclass(frozen=True)
class Sums:
    """What is summed up: rows of the profile, the run record's entries of each delegate's calls in an inference,
    the compile record, and what the run says of the CPU."""

    rows: Sequence[Record]
    ran: Mapping[int, Sequence[Operator]]
    delegates: Sequence[DelegateProfile]
    compiled: Compilation | None
    cpu: Cpu

    @property
    def macs(self) -> int:
        """Of one inference."""
        return sum(row["calls"] * row["macs"] for row in self.rows if row["runs_on"] == "NPU")


def total_parts(sums: Sums, clock_hz: float | None) -> Record:
    """The members `delegates`, `memories`, `totals` and, from the compile record, `vela` and `delegation`."""
    delegates = [_delegate(found, sums) for found in sums.delegates if found.index in sums.ran]
    cycles = _summed_cycles(delegates)
    moved = list(_traffic(delegates, sums))
    compiled = {} if sums.compiled is None else _of_compile(sums.compiled)
    return {
        "delegates": delegates,
        "memories": [
            {**_memory(row, moved, cycles, clock_hz), **_bursts(row, sums)}
            for row in profile_rows.profiled_memories(sums.delegates)
        ],
        "totals": {
            "npu": _npu(sums, cycles),
            "cpu": _cpu(sums),
            **({} if clock_hz is None else {"speed": list(_speed(sums, cycles, clock_hz))}),
        },
        **compiled,
    }


def _of_compile(record: Compilation) -> Record:
    content = record.to_json()
    estimates = [{"delegate": row["index"], "estimates": row["estimates"]} for row in content["delegates"]]
    return {
        **({"vela": estimates} if estimates else {}),
        **{key: content[key] for key in ("delegation",) if key in content},
    }


def _delegate(found: DelegateProfile, sums: Sums) -> Record:
    """A delegate with its cycles in one call, each by its source."""
    ran = sums.ran[found.index]
    cycles = []
    if found.stream is not None:
        cycles.append(metric(found.stream.cycles, "cycles", MODELLED))
    cycles += [metric(int(value), "cycles", ESTIMATED) for value in _estimated(found.index, sums)]
    known = {row["source"] for row in cycles}
    counted = [row.npu_cycles.to_json() for row in ran if row.npu_cycles is not None]
    cycles += [row for row in counted[:1] if row["source"] not in known]
    return {
        "index": found.index,
        "calls": len(ran),
        "cycles": cycles,
        **({} if found.stream is None else {"start_cycles": found.stream.start_cycles}),
        "commands": profile_rows.fetched_commands(found),
        **profile_rows.summed_figures("cpu_cycles", [row.cpu_cycles for row in ran]),
    }


def _estimated(index: int, sums: Sums) -> Iterator[float]:
    for row in sums.compiled.delegates if sums.compiled is not None else ():
        if row.index == index:
            yield from (part.value for part in row.estimates if part.name == "total_cycles")


def _summed_cycles(delegates: Sequence[Record]) -> dict[str, int]:
    """Cycles of an inference by their source; without one that is not known of every delegate."""
    found: defaultdict[str, int] = defaultdict(int)
    times: Counter[str] = Counter()
    for row in delegates:
        for cycles in row["cycles"]:
            found[cycles["source"]] += row["calls"] * cycles["value"]
            times[cycles["source"]] += 1
    return {source: value for source, value in found.items() if times[source] == len(delegates)}


def _traffic(delegates: Sequence[Record], sums: Sums) -> Iterator[Record]:
    """All that is moved in an inference, the command streams included."""
    each = [(row["calls"], moved) for row in sums.rows for moved in row.get("traffic", ())]
    for calls, moved in (*each, *((row["calls"], row["commands"]) for row in delegates)):
        yield {**moved, "bytes": calls * moved["bytes"], "beats": calls * moved["beats"]}


def _memory(
    memory: Memory, moved: Sequence[Record], cycles: Mapping[str, int], clock_hz: float | None
) -> Record:
    own = [row for row in moved if (row["memory"], row["port"]) == (memory.name, memory.interface)]
    read = [row for row in own if row["direction"] == "read"]
    written = [row for row in own if row["direction"] == "write"]
    size = sum(row["bytes"] for row in own)
    rates = {}
    if clock_hz is not None:
        rates["peak_bytes_per_s"] = memory.bytes_per_cycle * clock_hz
        if cycles.get("modelled"):
            rates["average_bytes_per_s"] = size * clock_hz / cycles["modelled"]
    return {
        "memory": memory.name,
        "port": memory.interface,
        "read_beats": sum(row["beats"] for row in read),
        "write_beats": sum(row["beats"] for row in written),
        "read_bytes": sum(row["bytes"] for row in read),
        "write_bytes": sum(row["bytes"] for row in written),
        "kinds": _by_kind(own),
        **rates,
    }


def _bursts(memory: Memory, sums: Sums) -> Record:
    """The bursts of an inference by direction and length.

    Nothing where a command stream's operations or the length of a burst are not known.
    """
    ran = [found for found in sums.delegates if found.index in sums.ran]
    found: Counter[tuple[str, int]] = Counter()
    for delegate in ran:
        if delegate.stream is None or not traffic.known(memory, delegate.config):
            return {}
        for key, count in profile_rows.delegate_bursts(delegate, memory).items():
            found[key] += len(sums.ran[delegate.index]) * count
    rows = [
        {"direction": direction, "bytes": size, "count": count}
        for (direction, size), count in sorted(found.items())
    ]
    return {"bursts": rows}


def _by_kind(moved: Sequence[Record]) -> list[Record]:
    found: defaultdict[tuple[str, str], int] = defaultdict(int)
    for row in moved:
        found[row["kind"], row["direction"]] += row["bytes"]
    return [{"kind": kind, "direction": way, "bytes": size} for (kind, way), size in found.items()]


def _npu(sums: Sums, cycles: Mapping[str, int]) -> Record:
    rows = [row for row in sums.rows if row["runs_on"] == "NPU"]
    macs = sums.macs
    most = sums.delegates[0].config.macs if sums.delegates else 0
    per_cycle = {source: round(macs / value, 3) for source, value in cycles.items() if value}
    return {
        "operations": sum(row["calls"] for row in rows),
        "macs": macs,
        "cycles": [metric(value, "cycles", source) for source, value in cycles.items()],
        "macs_per_cycle": {"ideal": most, **per_cycle},
        **_jobs(rows),
    }


def _jobs(rows: Sequence[Record]) -> Record:
    """The NPU jobs of one inference in pieces: how many, and the sum of their cycles."""
    jobs = [(row["calls"], row["job"]["cycles"]) for row in rows if "job" in row]
    if not jobs:
        return {}
    cycles = {**jobs[0][1], "value": sum(calls * row["value"] for calls, row in jobs)}
    return {"jobs": {"count": sum(calls for calls, _ in jobs), "cycles": cycles}}


def _cpu(sums: Sums) -> Record:
    rows = [row for row in sums.rows if row["runs_on"] == "CPU"]
    counted = [row["instructions"] for row in rows if "instructions" in row]
    found: Record = {"operators": sum(row["calls"] for row in rows)}
    if rows and len(counted) == len(rows):
        found["instructions"] = {**counted[0], "value": sum(row["value"] for row in counted)}
    if sums.cpu.cycles is not None:
        cpu = sums.cpu.to_json()
        found |= {"core": cpu["core"], "cycles": cpu["cycles"], "parts": cpu["parts"]}
    return found


def _speed(sums: Sums, cycles: Mapping[str, int], clock_hz: float) -> Iterator[Record]:
    """Time, inferences and operations per second that the NPU alone would allow, by the source of its cycles."""
    macs = sums.macs
    for source, value in cycles.items():
        if value:
            yield {
                "source": source,
                "inference_s": value / clock_hz,
                "inferences_per_s": clock_hz / value,
                "tera_operations_per_s": _OPERATIONS_PER_MAC * macs * clock_hz / value / 1e12,
            }
