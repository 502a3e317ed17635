"""`ethosu-sdk parse-log`: read a saved log and report what it shows of the run; log-result/1."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from ethosu_sdk.base import error_catalogue, filesystem
from ethosu_sdk.base.errors import InputError, VerdictError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.program.protocol import RECORD_PREFIX
from ethosu_sdk.records import kinds, provenance, validation
from ethosu_sdk.records.parsed_log import Log, Report
from ethosu_sdk.reporting import saved_logs
from ethosu_sdk.reporting.saved_logs import LogCounter, LoggedOutput, OwnLog, PmuReport, UpstreamLog
from ethosu_sdk.run import kit_log, uart
from ethosu_sdk.run.kit_log import KitLog
from ethosu_sdk.simulate import fvp_output
from ethosu_sdk.simulate.fvp_output import NOT_AN_FVP

# ---- readers.logs.log_record
# log-result/1: what a log tells of a run, in the words of run.json, and the reason for all that it does not.

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


def log_status(facts: LogFacts) -> str:
    """``pass`` on positive evidence alone: the end was reached, and nothing tells of a failure."""
    if facts.failures:
        return "fail"
    return "pass" if _complete(facts) else "incomplete"


def _complete(facts: LogFacts) -> bool:
    if facts.own.boot is not None:
        return facts.own.complete
    return facts.upstream.finished or (facts.kit is not None and facts.kit.finished and facts.kit.ended)


def log_body(facts: LogFacts) -> Record:
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
        rows = enumerate(kit_log.pmu_events(counters).items())
        yield PmuReport(
            kit_log.all_cycles(counters),
            tuple(LogCounter(index, value, name) for index, (name, value) in rows),
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


# ---- readers.logs.parse_log_command
# `ethosu-sdk parse-log`: read a saved log and report what it shows of the run.

_MAX_BYTES = 64 << 20
_MAX_LINES = 1 << 20
_LINE_ENDS = (b"\n", b"\r", b"\v", b"\f", b"\x1c", b"\x1d", b"\x1e")  # what str.splitlines() parts ASCII at
_STDIN = "-"


def parse_log(path: Path, reporter: Reporter) -> None:
    """Read the log at `path` and show its record.

    InputError when it cannot be read or holds nothing that is known; VerdictError, after the record was shown, when
    it tells of a failure or does not reach the end of a run.
    """
    content = _read(path)
    record = make_log_record(path.name if str(path) != _STDIN else "stdin", content)
    validation.check_record(record, "the result of the log")
    log = kinds.LOG.convert(record)
    reporter.show(_summary(log))
    reporter.emit(record)
    if log.status != "pass":
        lines = [f"  line {row.line}: {row.text}" for row in log.failures[:5]]
        reason = "reports a failure" if log.failures else "ends before the run does"
        known = sorted({name for row in log.failures for name in row.known})
        raise VerdictError(
            "\n".join([f"the log {reason}", *lines]),
            f"ethosu-sdk explain {known[0]}" if known else "",
            recorded=True,
        )


def _read(path: Path) -> bytes:
    if str(path) == _STDIN:
        try:
            content = sys.stdin.buffer.read(_MAX_BYTES + 1)
        except OSError as error:
            raise InputError(f"cannot read the standard input: {error.strerror}") from error
    else:
        content = filesystem.file_content(path, _MAX_BYTES)
    if len(content) > _MAX_BYTES:
        raise InputError(f"{path} is too large for a log (more than {_MAX_BYTES:,} bytes)")
    if sum(content.count(end) for end in _LINE_ENDS) > _MAX_LINES:
        raise InputError(f"{path} is too large for a log (more than {_MAX_LINES:,} lines)")
    return content


def make_log_record(name: str, content: bytes) -> Record:
    """The record of the log `content`, which is called `name`. InputError when nothing in it is known."""
    parted = fvp_output.parted_output(content)
    own = saved_logs.summarise_own_log(uart.parse_uart(parted.uart))
    lines = content.decode("utf-8", errors="replace").splitlines()
    kit = kit_log.parse_kit_log(lines)
    rest = kit_log.without_kit_lines(lines) if kit.recognised else lines
    upstream = saved_logs.parse_upstream_log(["" if RECORD_PREFIX in line else line for line in rest])
    if not (upstream.recognised or kit.recognised or own.boot is not None or parted.simulator):
        raise InputError(
            f"{name} holds no line of a known firmware", "give the UART's output: run.log, uart.log"
        )
    facts = LogFacts(
        upstream=upstream,
        own=own,
        kit=kit if kit.recognised else None,
        simulator=parted.simulator,
        source=_source(lines, parted.simulator),
        failures=_failures(upstream, own, kit, lines),
    )
    return {
        **provenance.header(kinds.LOG.schema, log_status(facts), [_input(name, content)], []),
        **log_body(facts),
    }


def _input(name: str, content: bytes) -> Record:
    return {"role": "log", "file": name, "bytes": len(content), "sha256": filesystem.sha256_bytes(content)}


def _source(lines: list[str], simulator: tuple[str, ...]) -> str:
    """What the counters in the log are: an FVP and the SDK's launchers name themselves, a board does not."""
    if any(NOT_AN_FVP in line for line in lines):
        return "modelled"
    return "measured" if simulator else "reported"


def _failures(
    upstream: saved_logs.UpstreamLog, own: saved_logs.OwnLog, kit: kit_log.KitLog, lines: list[str]
) -> list[Record]:
    found: list[tuple[int, str]] = [(row.line, row.text) for row in upstream.failures]
    found += kit.failures if kit.recognised else []
    found += [(len(lines), problem) for problem in own.problems]
    return [
        {
            "line": max(1, number),
            "text": text[:400] or "?",
            "known": [error.id for error in error_catalogue.in_line(text) if not error.harmless],
        }
        for number, text in found
    ]


def _summary(log: Log) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    colour = "green" if log.status == "pass" else "red"
    table.add_row("log", f"[bold {colour}]{log.status}[/bold {colour}], {', '.join(log.grammars)}")
    for key, value in log.model.to_json().items():
        table.add_row(f"model {key}", escape(f"{value:,}" if isinstance(value, int) else value))
    for number, report in enumerate(log.npu.reports):
        table.add_row(f"NPU report {number}", _report_text(report))
    for pool in log.memory.pools:
        table.add_row(escape(pool.name), f"{pool.used_bytes:,} of {pool.size_bytes:,} bytes")
    for size in log.memory.sizes:
        table.add_row(escape(size.name), f"{size.bytes:,} bytes")
    for output in log.outputs:
        content = (output.sha256 or "")[:16] or f"{output.elements} elements"
        shape = list(output.shape) if output.shape is not None else ""
        table.add_row(f"output{output.index}", escape(f"{output.dtype or ''}{shape} {content}"))
    for failure in log.failures:
        table.add_row("failure", escape(f"line {failure.line}: {failure.text}"))
    for missing in log.unavailable:
        table.add_row("unavailable", escape(f"{missing.path}: {missing.reason}"))
    return table


def _report_text(report: Report) -> str:
    parts = [] if report.cycles is None else [f"{report.cycles.value:,} cycles ({report.cycles.source})"]
    parts += [f"{row.event or f'counter {row.index}'} {row.value:,}" for row in report.counters]
    return escape(", ".join(parts))
