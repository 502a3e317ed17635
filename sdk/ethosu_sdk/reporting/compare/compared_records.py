"""What is compared: the records of a run, what two runs must have in common, and their figures by name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.records import common, kinds, provenance, time_line
from ethosu_sdk.records.build import Build
from ethosu_sdk.records.bundle import ReadPolicy, is_of_run, read_record, records_in
from ethosu_sdk.records.common import Source, SystemMemory
from ethosu_sdk.records.compare import KindName
from ethosu_sdk.records.compile import CheckedOutput, Compilation, Pair
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Interface, NpuCounter, ReferenceOutput, Run
from ethosu_sdk.records.run_facts import MadeProfile

Compared = Run | Profile | Build | Compilation
# Kinds of records by their schema, in the order in which one says what a folder is about.
KINDS: dict[str, KindName] = {
    kinds.RUN.schema: "run",
    kinds.PROFILE.schema: "profile",
    kinds.BUILD.schema: "build",
    kinds.COMPILE.schema: "compile",
}
_GIVE = "give the folder of a run, or a record of run, profile, build or compile"


@dataclass(frozen=True)
class Subject:
    """Records of one program by their kinds, and the files they come from. `missing` says why there is no profile.

    `folder` is where outputs lie; None for a record alone.
    """

    path: Path
    records: Mapping[KindName, Compared]
    files: Mapping[KindName, Path]
    folder: Path | None
    missing: Mapping[KindName, str] = field(default_factory=dict)
    reading: ReadPolicy = field(default_factory=ReadPolicy)

    @property
    def name(self) -> str:
        """What it is called: the folder, and the file in it that was given."""
        path = self.path.absolute()
        return path.name if self.folder is not None else f"{path.parent.name}/{path.name}".lstrip("/")

    @property
    def first(self) -> Compared:
        return next(iter(self.records.values()))

    def inputs(self, label: str) -> list[Record]:
        return [
            {**provenance.file_entry(f"{label}: {kind}", path), **self.reading.mark(path)}
            for kind, path in self.files.items()
        ]


def read_subject(path: Path, made: MadeProfile | None = None, *, loose: bool = False) -> Subject:
    """What is at `path`; `made` is the profile of its run where the folder has none. InputError when that is nothing
    to compare."""
    reading = ReadPolicy(loose)
    reading.check_folder(path)
    if path.is_dir():
        return _folder(path, made or MadeProfile(None, "there is no profile of the run"))
    if not path.exists():
        raise InputError(f"there is no file or folder {path}", _GIVE)
    kind, record = compared_record(path, reading)
    return Subject(path, {kind: record}, {kind: path}, None, reading=reading)


def compared_record(path: Path, reading: ReadPolicy | None = None) -> tuple[KindName, Compared]:
    """The record at `path` and its kind. InputError when it is of a kind that cannot be compared."""
    record = read_record(path, reading)
    if not isinstance(record, Compared):
        raise InputError(f"{path} is a {kinds.schema(record)}, which cannot be compared", _GIVE)
    return KINDS[kinds.schema(record)], record


def _folder(folder: Path, made: MadeProfile) -> Subject:
    found: dict[KindName, tuple[Path, Compared]] = {}
    for path in records_in(folder, KINDS):
        kind, record = compared_record(path)
        about = next((other.model.sha256 for _, other in found.values()), None)
        if kind not in found and about in (None, record.model.sha256):
            found[kind] = path, record
    if not found:
        raise InputError(f"{folder} holds no record of a run, profile, build or compilation", _GIVE)
    missing: dict[KindName, str] = {}
    profile = found["profile"][1] if "profile" in found else None
    if "run" in found and not (isinstance(profile, Profile) and is_of_run(profile, found["run"][0])):
        found.pop("profile", None)
        if made.record is not None:
            found["profile"] = folder, made.record
        else:
            missing["profile"] = made.reason
    order = [kind for kind in KINDS.values() if kind in found]
    return Subject(
        folder,
        {kind: found[kind][1] for kind in order},
        {kind: found[kind][0] for kind in order if found[kind][0] is not folder},
        folder,
        missing,
    )


class Dimension(NamedTuple):
    """Something that shapes figures. `read` reads it from a record, None where that does not tell.

    `never` is why a policy cannot let it differ; empty when one can. `needs_both` says that a record which does not
    tell it has no figure that it shapes.
    """

    name: str
    read: Callable[[Compared], str | None]
    never: str = ""
    needs_both: bool = False


class DimensionPair(NamedTuple):
    name: str
    before: str
    after: str
    never: str  # why a policy cannot let it differ


def compare_dimensions(
    before: Mapping[KindName, Compared], after: Mapping[KindName, Compared]
) -> Iterator[DimensionPair]:
    """Every dimension that both sets of records, of the same kinds, state."""
    for dimension in _DIMENSIONS:
        pairs = [(dimension.read(record), dimension.read(after[kind])) for kind, record in before.items()]
        told = [
            pair for pair in pairs if pair != (None, None) and not (dimension.needs_both and None in pair)
        ]
        if not told:
            continue
        chosen = next((pair for pair in told if pair[0] != pair[1]), told[0])
        old, new = ("not told" if text is None else text for text in chosen)
        yield DimensionPair(dimension.name, old, new, dimension.never)


def _target(*names: str) -> Callable[[Compared], str]:
    return lambda record: (
        "no NPU" if record.target is None else "-".join(str(getattr(record.target, name)) for name in names)
    )


def _memory_timing(record: Compared) -> str | None:
    """The memories that modelled cycles are for, beside the system configuration's name: those of a system, or
    vela.ini's where its name says all."""
    if not isinstance(record, Run | Profile) or record.target is None:
        return None
    npu = record.npu if isinstance(record, Run) else None
    if npu is not None and npu.memory_timing is not None:
        timing = npu.memory_timing
        rows = (f"AXI{row.axi} {_speed(row)}" for row in timing.interfaces)
        return f"{timing.name}: {'; '.join(rows)}"
    if isinstance(record, Run) and npu is None:
        return None
    priced = record.priced
    if priced is None or (priced.compiled_for and priced.system.source.startswith("vela.ini ")):
        return "vela.ini's"
    rows = (f"AXI{row.axi} {row.name} {_speed(row)}" for row in priced.system.memories)
    return f"{priced.system.name} at {priced.system.clock_hz / 1e6:g} MHz: {'; '.join(rows)}"


