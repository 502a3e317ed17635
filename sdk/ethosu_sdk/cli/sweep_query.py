"""The command line of `sweep query`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.sweep import sweep_app
from ethosu_sdk.program_options import Option


@sweep_app.command("query")
def query_command(
    sql: Annotated[
        str,
        Option("One SELECT statement on the table `cells`.", metavar="SQL"),
    ],
    folder: Annotated[
        Path | None,
        Option("The folder of a sweep.", metavar="DIR", shown_default="the only one below build/sweep"),
    ] = None,
    *,
    csv: Annotated[bool, Option("Print CSV on stdout.")] = False,
    invocation: Invocation,
) -> None:
    """Query the table of a sweep's cells in SQL, with DuckDB. The query can read only that table.

    For example: "SELECT target, min(time_ms) FROM cells WHERE status = 'pass' GROUP BY target ORDER BY 2"
    """
    from ethosu_sdk.errors import UsageError
    from ethosu_sdk.sweep import query

    if csv and invocation.json:
        raise UsageError("--csv and --json both write to stdout", "leave one of them out")
    query.query(sql, folder, csv, invocation.reporter())
