"""`ethosu-sdk parse-log`: read a saved log and report what it shows of the run; log-result/1."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.table import Table

from ethosu_sdk.base import error_catalogue, filesystem
from ethosu_sdk.base.errors import InputError, VerdictError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.program.protocol import RECORD_PREFIX
from ethosu_sdk.records import kinds, provenance, validation
from ethosu_sdk.records.parsed_log import Log
from ethosu_sdk.reporting import saved_logs
from ethosu_sdk.reporting.saved_logs import OwnLog, PmuReport, UpstreamLog
from ethosu_sdk.run import kit_log, uart
from ethosu_sdk.run.kit_log import KitLog
from ethosu_sdk.simulate import fvp_models
from ethosu_sdk.simulate.fvp_models import NOT_AN_FVP

_MAX_BYTES = 64 << 20
_MAX_LINES = 1 << 20
_LINE_ENDS = (b"\n", b"\r", b"\v", b"\f", b"\x1c", b"\x1d", b"\x1e")  # what str.splitlines() parts ASCII at
_STDIN = "-"
_NOT_SAID = "the log does not say it"
_CPU = (
    "the log says {cycles}, which ExecuTorch itself calls valid on an FPGA with equal clocks alone: no simulator "
    "models the time that the CPU takes"
)


def parse_log(path: Path, reporter: Reporter) -> None:
    """Read the log at `path` and show its record.

    InputError when it cannot be read or holds nothing that is known; VerdictError, after the record was shown, when
    it reports a failure or ends before the run does.
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
    parted = fvp_models.parted_output(content)
    own = saved_logs.summarise_own_log(uart.parse_uart(parted.uart))
    lines = content.decode("utf-8", errors="replace").splitlines()
    kit = kit_log.parse_kit_log(lines)
    if kit.recognised:
        rest = kit_log.without_kit_lines(lines)
    else:
        kit, rest = KitLog(), lines
    upstream = saved_logs.parse_upstream_log(["" if RECORD_PREFIX in line else line for line in rest])
    if not (upstream.recognised or kit.recognised or own.boot is not None or parted.simulator):
        message = f"{name} holds no line of a known firmware"
        raise InputError(message, "give the UART's output: run.log, uart.log")
    # What the counters are: an FVP and the SDK's launchers name themselves, a board does not.
    source = "measured" if parted.simulator else "reported"
    if any(NOT_AN_FVP in line for line in lines):
        source = "modelled"
    failures = [*upstream.failures, *kit.failures, *((len(lines), problem) for problem in own.problems)]
    complete = upstream.finished or (kit.finished and kit.ended) if own.boot is None else own.complete
    # A pass is on positive evidence alone: the end was reached, and nothing tells of a failure.
    status = "fail" if failures else "pass" if complete else "incomplete"
    file = {"role": "log", "file": name, "bytes": len(content), "sha256": filesystem.sha256_bytes(content)}
    grammars = ["ethosu-sdk/1"] if own.boot is not None else []
    grammars += [kit_log.GRAMMAR] if kit.recognised else []
    grammars += [f"executorch-{year}" for year in sorted(upstream.years)]
    named = {**kit.facts, **upstream.facts}
    count = own.inferences or named.get("inferences_done") or named.get("inferences")
    model, npu = _model(own, named), _npu(own, kit, upstream, source)
    return {
        **provenance.header(kinds.LOG.schema, status, [file], []),
        "grammars": grammars or ["no prefix"],
        "complete": complete,
        "model": model,
        **({"board": own.boot["board"]} if own.boot is not None else {}),
        "simulator": {"lines": list(parted.simulator)},
        **({"inferences": count} if isinstance(count, int) else {}),
        "npu": npu,
        "memory": {
            "pools": list(_pools(own, kit, upstream)),
            "sizes": [{"name": name, "bytes": size} for name, size in upstream.sizes.items()],
        },
        "outputs": list(_outputs(own, kit, upstream)),
        "failures": [
            {
                "line": max(1, number),
                "text": text[:400] or "?",
                "known": [error.id for error in error_catalogue.in_line(text) if not error.harmless],
            }
            for number, text in failures
        ],
        "unavailable": _unavailable(own, upstream, model, npu, source),
    }


def _model(own: OwnLog, named: Mapping[str, int | str]) -> Record:
    rows = {
        "address": named.get("model_address"),
        "bytes": named.get("model_bytes"),
        "entry": named.get("method"),
    }
    if own.boot is not None:
        rows |= {"bytes": own.boot["model_bytes"], "sha256": own.boot["model_sha256"]}
    if own.method is not None:
        rows["entry"] = own.method["name"]
    return {key: value for key, value in rows.items() if value is not None}


