"""`ethosu-sdk doctor`: every tool that the SDK uses, and what to do about those that lack."""

from __future__ import annotations

import platform
import sys

from rich.markup import escape
from rich.table import Table

from ethosu_sdk import provenance, records, schema, tools
from ethosu_sdk.commands import host_facts
from ethosu_sdk.commands.reporter import Reporter
from ethosu_sdk.errors import ToolError
from ethosu_sdk.records import Record

_PYTHON = ((3, 11), (3, 13))
_COLOURS = {"found": "green", "missing": "red", "too old": "red", "broken": "red"}


def doctor(reporter: Reporter) -> None:
    """Report every tool; ToolError when one that is not optional cannot be used."""
    checks = [_python(), *(_row(tools.probe(name)) for name in tools.table())]
    bad = [row for row in checks if row["required"] and row["status"] != "found"]
    record: Record = {
        "schema": "doctor-report/1",
        "status": "fail" if bad else "pass",
        "created": records.timestamp(),
        "tool": provenance.tool(),
        "checks": checks,
        "host": host_facts.host(),
    }
    schema.check(record, "the doctor's report")
    reporter.show(_table(checks))
    reporter.emit(record)
    if bad:
        names = ", ".join(row["name"] for row in bad)
        raise ToolError(f"not ready: {names}", bad[0]["fix"], recorded=True)
    lacking = [row["name"] for row in checks if row["needed_for"] == "compile" and row["status"] != "found"]
    reporter.show(
        f"Ready to build and run; compile needs {', '.join(lacking)} as well."
        if lacking
        else "Ready: everything that compile, build and run need is here."
    )


def _python() -> Record:
    low, high = _PYTHON
    good = low <= sys.version_info[:2] < high
    return {
        "name": "python",
        "status": "found" if good else "too old" if sys.version_info[:2] < low else "broken",
        "needed_for": "everything",
        "required": True,
        "version": platform.python_version(),
        "wanted": f"{low[0]}.{low[1]}",
        **({} if good else {"fix": "use Python 3.11 or 3.12: the pinned packages have wheels for these"}),
    }


def _row(found: tools.Found) -> Record:
    tool = found.tool
    details = {
        "version": found.version,
        "wanted": tool.wanted,
        "file": str(found.path) if found.path else "",
        "fix": "" if found.status == "found" else tool.fix,
        "detail": found.detail,
    }
    return {
        "name": tool.name,
        "status": found.status,
        "needed_for": tool.needed_for,
        "required": not tool.optional,
        **{key: value for key, value in details.items() if value},
    }


def _table(checks: list[Record]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("tool", "state", "version", "needed for"):
        table.add_column(heading, no_wrap=True)
    table.add_column("fix")
    for row in checks:
        colour = _COLOURS[row["status"]] if row["required"] or row["status"] == "found" else "yellow"
        table.add_row(
            escape(row["name"]),
            f"[{colour}]{row['status']}[/{colour}]",
            row.get("version", ""),
            escape(row["needed_for"]),
            escape(row.get("detail", "") or row.get("fix", "") if row["required"] else "optional"),
        )
    return table
