"""`ethosu-sdk doctor`: every tool that the SDK uses made to work, and what to do about those that do not."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec import convert
from rich.table import Table

from ethosu_sdk import provenance, schema
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.console.terminal import escape, escape_lines
from ethosu_sdk.errors import ToolError
from ethosu_sdk.installation.doctor import rows as doctor_rows
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.records.printed.doctor import Check
from ethosu_sdk.results import host_facts

_COLOURS = {"found": "green", "missing": "red", "too old": "red", "broken": "red"}
_LOCK_WORDS = {"agrees": "as locked", "differs": "[yellow]differs[/yellow]", "unknown": "-"}


def doctor(reporter: Reporter) -> None:
    """Report every tool; ToolError when one that is not optional cannot be used."""
    start = time.monotonic()
    with reporter.stage("trying every tool"):
        rows = doctor_rows.rows()
    checks = convert(rows, tuple[Check, ...])
    bad = [row for row in checks if row.required and row.status != "found"]
    record: Record = {
        **provenance.opening(kinds.DOCTOR.schema, "fail" if bad else "pass"),
        "checks": rows,
        "wall_time_s": round(time.monotonic() - start, 3),
        "host": host_facts.host(),
    }
    schema.check(record, "the doctor's report")
    reporter.show(_table(checks))
    _problems(checks, reporter)
    reporter.emit(record)
    if bad:
        names = ", ".join(row.name for row in bad)
        raise ToolError(f"not ready: {names}", bad[0].fix or "", recorded=True)
    lacking = [row.name for row in checks if row.needed_for == "compile" and row.status != "found"]
    reporter.show(
        f"Ready: what build and run need works; compile needs {', '.join(lacking)} as well."
        if lacking
        else "Ready: everything that compile, build and run need is here and works."
    )


def _table(checks: Sequence[Check]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("tool", "state", "version", "lock"):
        table.add_column(heading, no_wrap=True)
    table.add_column("needed for")
    for row in checks:
        colour = _COLOURS[row.status] if row.required or row.status == "found" else "yellow"
        optional = "" if row.required else " (optional)"
        told = f"; {row.detail}" if row.status == "found" and row.detail is not None else ""
        table.add_row(
            escape(row.name),
            f"[{colour}]{row.status}[/{colour}]",
            escape(row.version or ""),
            _LOCK_WORDS[row.lock.status],
            escape(f"{row.needed_for}{optional}{told}"),
        )
    return table


def _problems(checks: Sequence[Check], reporter: Reporter) -> None:
    """What is wrong with each tool, what differs from the lock, and the fix."""
    for row in checks:
        lock = row.lock
        if row.status == "missing" and not row.required:
            continue  # nothing is wrong; --json has how to get it
        if row.status != "found":
            reason = f": {row.detail}" if row.detail is not None else ""
            need = f", {row.wanted} is needed" if row.wanted is not None and row.status == "too old" else ""
            reporter.show(f"{escape(row.name)}: {row.status}{need}{escape_lines(reason)}")
            reporter.show(f"  fix: {escape(row.fix or '')}")
        elif lock.status == "differs":
            reporter.show(
                f"{escape(row.name)}: version {escape(lock.installed or '')}, tested with "
                f"{escape(lock.locked or '')}: results may differ from the image's"
            )
