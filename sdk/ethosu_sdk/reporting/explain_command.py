"""`ethosu-sdk explain`: what an error means and what to do about it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.table import Table

from ethosu_sdk.base import error_catalogue
from ethosu_sdk.base.error_catalogue import KnownError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.records import kinds, provenance, validation


def explain(words: str, reporter: Reporter, *, markdown: bool = False) -> None:
    """Show the errors that `words` mean, all of them when it is empty. UsageError when none is known."""
    if markdown:
        sys.stdout.write(error_catalogue.as_markdown())
        return
    found = error_catalogue.look_up(words) if words.strip() else error_catalogue.known_errors()
    record: Record = {
        **provenance.opening(kinds.EXPLANATION.schema, "pass"),
        "asked": words,
        "errors": [
            {
                "id": error.id,
                "area": error.area,
                "harmless": error.harmless,
                "cause": error.cause,
                "fix": error.fix,
                **({"code": error.code, "name": error.name} if error.code is not None else {}),
            }
            for error in found
        ],
    }
    validation.check_record(record, "the explanation")
    reporter.show(_table(found, short=not words.strip()))
    reporter.emit(record)


def _table(found: Sequence[KnownError], *, short: bool) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for error in found:
        code = f"0x{error.code:02x} {error.name}" if error.code is not None else error.area
        if short:
            table.add_row(error.id, code, escape(error.cause))
            continue
        table.add_row("error", f"[bold]{error.id}[/bold] ({code})")
        table.add_row("cause", escape(error.cause))
        table.add_row("what to do", escape(error.fix))
    return table
