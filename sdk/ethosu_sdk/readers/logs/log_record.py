"""log-result/1: what a log tells of a run, in the words of run.json, and the reason for all that it does not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ethosu_sdk.evidence import kit_log
from ethosu_sdk.evidence.kit_log import KitLog
from ethosu_sdk.evidence.own_log import OwnLog
from ethosu_sdk.evidence.upstream_log import LogCounter, LoggedOutput, PmuReport, UpstreamLog
from ethosu_sdk.records import Record

OWN_GRAMMAR = "ethosu-sdk/1"
_UPSTREAM_GRAMMAR = "executorch-{year}"
_NOT_SAID = "the log does not say it"
_CPU = (
    "the log says {cycles}, which ExecuTorch itself calls valid on an FPGA with equal clocks alone: no simulator "
    "models the time that the CPU takes"
)


@dataclass(frozen=True)
class LogFacts:
    """A log that was read: by upstream's grammar, by ours and the evaluation kit's (None without a line of it), the
    simulator's own lines, what its counters are worth."""

    upstream: UpstreamLog
    own: OwnLog
    kit: KitLog | None
    simulator: Sequence[str]
    source: str
    failures: Sequence[Record]


def status(facts: LogFacts) -> str:
    """``pass`` on positive evidence alone: the end was reached, and nothing tells of a failure."""
    if facts.failures:
        return "fail"
    return "pass" if _complete(facts) else "incomplete"


def _complete(facts: LogFacts) -> bool:
    if facts.own.boot is not None:
        return facts.own.complete
    return facts.upstream.finished or (facts.kit is not None and facts.kit.finished and facts.kit.ended)


def body(facts: LogFacts) -> Record:
    """Everything of the record behind its header."""
    own, upstream = facts.own, facts.upstream
    grammars = [OWN_GRAMMAR] if own.boot is not None else []
    grammars += [kit_log.GRAMMAR] if facts.kit is not None else []
    grammars += [_UPSTREAM_GRAMMAR.format(year=year) for year in sorted(upstream.grammars)]
    model, npu, outputs = _model(facts), _npu(facts), _outputs(facts)
    return {
        "grammars": grammars or ["no prefix"],
        "complete": _complete(facts),
        "model": model,
        **({"board": own.boot["board"]} if own.boot is not None else {}),
        "simulator": {"lines": list(facts.simulator)},
        **_inferences(facts),
        "npu": npu,
        "memory": {"pools": _pools(facts), "sizes": _sizes(upstream)},
        "outputs": outputs,
        "failures": list(facts.failures),
        "unavailable": _unavailable(facts, model, npu),
    }


def _said(facts: LogFacts) -> Mapping[str, int | str]:
    """What is named in the log by one runner or the other."""
    return {**(facts.kit.facts if facts.kit is not None else {}), **facts.upstream.facts}


def _model(facts: LogFacts) -> Record:
    own, said = facts.own, _said(facts)
    rows = {
        "address": said.get("model_address"),
        "bytes": said.get("model_bytes"),
        "entry": said.get("method"),
    }
    if own.boot is not None:
        rows |= {"bytes": own.boot["model_bytes"], "sha256": own.boot["model_sha256"]}
    if own.method is not None:
        rows["entry"] = own.method["name"]
    return {key: value for key, value in rows.items() if value is not None}


def _inferences(facts: LogFacts) -> Record:
    said = _said(facts)
    count = facts.own.inferences or said.get("inferences_done") or said.get("inferences")
    return {"inferences": count} if isinstance(count, int) else {}


def _npu(facts: LogFacts) -> Record:
    said, own = facts.upstream.facts, facts.own
    reports = [*facts.upstream.reports, *(_kit_reports(facts.kit) if facts.kit is not None else ())]
    npu: Record = {"reports": [_report(row, facts.source) for row in reports]}
    npu["reports"] += [
        {
            "inference": row["inference"],
            "instruction": row["instruction"],
            "cycles": {"value": row["cycles"], "unit": "cycles", "source": facts.source},
            "counters": [
                {"index": index, "id": event, "value": value, "source": facts.source}
                for index, (event, value) in enumerate(row["counters"])
            ],
        }
        for row in own.pmu
    ]
    if own.npu is not None:
        npu |= {name: own.npu[name] for name in ("id", "config")}
    listed = len(facts.kit.delegates) if facts.kit is not None else 0
    calls = own.delegate_calls or said.get("delegate_calls") or said.get("npu_inferences") or listed or None
    return {**npu, **({"delegate_calls": calls} if isinstance(calls, int) else {})}