def _speed(row: Interface | SystemMemory) -> str:
    return f"{row.bytes_per_cycle:g} bytes/cycle, latencies {row.read_latency_cycles} and {row.write_latency_cycles}"


def _time_on(record: Compared) -> str | None:
    time = record.time if isinstance(record, Run | Profile) else None
    if time is None:
        return None
    return f"{time.place}, {'with' if time.waits is not None else 'without'} the CPU's waits for memory"


def _runtime(record: Compared) -> str | None:
    """What executes the program: the firmware that embeds it, one that takes any, or ExecuTorch's runtime here."""
    if not isinstance(record, Run | Profile):
        return None
    names = [row.file for row in record.provenance.inputs if row.role in ("firmware", "runner")]
    name = record.runtime.name if isinstance(record, Run) else "own"
    if name != "own" and names:
        return f"{name}: {', '.join(names)}"
    return ", ".join(names) or ("ExecuTorch's" if _simulator(record) == "host" else None)


def _simulator(record: Compared) -> str | None:
    if not isinstance(record, Run | Profile) or record.simulator is None:
        return None
    return record.simulator.name


def _fidelity(record: Compared) -> str | None:
    if isinstance(record, Run) and record.npu is not None:
        cycles = record.npu.cycles
        sources = {row.source for row in record.npu.counters} | ({cycles.source} if cycles else set())
    elif isinstance(record, Profile):
        sources = {row.source for row in record.totals.npu.cycles}
    else:
        return None
    return ", ".join(sorted(sources & {"measured", "modelled"})) or "no figures of the NPU"


def _inputs(record: Compared) -> str | None:
    if not isinstance(record, Run):
        return None
    digests = ", ".join(row.sha256 for row in record.inputs)
    repeats = record.repeats.count if record.repeats is not None else 1
    return f"{counted(record.inferences, 'set')} {counted(repeats, 'time')}, SHA-256 {digests}"


