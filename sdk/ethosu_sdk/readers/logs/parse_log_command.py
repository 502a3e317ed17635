"""`ethosu-sdk parse-log`: read a saved log and report what it shows of the run."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.table import Table

from ethosu_sdk import error_catalogue, provenance, schema
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.console.terminal import escape
from ethosu_sdk.errors import InputError, VerdictError
from ethosu_sdk.evidence import fvp_output, kit_log, own_log, uart, upstream_log
from ethosu_sdk.evidence.fvp_output import NOT_AN_FVP
from ethosu_sdk.files import hashing, opening
from ethosu_sdk.protocol import RECORD_PREFIX
from ethosu_sdk.readers.logs import log_record
from ethosu_sdk.readers.logs.log_record import LogFacts
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.records.printed.log import Log, Report

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
    record = make(path.name if str(path) != _STDIN else "stdin", content)
    schema.check(record, "the result of the log")
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
        content = opening.content(path, _MAX_BYTES)
    if len(content) > _MAX_BYTES:
        raise InputError(f"{path} is too large for a log (more than {_MAX_BYTES:,} bytes)")
    if sum(content.count(end) for end in _LINE_ENDS) > _MAX_LINES:
        raise InputError(f"{path} is too large for a log (more than {_MAX_LINES:,} lines)")
    return content


def make(name: str, content: bytes) -> Record:
    """The record of the log `content`, which is called `name`. InputError when nothing in it is known."""
    parted = fvp_output.part(content)
    own = own_log.summarise(uart.parse(parted.uart))
    lines = content.decode("utf-8", errors="replace").splitlines()
    kit = kit_log.parse(lines)
    rest = kit_log.without(lines) if kit.recognised else lines
    upstream = upstream_log.parse(["" if RECORD_PREFIX in line else line for line in rest])
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
        **provenance.header(kinds.LOG.schema, log_record.status(facts), [_input(name, content)], []),
        **log_record.body(facts),
    }


def _input(name: str, content: bytes) -> Record:
    return {"role": "log", "file": name, "bytes": len(content), "sha256": hashing.sha256_bytes(content)}


def _source(lines: list[str], simulator: tuple[str, ...]) -> str:
    """What the counters in the log are: an FVP and the SDK's launchers name themselves, a board does not."""
    if any(NOT_AN_FVP in line for line in lines):
        return "modelled"
    return "measured" if simulator else "reported"


def _failures(
    upstream: upstream_log.UpstreamLog, own: own_log.OwnLog, kit: kit_log.KitLog, lines: list[str]
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
