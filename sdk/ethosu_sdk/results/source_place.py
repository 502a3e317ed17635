"""Where in the model something of a record comes from, as text; empty where it is not known."""

from __future__ import annotations

from ethosu_sdk.records.common import SourceLine


def module_or_line(source: SourceLine | None) -> str:
    """The module, the shorter way to find it, else the line."""
    return module(source) or line(source)


def line_or_module(source: SourceLine | None) -> str:
    """The line, for what is changed there, else the module."""
    return line(source) or module(source)


def module(source: SourceLine | None) -> str:
    """The module."""
    return (source.module or "") if source is not None else ""


def line(source: SourceLine | None) -> str:
    """File and line."""
    return f"{source.file}:{source.line}" if source is not None and source.file is not None else ""