def _versions(record: Compared) -> str:
    tool = record.tool
    own = " ".join(filter(None, (tool.name, tool.version, tool.git)))
    tools = (f"{row.name} {row.version}" for row in record.provenance.tools)
    return ", ".join((own, *sorted(tools)))


FIDELITY = "fidelity"
_DIMENSIONS = (
    Dimension("model", lambda record: f"SHA-256 {record.model.sha256}"),
    Dimension("target", _target("npu", "macs")),
    Dimension("system_config", _target("system_config")),
    Dimension("memory_mode", _target("memory_mode")),
    Dimension("memory_timing", _memory_timing),
    Dimension("time_on", _time_on, needs_both=True),
    Dimension("board", lambda record: None if isinstance(record, Compilation) else record.board),
    Dimension("simulator", _simulator),
    Dimension("runtime", _runtime),
    Dimension(FIDELITY, _fidelity, "what is measured and what is modelled are not the same figure"),
    Dimension("inputs", _inputs),
    Dimension("versions", _versions),
)
DIMENSION_NAMES = tuple(row.name for row in _DIMENSIONS)
ALLOWED_DIMENSIONS = tuple(row.name for row in _DIMENSIONS if not row.never)


BYTES, CALLS, CYCLES = "bytes", "calls", "cycles"
# Figures of an accuracy pair, and their units.
_ACCURACY = {"equal": "elements", "sqnr_db": "dB", "cosine": "", "max_abs_error": ""}
# What other records repeat of the run's.
_TOLD_BY_THE_RUN = (
    *("profile.time.*", "profile.cycles.modelled", "profile.cycles.measured", "profile.cpu_*"),
    *("firmware.regions.*", "firmware.pools.*", "compile.pte_bytes"),
)


class NamedMetric(NamedTuple):
    """A figure of a record. `value` is a text where equality alone has a meaning; `source` is None for what is
    neither measured, modelled nor estimated but simply so."""

    name: str
    value: float | int | str
    unit: str = ""
    source: Source | None = None


def metrics_of(records: Mapping[KindName, Compared]) -> dict[str, NamedMetric]:
    """The figures of records by their names; `records` go by their kinds, such as ``run``."""
    found = [metric for kind, record in records.items() for metric in _READERS[kind](record)]
    told = _TOLD_BY_THE_RUN if "run" in records else ()
    return {row.name: row for row in found if not any(fnmatchcase(row.name, name) for name in told)}


def _metric(name: str, row: common.Metric | common.Estimate | NpuCounter) -> NamedMetric:
    return NamedMetric(name, row.value, row.unit, row.source)


def _run(record: Run) -> Iterator[NamedMetric]:
    failed = sum(row.status == "fail" for row in record.verdict.checks)
    yield NamedMetric("run.failed_checks", failed, "checks")
    yield NamedMetric("model.bytes", record.model.bytes, BYTES)
    for row in record.outputs:
        shape = "x".join(map(str, row.shape))
        yield NamedMetric(f"outputs.{row.index}", f"{row.dtype} {shape or 'scalar'}, SHA-256 {row.sha256}")
    npu = record.npu
    if npu is not None:
        if npu.cycles is not None:
            yield _metric("npu.cycles", npu.cycles)
        yield NamedMetric("npu.delegate_calls", npu.delegate_calls, CALLS)
        yield from (_metric(f"npu.counters.{counter.event}", counter) for counter in npu.counters)
    yield NamedMetric("cpu.operators", sum(row.kind == "kernel" for row in record.operators), CALLS)
    counted = [row.instructions.value for row in record.operators if row.instructions is not None]
    if counted:
        yield NamedMetric("cpu.instructions", sum(counted), "instructions", "counted")
    yield from _memory("memory", record)
    yield from _time("time", record)
    for output in record.reference.outputs if record.reference is not None else ():
        yield from _figures(f"reference.{output.index}", output, ("equal", "max_abs_error", "sqnr_db"))


