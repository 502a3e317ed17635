"""The figures of records by name, as a policy speaks of them: ``npu.cycles``, ``memory.regions.SRAM`` …"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ethosu_sdk.records import Record

BYTES, CALLS, CYCLES = "bytes", "calls", "cycles"
# Figures of an accuracy pair, and their units.
_ACCURACY = {"equal": "elements", "sqnr_db": "dB", "cosine": "", "max_abs_error": ""}
# What other records repeat of the run's.
_TOLD_BY_THE_RUN = (
    *("profile.cycles.modelled", "profile.cycles.measured", "profile.cpu_*"),
    *("firmware.regions.*", "firmware.pools.*", "compile.pte_bytes"),
)


@dataclass(frozen=True)
class Metric:
    """A figure of a record. `value` is a text where equality alone has a meaning; `source` is empty for what is
    neither measured, modelled nor estimated but simply so."""

    name: str
    value: float | int | str
    unit: str = ""
    source: str = ""


def of(records: Mapping[str, Record]) -> dict[str, Metric]:
    """The figures of records by their names; `records` go by their kinds, such as ``run``."""
    found = [metric for kind, record in records.items() for metric in _READERS[kind](record)]
    told = _TOLD_BY_THE_RUN if "run" in records else ()
    return {row.name: row for row in found if not any(fnmatchcase(row.name, name) for name in told)}


def _stated(name: str, row: Record) -> Metric:
    """A member of a record that has value, unit and source."""
    return Metric(name, row["value"], row["unit"], row["source"])


def _run(record: Record) -> Iterator[Metric]:
    checks = record["verdict"]["checks"]
    yield Metric("run.failed_checks", sum(row["status"] == "fail" for row in checks), "checks")
    yield Metric("model.bytes", record["model"]["bytes"], BYTES)
    for row in record["outputs"]:
        shape = "x".join(map(str, row["shape"]))
        text = f"{row['dtype']} {shape or 'scalar'}, SHA-256 {row['sha256']}"
        yield Metric(f"outputs.{row['index']}", text)
    npu = record.get("npu")
    if npu is not None:
        if "cycles" in npu:
            yield _stated("npu.cycles", npu["cycles"])
        yield Metric("npu.delegate_calls", npu["delegate_calls"], CALLS)
        yield from (_stated(f"npu.counters.{row['event']}", row) for row in npu["counters"])
    yield Metric("cpu.operators", sum(row["kind"] == "kernel" for row in record["operators"]), CALLS)
    counted = [row["instructions"]["value"] for row in record["operators"] if "instructions" in row]
    if counted:
        yield Metric("cpu.instructions", sum(counted), "instructions", "counted")
    yield from _memory("memory", record)
    for row in record.get("reference", {}).get("outputs", ()):
        for name in ("equal", "max_abs_error", "sqnr_db"):
            if name in row:
                yield Metric(f"reference.{row['index']}.{name}", row[name], _ACCURACY[name])


def _memory(prefix: str, record: Record) -> Iterator[Metric]:
    for part in ("regions", "pools"):
        for row in record["memory"][part]:
            yield Metric(f"{prefix}.{part}.{row['name']}", row["used_bytes"], BYTES)


def _profile(record: Record) -> Iterator[Metric]:
    totals = record["totals"]
    for row in totals["npu"]["cycles"]:
        yield _stated(f"profile.cycles.{row['source']}", row)
    yield Metric("profile.npu_operations", totals["npu"]["operations"], "operations")
    yield Metric("profile.cpu_operators", totals["cpu"]["operators"], CALLS)
    yield Metric("profile.macs", totals["npu"]["macs"], "operations")
    if "instructions" in totals["cpu"]:
        yield _stated("profile.cpu_instructions", totals["cpu"]["instructions"])
    for row in record["memories"]:
        for direction in ("read", "write"):
            name = f"profile.traffic.{row['memory']}.port{row['port']}.{direction}_bytes"
            yield Metric(name, row[f"{direction}_bytes"], BYTES, "modelled")


def _compile(record: Record) -> Iterator[Metric]:
    yield Metric("compile.failures", int(record["status"] == "fail"), "checks")
    yield Metric("compile.pte_bytes", record["model"]["bytes"], BYTES)
    yield Metric("compile.cpu_calls", sum(row["calls"] for row in record["cpu_operators"]), CALLS)
    yield Metric("compile.delegates", len(record["delegates"]), "delegates")
    if "delegation" in record:
        for where in ("delegated", "not_delegated"):
            yield Metric(f"compile.{where}", sum(row[where] for row in record["delegation"]), "operators")
    for row in record["delegates"]:
        for name in ("payload_bytes", "scratch_bytes", "fast_scratch_bytes"):
            yield Metric(f"compile.{row['index']}.{name}", row[name], BYTES)
        for part in row["estimates"]:
            yield _stated(f"compile.{row['index']}.estimates.{part['name']}", part)
    yield from _accuracy(record)


def _accuracy(record: Record) -> Iterator[Metric]:
    for row in record["check"].get("outputs", ()):
        yield from _figures(f"check.{row['index']}", row)
    for row in record.get("accuracy", {}).get("pairs", ()):
        name = f"accuracy.{row['reference']}-{row['candidate']}.{row['output']}"
        yield from _figures(name, row)
        if "top1" in row and "share" in row["top1"]:
            yield Metric(f"{name}.top1", row["top1"]["share"])


def _figures(prefix: str, row: Record) -> Iterator[Metric]:
    for name, unit in _ACCURACY.items():
        if name in row:
            yield Metric(f"{prefix}.{name}", row[name], unit)


def _build(record: Record) -> Iterator[Metric]:
    yield Metric("firmware.elf_bytes", record["elf"]["bytes"], BYTES)
    yield Metric("firmware.kernels", len(record["kernels"]), "kernels")
    yield from _memory("firmware", record)
    sections: Counter[str] = Counter()
    for row in record["sections"]:
        sections[row["name"]] += row["bytes"]
    for name, size in sections.items():
        yield Metric(f"firmware.sections.{name.lstrip('.')}", size, BYTES)


_READERS: dict[str, Callable[[Record], Iterator[Metric]]] = {
    "run": _run,
    "profile": _profile,
    "compile": _compile,
    "build": _build,
}