def _npu(own: OwnLog, kit: KitLog, upstream: UpstreamLog, source: str) -> Record:
    # The metrics where the kit's log has them, else what it says to people.
    counted = [(row, kit_log.pmu_events(row)) for row in [group.first for group in kit.groups] or kit.reports]
    of_kit = (
        PmuReport(row.get(kit_log.TOTAL), dict(enumerate(events.values())), tuple(events))
        for row, events in counted
    )
    reports = [_report(row, source) for row in (*upstream.reports, *of_kit)]
    reports += [
        {
            "inference": row["inference"],
            "instruction": row["instruction"],
            "cycles": {"value": row["cycles"], "unit": "cycles", "source": source},
            "counters": [
                {"index": index, "id": event, "value": value, "source": source}
                for index, (event, value) in enumerate(row["counters"])
            ],
        }
        for row in own.pmu
    ]
    said = upstream.facts
    calls = own.delegate_calls or said.get("delegate_calls") or said.get("npu_inferences")
    calls = calls or len(kit.delegates) or None
    return {
        "reports": reports,
        **({name: own.npu[name] for name in ("id", "config")} if own.npu is not None else {}),
        **({"delegate_calls": calls} if isinstance(calls, int) else {}),
    }


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


def _pools(own: OwnLog, kit: KitLog, upstream: UpstreamLog) -> Iterator[Record]:
    rows = [(row["name"], row["used_bytes"], row["size_bytes"]) for row in own.pools]
    rows += [(name, *use) for name, use in kit.pools.items()]
    for name, used, size in (*rows, *upstream.pools):
        yield {"name": name, "used_bytes": used, "size_bytes": size}


def _outputs(own: OwnLog, kit: KitLog, upstream: UpstreamLog) -> Iterator[Record]:
    for shown in upstream.outputs:
        yield {
            "index": shown.index,
            **({"kind": shown.kind} if shown.kind else {}),
            "elements": len(shown.values),
            "spans": [
                {"start": span.start, "values": [_number(value) for value in span.values]}
                for span in shown.spans
            ],
        }
    for index, tensor in enumerate(kit.outputs):
        yield {
            "index": index,
            **({"kind": tensor.type} if tensor.type else {}),
            "shape": list(tensor.sizes),
            "elements": tensor.elements,
        }
    for row in own.outputs:
        yield {
            "index": row.index,
            "inference": row.inference,
            "dtype": row.dtype,
            "shape": list(row.shape),
            "elements": math.prod(row.shape),
            **({"sha256": row.sha256} if row.sha256 else {}),
        }


def _number(value: float) -> float | str:
    """JSON has neither NaN nor infinity: they are written as words."""
    return value if math.isfinite(value) else str(value)


def _unavailable(own: OwnLog, upstream: UpstreamLog, model: Record, npu: Record, source: str) -> list[Record]:
    reasons = {f"/model/{key}": _NOT_SAID for key in ("bytes", "sha256", "entry") if key not in model}
    reasons["/target"] = _NOT_SAID
    if own.boot is None:
        reasons["/board"] = _NOT_SAID
    if not npu["reports"]:
        reasons["/npu/cycles"] = "the log has no report of the NPU's counters"
    elif source == "reported":
        reasons["/npu/source"] = "the log does not say what it ran on: the counters are as reported"
    for number, report in enumerate(npu["reports"]):
        if any("event" not in row and "id" not in row for row in report["counters"]):
            reasons[f"/npu/reports/{number}/events"] = "the log does not name the counters' events"
    cycles = ", ".join(f"{name} {value}" for name, value in upstream.cpu_cycles.items())
    reasons["/cpu/cycles"] = _CPU.format(cycles=cycles) if cycles else _NOT_SAID
    for position, row in enumerate(upstream.outputs):
        if [span.start for span in row.spans] != [0]:
            reasons[f"/outputs/{position}/rest"] = f"the log shows {len(row.values)} elements, with gaps"
    for index in upstream.no_tensors:
        reasons[f"/outputs/by_index/{index}"] = "the output is no tensor, its value was not printed"
    return [{"path": path, "reason": reason} for path, reason in reasons.items()]


def _summary(log: Log) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    colour = "green" if log.status == "pass" else "red"
    table.add_row("log", f"[bold {colour}]{log.status}[/bold {colour}], {', '.join(log.grammars)}")
    for key, value in log.model.to_json().items():
        table.add_row(f"model {key}", escape(f"{value:,}" if isinstance(value, int) else value))
    for number, report in enumerate(log.npu.reports):
        parts = [] if report.cycles is None else [f"{report.cycles.value:,} cycles ({report.cycles.source})"]
        parts += [f"{row.event or f'counter {row.index}'} {row.value:,}" for row in report.counters]
        table.add_row(f"NPU report {number}", escape(", ".join(parts)))
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
