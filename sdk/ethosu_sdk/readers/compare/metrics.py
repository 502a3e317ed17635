"""The figures of records by name, as a policy speaks of them: ``npu.cycles``, ``memory.regions.SRAM`` …"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ethosu_sdk.readers.compare.subjects import Compared
from ethosu_sdk.records import common
from ethosu_sdk.records.build import Build
from ethosu_sdk.records.common import Source
from ethosu_sdk.records.compare import KindName
from ethosu_sdk.records.compile import CheckedOutput, Compilation
from ethosu_sdk.records.parts import time_line
from ethosu_sdk.records.parts.accuracy import Pair
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import NpuCounter, ReferenceOutput, Run

BYTES, CALLS, CYCLES = "bytes", "calls", "cycles"
# Figures of an accuracy pair, and their units.
_ACCURACY = {"equal": "elements", "sqnr_db": "dB", "cosine": "", "max_abs_error": ""}
# What other records repeat of the run's.
_TOLD_BY_THE_RUN = (
    *("profile.time.*", "profile.cycles.modelled", "profile.cycles.measured", "profile.cpu_*"),
    *("firmware.regions.*", "firmware.pools.*", "compile.pte_bytes"),
)


@dataclass(frozen=True)
class Metric:
    """A figure of a record. `value` is a text where equality alone has a meaning; `source` is None for what is
    neither measured, modelled nor estimated but simply so."""

    name: str
    value: float | int | str
    unit: str = ""
    source: Source | None = None


def of(records: Mapping[KindName, Compared]) -> dict[str, Metric]:
    """The figures of records by their names; `records` go by their kinds, such as ``run``."""
    found = [metric for kind, record in records.items() for metric in _READERS[kind](record)]
    told = _TOLD_BY_THE_RUN if "run" in records else ()
    return {row.name: row for row in found if not any(fnmatchcase(row.name, name) for name in told)}


def _stated(name: str, row: common.Metric | common.Estimate | NpuCounter) -> Metric:
    """A member of a record that has value, unit and source."""
    return Metric(name, row.value, row.unit, row.source)


def _run(record: Run) -> Iterator[Metric]:
    yield Metric("run.failed_checks", sum(row.status == "fail" for row in record.verdict.checks), "checks")
    yield Metric("model.bytes", record.model.bytes, BYTES)
    for row in record.outputs:
        shape = "x".join(map(str, row.shape))
        yield Metric(f"outputs.{row.index}", f"{row.dtype} {shape or 'scalar'}, SHA-256 {row.sha256}")
    npu = record.npu
    if npu is not None:
        if npu.cycles is not None:
            yield _stated("npu.cycles", npu.cycles)
        yield Metric("npu.delegate_calls", npu.delegate_calls, CALLS)
        yield from (_stated(f"npu.counters.{counter.event}", counter) for counter in npu.counters)
    yield Metric("cpu.operators", sum(row.kind == "kernel" for row in record.operators), CALLS)
    counted = [row.instructions.value for row in record.operators if row.instructions is not None]
    if counted:
        yield Metric("cpu.instructions", sum(counted), "instructions", "counted")
    yield from _memory("memory", record)
    yield from _time("time", record)
    for output in record.reference.outputs if record.reference is not None else ():
        yield from _figures(f"reference.{output.index}", output, ("equal", "max_abs_error", "sqnr_db"))


def _time(prefix: str, record: Run | Profile) -> Iterator[Metric]:
    """The time of an inference, of each processor, and of each part over all of its calls."""
    time = time_line.headline(record)
    if time is None:
        return
    found = {"total": time.total.duration_s, "npu": time.sums.npu_s, "cpu": time.sums.cpu_s}
    parts: defaultdict[str, float] = defaultdict(float)
    for row in time.parts:
        if row.on == "CPU":
            parts[row.name or row.what] += row.duration_s
    for name, duration in (*found.items(), *((f"parts.{name}", value) for name, value in parts.items())):
        yield Metric(f"{prefix}.{name}_ms", duration * 1e3, "ms", time.total.source)


def _memory(prefix: str, record: Run | Build) -> Iterator[Metric]:
    for part, rows in (("regions", record.memory.regions), ("pools", record.memory.pools)):
        for row in rows:
            yield Metric(f"{prefix}.{part}.{row.name}", row.used_bytes, BYTES)


def _profile(record: Profile) -> Iterator[Metric]:
    npu, cpu = record.totals.npu, record.totals.cpu
    for row in npu.cycles:
        yield _stated(f"profile.cycles.{row.source}", row)
    yield Metric("profile.npu_operations", npu.operations, "operations")
    yield Metric("profile.cpu_operators", cpu.operators, CALLS)
    yield Metric("profile.macs", npu.macs, "operations")
    yield from _time("profile.time", record)
    if cpu.instructions is not None:
        yield _stated("profile.cpu_instructions", cpu.instructions)
    for memory in record.memories:
        name = f"profile.traffic.{memory.memory}.port{memory.port}"
        yield Metric(f"{name}.read_bytes", memory.read_bytes, BYTES, "modelled")
        yield Metric(f"{name}.write_bytes", memory.write_bytes, BYTES, "modelled")


def _compile(record: Compilation) -> Iterator[Metric]:
    yield Metric("compile.failures", int(record.status == "fail"), "checks")
    yield Metric("compile.pte_bytes", record.model.bytes, BYTES)
    yield Metric("compile.cpu_calls", sum(row.calls for row in record.cpu_operators), CALLS)
    yield Metric("compile.delegates", len(record.delegates), "delegates")
    if record.delegation is not None:
        yield Metric("compile.delegated", sum(row.delegated for row in record.delegation), "operators")
        yield Metric(
            "compile.not_delegated", sum(row.not_delegated for row in record.delegation), "operators"
        )
    for delegate in record.delegates:
        name = f"compile.{delegate.index}"
        yield Metric(f"{name}.payload_bytes", delegate.payload_bytes, BYTES)
        yield Metric(f"{name}.scratch_bytes", delegate.scratch_bytes, BYTES)
        yield Metric(f"{name}.fast_scratch_bytes", delegate.fast_scratch_bytes, BYTES)
        yield from (_stated(f"{name}.estimates.{part.name}", part) for part in delegate.estimates)
    yield from _accuracy(record)


def _accuracy(record: Compilation) -> Iterator[Metric]:
    for row in record.check.outputs or ():
        yield from _figures(f"check.{row.index}", row)
    for pair in record.accuracy.pairs if record.accuracy is not None else ():
        name = f"accuracy.{pair.reference}-{pair.candidate}.{pair.output}"
        yield from _figures(name, pair)
        if pair.top1 is not None:
            yield Metric(f"{name}.top1", pair.top1.share)


def _figures(
    prefix: str, row: CheckedOutput | Pair | ReferenceOutput, names: Iterable[str] = _ACCURACY
) -> Iterator[Metric]:
    for name in names:
        value = getattr(row, name, None)
        if value is not None:
            yield Metric(f"{prefix}.{name}", value, _ACCURACY[name])


def _build(record: Build) -> Iterator[Metric]:
    yield Metric("firmware.elf_bytes", record.elf.bytes, BYTES)
    yield Metric("firmware.kernels", len(record.kernels), "kernels")
    yield from _memory("firmware", record)
    sections: Counter[str] = Counter()
    for row in record.sections:
        sections[row.name] += row.bytes
    for name, size in sections.items():
        yield Metric(f"firmware.sections.{name.lstrip('.')}", size, BYTES)


_READERS: dict[KindName, Callable[[Any], Iterator[Metric]]] = {
    "run": _run,
    "profile": _profile,
    "compile": _compile,
    "build": _build,
}
