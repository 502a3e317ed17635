"""Where in the model something of a record comes from, as text."""

from __future__ import annotations

from ethosu_sdk.records import Record


def module_or_line(row: Record) -> str:
    """The module of `row`, the shorter way to find it, else its line; empty where neither is known."""
    module = row.get("source", {}).get("module")
    return str(module) if module else line(row)


def line_or_module(row: Record) -> str:
    """The line of `row`, for what is changed there, else its module; empty where neither is known."""
    return line(row) or str(row.get("source", {}).get("module", ""))


def line(row: Record) -> str:
    """File and line of `row`; empty where they are not known."""
    source = row.get("source", {})
    return f"{source['file']}:{source['line']}" if "file" in source else ""
