"""Where in the model something of a record comes from, as text; empty where it is not known."""

from __future__ import annotations

from ethosu_sdk.records.common import SourceLine


def module(source: SourceLine | None) -> str:
    """The module's path, such as ``layers.2.conv``."""
    return (source.module or "") if source is not None else ""


def line(source: SourceLine | None) -> str:
    """File and line."""
    return f"{source.file}:{source.line}" if source is not None and source.file is not None else ""


def function(source: SourceLine | None) -> str:
    """The line and its function, such as ``model.py:31 in Block.forward``."""
    inside = f" in {source.function}" if source is not None and source.function else ""
    return line(source) + inside


def module_or_line(source: SourceLine | None) -> str:
    """The module's path, else the line: a short name."""
    return module(source) or line(source)


def place(source: SourceLine | None) -> str:
    """All that is known, such as ``model.py:31 in Block.forward (layers.2.conv)``."""
    written, path = function(source), module(source)
    return f"{written} ({path})" if written and path else written or path
