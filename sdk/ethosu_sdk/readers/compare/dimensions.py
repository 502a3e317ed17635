"""What two runs must have in common for their figures to be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ethosu_sdk.records import Record

_NPU_SOURCES = ("measured", "modelled")


@dataclass(frozen=True)
class Dimension:
    """Something that shapes figures. `of` reads it from a record, None where that does not tell.

    `never` is why a policy cannot let it differ; empty when one can.
    """

    name: str
    of: Callable[[Record], str | None]
    never: str = ""


@dataclass(frozen=True)
class Found:
    """A dimension of two runs."""

    name: str
    before: str
    after: str

    @property
    def differs(self) -> bool:
        """Whether the two are not the same."""
        return self.before != self.after


def compare(before: Mapping[str, Record], after: Mapping[str, Record]) -> Iterator[Found]:
    """Every dimension that records of the same kinds tell of, which both have."""
    for dimension in _TABLE:
        pairs = [(dimension.of(record), dimension.of(after[kind])) for kind, record in before.items()]
        told = [pair for pair in pairs if pair != (None, None)]
        if not told:
            continue
        chosen = next((pair for pair in told if pair[0] != pair[1]), told[0])
        yield Found(dimension.name, *(text if text is not None else "not told" for text in chosen))


def _target(*names: str) -> Callable[[Record], str | None]:
    def of(record: Record) -> str | None:
        target = record.get("target")
        return "no NPU" if target is None else "-".join(str(target[name]) for name in names)

    return of


def _model(record: Record) -> str:
    return f"SHA-256 {record['model']['sha256']}"


def _simulator(record: Record) -> str | None:
    return None if "simulator" not in record else str(record["simulator"]["name"])


def _memory_timing(record: Record) -> str | None:
    """The memories that modelled cycles are for, beside the system configuration's name."""
    if record["schema"] != "run-result/1" or "npu" not in record:
        return None
    timing = record["npu"].get("memory_timing")
    if timing is None:
        return "vela.ini's"
    rows = (
        f"AXI{row['axi']} {row['bytes_per_cycle']:g} bytes/cycle, latencies {row['read_latency_cycles']} and "
        f"{row['write_latency_cycles']}"
        for row in timing["interfaces"]
    )
    return f"{timing['name']}: {'; '.join(rows)}"


def _board(record: Record) -> str | None:
    return record.get("board")


def _runtime(record: Record) -> str | None:
    """What executes the program: the firmware that embeds it, one that takes any, or ExecuTorch's runtime here."""
    if "simulator" not in record:
        return None
    inputs = record["provenance"]["inputs"]
    names = [row["file"] for row in inputs if row["role"] in ("firmware", "runner")]
    name = record.get("runtime", {}).get("name", "own")
    if name != "own" and names:
        return f"{name}: {', '.join(names)}"
    return ", ".join(names) or ("ExecuTorch's" if record["simulator"]["name"] == "host" else None)


def _fidelity(record: Record) -> str | None:
    """What the NPU's figures are: measured, or modelled."""
    if record["schema"] == "run-result/1":
        npu = record.get("npu")
        if npu is None:
            return None
        rows = [*npu["counters"], *([npu["cycles"]] if "cycles" in npu else [])]
    elif record["schema"] == "profile/1":
        rows = record["totals"]["npu"]["cycles"]
    else:
        return None
    found = sorted({row["source"] for row in rows} & set(_NPU_SOURCES))
    return ", ".join(found) or "no figures of the NPU"


def _inputs(record: Record) -> str | None:
    if record["schema"] != "run-result/1":
        return None
    digests = ", ".join(row["sha256"] for row in record["inputs"])
    repeats = record.get("repeats", {}).get("count", 1)
    return f"{record['inferences']} set(s) {repeats} time(s), SHA-256 {digests}"


def _versions(record: Record) -> str:
    tool = record["tool"]
    own = " ".join(filter(None, (tool["name"], tool["version"], tool.get("git", ""))))
    tools = (f"{row['name']} {row['version']}" for row in record["provenance"]["tools"])
    return ", ".join((own, *sorted(tools)))


_TABLE = (
    Dimension("model", _model),
    Dimension("target", _target("npu", "macs")),
    Dimension("system_config", _target("system_config")),
    Dimension("memory_mode", _target("memory_mode")),
    Dimension("memory_timing", _memory_timing),
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