def _kit_reports(kit: KitLog) -> Iterator[PmuReport]:
    """The metrics where the log has them, else what it says to people."""
    for counters in [group.first for group in kit.groups] or kit.reports:
        rows = enumerate(kit_log.events(counters).items())
        yield PmuReport(
            kit_log.cycles(counters), tuple(LogCounter(index, value, name) for index, (name, value) in rows)
        )


def _report(report: PmuReport, source: str) -> Record:
    cycles = {"value": report.cycles, "unit": "cycles", "source": source}
    return {
        **({"cycles": cycles} if report.cycles is not None else {}),
        "counters": [
            {
                "index": row.index,
                **({"event": row.event} if row.event else {}),
                "value": row.value,
                "source": source,
            }
            for row in report.counters
        ],
    }


def _pools(facts: LogFacts) -> list[Record]:
    rows = [(row["name"], row["used_bytes"], row["size_bytes"]) for row in facts.own.pools]
    rows += [(name, *use) for name, use in facts.kit.pools.items()] if facts.kit is not None else []
    return [
        {"name": name, "used_bytes": used, "size_bytes": size}
        for name, used, size in (*rows, *facts.upstream.pools)
    ]


def _sizes(upstream: UpstreamLog) -> list[Record]:
    return [{"name": name, "bytes": size} for name, size in upstream.sizes.items()]


def _outputs(facts: LogFacts) -> list[Record]:
    rows: list[Record] = [_logged_output(row) for row in facts.upstream.outputs]
    for index, tensor in enumerate(facts.kit.outputs if facts.kit is not None else ()):
        rows.append(
            {
                "index": index,
                **({"kind": tensor.type} if tensor.type else {}),
                "shape": list(tensor.sizes),
                "elements": tensor.elements,
            }
        )
    for row in facts.own.outputs:
        rows.append(
            {
                "index": row.index,
                "inference": row.inference,
                "dtype": row.dtype,
                "shape": list(row.shape),
                "elements": math.prod(row.shape),
                **({"sha256": row.sha256} if row.sha256 else {}),
            }
        )
    return rows


def _logged_output(row: LoggedOutput) -> Record:
    return {
        "index": row.index,
        **({"kind": row.kind} if row.kind else {}),
        "elements": row.elements,
        "spans": [
            {"start": span.start, "values": [_number(value) for value in span.values]} for span in row.spans
        ],
    }


def _number(value: float) -> float | str:
    """JSON has neither NaN nor infinity: they are written as words."""
    return value if math.isfinite(value) else str(value)


def _unavailable(facts: LogFacts, model: Record, npu: Record) -> list[Record]:
    upstream = facts.upstream
    reasons = {f"/model/{key}": _NOT_SAID for key in ("bytes", "sha256", "entry") if key not in model}
    reasons["/target"] = _NOT_SAID
    if facts.own.boot is None:
        reasons["/board"] = _NOT_SAID
    if not npu["reports"]:
        reasons["/npu/cycles"] = "the log has no report of the NPU's counters"
    elif facts.source == "reported":
        reasons["/npu/source"] = "the log does not say what it ran on: the counters are as reported"
    for number, report in enumerate(npu["reports"]):
        if any("event" not in row and "id" not in row for row in report["counters"]):
            reasons[f"/npu/reports/{number}/events"] = "the log does not name the counters' events"
    cycles = ", ".join(f"{name} {value}" for name, value in upstream.cpu_cycles.items())
    reasons["/cpu/cycles"] = _CPU.format(cycles=cycles) if cycles else _NOT_SAID
    for position, row in enumerate(upstream.outputs):
        if not row.whole:
            reasons[f"/outputs/{position}/rest"] = f"the log shows {row.elements} elements, with gaps"
    for index in upstream.no_tensors:
        reasons[f"/outputs/by_index/{index}"] = "the output is no tensor, its value was not printed"
    return [{"path": path, "reason": reason} for path, reason in reasons.items()]