def _time(prefix: str, record: Run | Profile) -> Iterator[NamedMetric]:
    time = time_line.headline(record)
    if time is None:
        return
    found = {"total": time.total.duration_s, "npu": time.sums.npu_s, "cpu": time.sums.cpu_s}
    parts: defaultdict[str, float] = defaultdict(float)
    for row in time.parts:
        if row.on == "CPU":
            parts[row.name or row.what] += row.duration_s
    for name, duration in (*found.items(), *((f"parts.{name}", value) for name, value in parts.items())):
        yield NamedMetric(f"{prefix}.{name}_ms", duration * 1e3, "ms", time.total.source)


def _memory(prefix: str, record: Run | Build) -> Iterator[NamedMetric]:
    for part, rows in (("regions", record.memory.regions), ("pools", record.memory.pools)):
        for row in rows:
            yield NamedMetric(f"{prefix}.{part}.{row.name}", row.used_bytes, BYTES)


def _profile(record: Profile) -> Iterator[NamedMetric]:
    npu, cpu = record.totals.npu, record.totals.cpu
    for row in npu.cycles:
        yield _metric(f"profile.cycles.{row.source}", row)
    yield NamedMetric("profile.npu_operations", npu.operations, "operations")
    yield NamedMetric("profile.cpu_operators", cpu.operators, CALLS)
    yield NamedMetric("profile.macs", npu.macs, "operations")
    yield from _time("profile.time", record)
    if cpu.instructions is not None:
        yield _metric("profile.cpu_instructions", cpu.instructions)
    for memory in record.memories:
        name = f"profile.traffic.{memory.memory}.port{memory.port}"
        yield NamedMetric(f"{name}.read_bytes", memory.read_bytes, BYTES, "modelled")
        yield NamedMetric(f"{name}.write_bytes", memory.write_bytes, BYTES, "modelled")


def _compile(record: Compilation) -> Iterator[NamedMetric]:
    yield NamedMetric("compile.failures", int(record.status == "fail"), "checks")
    yield NamedMetric("compile.pte_bytes", record.model.bytes, BYTES)
    yield NamedMetric("compile.cpu_calls", sum(row.calls for row in record.cpu_operators), CALLS)
    yield NamedMetric("compile.delegates", len(record.delegates), "delegates")
    if record.delegation is not None:
        counts = [(row.delegated, row.not_delegated) for row in record.delegation]
        yield NamedMetric("compile.delegated", sum(row[0] for row in counts), "operators")
        yield NamedMetric("compile.not_delegated", sum(row[1] for row in counts), "operators")
    for delegate in record.delegates:
        name = f"compile.{delegate.index}"
        for size in ("payload_bytes", "scratch_bytes", "fast_scratch_bytes"):
            yield NamedMetric(f"{name}.{size}", getattr(delegate, size), BYTES)
        yield from (_metric(f"{name}.estimates.{part.name}", part) for part in delegate.estimates)
    for row in record.check.outputs or ():
        yield from _figures(f"check.{row.index}", row)
    for pair in record.accuracy.pairs if record.accuracy is not None else ():
        name = f"accuracy.{pair.reference}-{pair.candidate}.{pair.output}"
        yield from _figures(name, pair)
        if pair.top1 is not None:
            yield NamedMetric(f"{name}.top1", pair.top1.share)


def _figures(
    prefix: str, row: CheckedOutput | Pair | ReferenceOutput, names: Iterable[str] = _ACCURACY
) -> Iterator[NamedMetric]:
    for name in names:
        value = getattr(row, name, None)
        if value is not None:
            yield NamedMetric(f"{prefix}.{name}", value, _ACCURACY[name])


def _build(record: Build) -> Iterator[NamedMetric]:
    yield NamedMetric("firmware.elf_bytes", record.elf.bytes, BYTES)
    yield NamedMetric("firmware.kernels", len(record.kernels), "kernels")
    yield from _memory("firmware", record)
    sections: Counter[str] = Counter()
    for row in record.sections:
        sections[row.name] += row.bytes
    for name, size in sections.items():
        yield NamedMetric(f"firmware.sections.{name.lstrip('.')}", size, BYTES)


_READERS: dict[KindName, Callable[[Any], Iterator[NamedMetric]]] = {
    "run": _run,
    "profile": _profile,
    "compile": _compile,
    "build": _build,
}
