"""What two runs must have in common for their figures to be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ethosu_sdk.plain_text import counted
from ethosu_sdk.readers.compare.subjects import Compared
from ethosu_sdk.records.common import Priced
from ethosu_sdk.records.compare import KindName
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Run

_NPU_SOURCES = ("measured", "modelled")


@dataclass(frozen=True)
class Dimension:
    """Something that shapes figures. `of` reads it from a record, None where that does not tell.

    `never` is why a policy cannot let it differ; empty when one can. `needs_both` says that a record which does not
    tell it has no figure that it shapes.
    """

    name: str
    of: Callable[[Compared], str | None]
    never: str = ""
    needs_both: bool = False


@dataclass(frozen=True)
class DimensionPair:
    """A dimension of two runs."""

    name: str
    before: str
    after: str

    @property
    def differs(self) -> bool:
        """Whether the two are not the same."""
        return self.before != self.after


def compare(
    before: Mapping[KindName, Compared], after: Mapping[KindName, Compared]
) -> Iterator[DimensionPair]:
    """Every dimension that both sets of records, of the same kinds, state."""
    for dimension in _TABLE:
        pairs = [(dimension.of(record), dimension.of(after[kind])) for kind, record in before.items()]
        told = [
            pair for pair in pairs if pair != (None, None) and not (dimension.needs_both and None in pair)
        ]
        if not told:
            continue
        chosen = next((pair for pair in told if pair[0] != pair[1]), told[0])
        yield DimensionPair(dimension.name, *(text if text is not None else "not told" for text in chosen))


def _target(*names: str) -> Callable[[Compared], str | None]:
    def of(record: Compared) -> str | None:
        target = record.target
        return "no NPU" if target is None else "-".join(str(getattr(target, name)) for name in names)

    return of


def _model(record: Compared) -> str:
    return f"SHA-256 {record.model.sha256}"


def _simulator(record: Compared) -> str | None:
    return record.simulator.name if isinstance(record, Run | Profile) else None


def _memory_timing(record: Compared) -> str | None:
    """The memories that modelled cycles are for, beside the system configuration's name."""
    if not isinstance(record, Run | Profile) or record.target is None:
        return None
    npu = record.npu if isinstance(record, Run) else None
    timing = None if npu is None else npu.memory_timing
    if timing is None:
        return None if isinstance(record, Run) and npu is None else _system(record.priced)
    rows = (
        f"AXI{row.axi} {row.bytes_per_cycle:g} bytes/cycle, latencies {row.read_latency_cycles} and "
        f"{row.write_latency_cycles}"
        for row in timing.interfaces
    )
    return f"{timing.name}: {'; '.join(rows)}"


def _system(priced: Priced | None) -> str:
    """The figures of a system; that they are vela.ini's where its name says all."""
    if priced is None or (priced.compiled_for and priced.system.source.startswith("vela.ini ")):
        return "vela.ini's"
    rows = (
        f"AXI{row.axi} {row.name} {row.bytes_per_cycle:g} bytes/cycle, latencies {row.read_latency_cycles} and "
        f"{row.write_latency_cycles}"
        for row in priced.system.memories
    )
    return f"{priced.system.name} at {priced.system.clock_hz / 1e6:g} MHz: {'; '.join(rows)}"


def _time_on(record: Compared) -> str | None:
    """What the time of an inference is for, and whether the CPU's waits for memory are in it."""
    time = record.time if isinstance(record, Run | Profile) else None
    if time is None:
        return None
    return f"{time.place}, {'with' if time.waits is not None else 'without'} the CPU's waits for memory"


def _board(record: Compared) -> str | None:
    return None if isinstance(record, Compilation) else record.board


def _runtime(record: Compared) -> str | None:
    """What executes the program: the firmware that embeds it, one that takes any, or ExecuTorch's runtime here."""
    if not isinstance(record, Run | Profile):
        return None
    names = [row.file for row in record.provenance.inputs if row.role in ("firmware", "runner")]
    name = record.runtime.name if isinstance(record, Run) else "own"
    if name != "own" and names:
        return f"{name}: {', '.join(names)}"
    return ", ".join(names) or ("ExecuTorch's" if record.simulator.name == "host" else None)


def _fidelity(record: Compared) -> str | None:
    """What the NPU's figures are: measured, or modelled."""
    if isinstance(record, Run):
        npu = record.npu
        if npu is None:
            return None
        sources = {row.source for row in npu.counters} | ({npu.cycles.source} if npu.cycles else set())
    elif isinstance(record, Profile):
        sources = {row.source for row in record.totals.npu.cycles}
    else:
        return None
    found = sorted(sources & set(_NPU_SOURCES))
    return ", ".join(found) or "no figures of the NPU"


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


_TABLE = (
    Dimension("model", _model),
    Dimension("target", _target("npu", "macs")),
    Dimension("system_config", _target("system_config")),
    Dimension("memory_mode", _target("memory_mode")),
    Dimension("memory_timing", _memory_timing),
    Dimension("time_on", _time_on, needs_both=True),
    Dimension("board", _board),
    Dimension("simulator", _simulator),
    Dimension("runtime", _runtime),
    Dimension("fidelity", _fidelity, "what is measured and what is modelled are not the same figure"),
    Dimension("inputs", _inputs),
    Dimension("versions", _versions),
)
NAMES = tuple(row.name for row in _TABLE)
ALLOWED = tuple(row.name for row in _TABLE if not row.never)


def never(name: str) -> str:
    """Why no policy can let the dimension `name` differ; empty when one can."""
    return next(row.never for row in _TABLE if row.name == name)
