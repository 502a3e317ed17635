"""`ethosu-sdk validate`: check a record against its schema and the named extra rules."""

from __future__ import annotations

from pathlib import Path

from ethosu_sdk import records, schema
from ethosu_sdk.commands.shared.reporter import Reporter
from ethosu_sdk.commands.shared.terminal import escape


def validate(path: Path, reporter: Reporter) -> None:
    """Raise InputError, listing the problems, unless `path` holds a valid record."""
    record = records.read_json(path)
    schema.check(record, str(path))
    reporter.show(f"{escape(str(path))}: valid [bold]{record['schema']}[/bold], status {record['status']}")
    reporter.emit(record)
