"""The sums of a profile, in the terms of Vela's network summary."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ethosu_sdk.commands.profile import npu_rows
from ethosu_sdk.commands.profile.npu_rows import DelegateProfile
from ethosu_sdk.npu.timing.system_config import Memory
from ethosu_sdk.records import Record

_OPERATIONS_PER_MAC = 2


@dataclass(frozen=True)
class Sums:
    """What is summed up: rows of the profile, `calls` of each delegate in an inference, and the records behind."""

    rows: Sequence[Record]
    calls: Mapping[int, int]
    delegates: Sequence[DelegateProfile]
    compiled: Record | None
    run: Record


def parts(sums: Sums, clock_hz: float | None) -> Record:
    """The members `delegates`, `memories`, `totals` and, from the compile record, `vela` and `delegation`."""
    delegates = [_delegate(found, sums) for found in sums.delegates if sums.calls.get(found.index)]
    cycles = _summed_cycles(delegates)
    moved = list(_traffic(delegates, sums))
    compiled = sums.compiled or {}
    estimates = [
        {"delegate": row["index"], "estimates": row["estimates"]} for row in compiled.get("delegates", ())
    ]
    return {
        "delegates": delegates,
        "memories": [_memory(row, moved, cycles, clock_hz) for row in npu_rows.memories(sums.delegates)],
        "totals": {
            "npu": _npu(sums, cycles),
            "cpu": _cpu(sums),
            **({} if clock_hz is None else {"speed": list(_speed(sums, cycles, clock_hz))}),
        },
        **({"vela": estimates} if estimates else {}),
        **({"delegation": compiled["delegation"]} if "delegation" in compiled else {}),
    }


def _delegate(found: DelegateProfile, sums: Sums) -> Record:
    """A delegate with its cycles in one call, each by its source."""
    cycles = []
    if found.stream is not None:
        cycles.append(_cycles(found.stream.cycles, "modelled"))
    cycles += [_cycles(int(value), "estimated") for value in _estimated(found.index, sums)]
    ran = [row["npu_cycles"] for row in _ran(found.index, sums) if "npu_cycles" in row]
    if ran and not any(row["source"] == ran[0]["source"] for row in cycles):
        cycles.append(ran[0])
    return {
        "index": found.index,
        "calls": sums.calls[found.index],
        "cycles": cycles,
        **({} if found.stream is None else {"start_cycles": found.stream.start_cycles}),
        "commands": npu_rows.fetched_commands(found),
    }


def _cycles(value: int, source: str) -> Record:
    return {"value": value, "unit": "cycles", "source": source}


def _estimated(index: int, sums: Sums) -> Iterator[float]:
    for row in (sums.compiled or {}).get("delegates", ()):
        if row["index"] == index:
            yield from (part["value"] for part in row["estimates"] if part["name"] == "total_cycles")


def _ran(index: int, sums: Sums) -> Iterator[Record]:
    """The entries of the run record of calls of a delegate."""
    calls = {row["instruction"] for row in sums.rows if row.get("delegate") == index}
    yield from (row for row in sums.run["operators"] if row["instruction"] in calls)


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
    for row in sums.rows:
        for moved in row.get("traffic", ()):
            yield {**moved, "bytes": row["calls"] * moved["bytes"], "beats": row["calls"] * moved["beats"]}
    for row in delegates:
        moved = row["commands"]
        yield {**moved, "bytes": row["calls"] * moved["bytes"], "beats": row["calls"] * moved["beats"]}


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


def _by_kind(moved: Sequence[Record]) -> list[Record]:
    found: defaultdict[tuple[str, str], int] = defaultdict(int)
    for row in moved:
        found[row["kind"], row["direction"]] += row["bytes"]
    return [{"kind": kind, "direction": way, "bytes": size} for (kind, way), size in found.items()]


def _npu(sums: Sums, cycles: Mapping[str, int]) -> Record:
    rows = [row for row in sums.rows if row["runs_on"] == "NPU"]
    macs = sum(row["calls"] * row["macs"] for row in rows)
    most = sums.delegates[0].config.macs if sums.delegates else 0
    per_cycle = {source: round(macs / value, 3) for source, value in cycles.items() if value}
    return {
        "operations": sum(row["calls"] for row in rows),
        "macs": macs,
        "cycles": [_cycles(value, source) for source, value in cycles.items()],
        "macs_per_cycle": {"ideal": most, **per_cycle},
    }


def _cpu(sums: Sums) -> Record:
    rows = [row for row in sums.rows if row["runs_on"] == "CPU"]
    counted = [row["instructions"] for row in rows if "instructions" in row]
    found: Record = {"operators": sum(row["calls"] for row in rows)}
    if rows and len(counted) == len(rows):
        found["instructions"] = {**counted[0], "value": sum(row["value"] for row in counted)}
    return found


def _speed(sums: Sums, cycles: Mapping[str, int], clock_hz: float) -> Iterator[Record]:
    """Time, inferences and operations per second that the NPU alone would allow, by the source of its cycles."""
    macs = sum(row["calls"] * row["macs"] for row in sums.rows if row["runs_on"] == "NPU")
    for source, value in cycles.items():
        if value:
            yield {
                "source": source,
                "inference_s": value / clock_hz,
                "inferences_per_s": clock_hz / value,
                "tera_operations_per_s": _OPERATIONS_PER_MAC * macs * clock_hz / value / 1e12,
            }
