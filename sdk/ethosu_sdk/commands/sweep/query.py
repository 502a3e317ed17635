"""`ethosu-sdk sweep query`: SQL over the cells of a sweep, by DuckDB, which sees nothing else."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from ethosu_sdk import plain_text, provenance, records, schema
from ethosu_sdk.commands.shared import csv_text, extras
from ethosu_sdk.commands.shared.reporter import Reporter
from ethosu_sdk.commands.shared.terminal import escape
from ethosu_sdk.commands.sweep import cells, plan as sweep_plan, rows as sweep_rows, store
from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.records import Record

VIEW = "cells"
SCHEMA = "sweep-answer/1"
_MOST_ROWS = 100_000
_TIMEOUT_S = 60.0
_MEMORY = "1GB"
_MOST_TABLE_BYTES = 1 << 30


def query(sql: str, folder: Path | None, as_csv: bool, reporter: Reporter) -> Record:
    """Answer the query `sql` about the sweep in `folder`; columns and rows.

    InputError for a folder without a sweep, UsageError for a query that is wrong or asks for something else.
    """
    table = read(folder_of(folder))
    names, rows = _answer(table, sql)
    record = {
        "schema": SCHEMA,
        "status": "pass",
        "created": records.timestamp(),
        "tool": provenance.tool(),
        "query": sql,
        "columns": names,
        "rows": [dict(zip(names, map(_value, row), strict=True)) for row in rows],
    }
    schema.check(record, "the answer")
    if as_csv:
        sys.stdout.write(csv_text.lines(names, rows))
    else:
        reporter.show(_table(names, rows))
    reporter.emit(record)
    return record


def folder_of(chosen: Path | None) -> Path:
    """The folder that was chosen, or the only one that a sweep has left here."""
    if chosen is not None:
        return chosen
    parent = sweep_plan.DEFAULT_FOLDER
    found = sorted(path.parent for path in parent.glob(f"*/{store.TABLE_NAME}"))
    if len(found) != 1:
        count = "no sweep" if not found else f"{len(found)} sweeps"
        raise UsageError(f"there is {count} below {parent}", "name the folder of one")
    return found[0]


def read(folder: Path) -> Any:
    """The table of the cells of the sweep in `folder`. InputError when there is none that can be read."""
    arrow = extras.load("pyarrow", extras.SWEEP)
    parquet = extras.load("pyarrow.parquet", extras.SWEEP)
    path = folder / store.TABLE_NAME
    if not path.is_file():
        raise InputError(
            f"{folder} holds no sweep: there is no {store.TABLE_NAME}", "give the folder of a sweep"
        )
    if path.stat().st_size > _MOST_TABLE_BYTES:
        raise InputError(f"{path} is too large for a table of cells")
    try:
        # The file by its own bytes: its name is not for the reader to interpret.
        with path.open("rb") as stream:
            file = parquet.ParquetFile(stream)
            if file.metadata.num_rows > cells.MOST_CELLS:
                raise InputError(f"{path} has more rows than a sweep has cells")
            return file.read(list(sweep_rows.COLUMNS)).select(list(sweep_rows.COLUMNS)).cast(store.columns())
    except KeyError as error:
        raise InputError(f"{path} lacks columns: {plain_text.line(error)}", "run the sweep again") from error
    except (OSError, ValueError, arrow.ArrowException) as error:
        raise InputError(f"{path} is no table of cells: {plain_text.line(error)}") from error


def _answer(arrow: Any, sql: str) -> tuple[list[str], list[Sequence[Any]]]:
    duckdb = extras.load("duckdb", extras.SWEEP)
    connection = duckdb.connect(":memory:")
    try:
        connection.register("loaded", arrow)
        connection.execute(f"CREATE TABLE {VIEW} AS SELECT * FROM loaded")
        connection.unregister("loaded")
        for setting in (
            f"memory_limit = '{_MEMORY}'",
            "max_temp_directory_size = '0B'",
            "temp_directory = ''",
            "python_enable_replacements = false",
            "autoinstall_known_extensions = false",
            "autoload_known_extensions = false",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            connection.execute(f"SET {setting}")
        return _selected(duckdb, connection, sql)
    finally:
        connection.close()


def _selected(duckdb: Any, connection: Any, sql: str) -> tuple[list[str], list[Sequence[Any]]]:
    timer = threading.Timer(_TIMEOUT_S, connection.interrupt)
    timer.daemon = True
    try:
        statements = connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise UsageError("a query is one SELECT", f'"SELECT model, target, time_ms FROM {VIEW}"')
        timer.start()
        found = connection.execute(statements[0])
        names = _unique([column[0] for column in found.description])
        rows = found.fetchmany(_MOST_ROWS + 1)
    except duckdb.InterruptException as error:
        raise UsageError(f"the query took more than {_TIMEOUT_S:g} s") from error
    except duckdb.Error as error:
        hint = f"columns: {', '.join(sweep_rows.COLUMNS)}"
        raise UsageError(f"the query cannot be answered: {error}", hint) from error
    finally:
        timer.cancel()
    if len(rows) > _MOST_ROWS:
        raise UsageError(f"the answer has more than {_MOST_ROWS:,} rows", "add a LIMIT")
    return names, rows


def _unique(names: Sequence[str]) -> list[str]:
    """The names, those that occur again with a number."""
    found: dict[str, None] = {}
    for name in names:
        candidate, number = name, 1
        while candidate in found:
            number += 1
            candidate = f"{name}_{number}"
        found[candidate] = None
    return list(found)


def _value(value: Any) -> Any:
    """A value of SQL as one of JSON."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [_value(part) for part in value]
    if isinstance(value, dict):
        return {str(key): _value(part) for key, part in value.items()}
    return str(value)


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for index, name in enumerate(names):
        numbers = all(isinstance(row[index], int | float) or row[index] is None for row in rows)
        table.add_column(escape(plain_text.line(name)), justify="right" if numbers else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(escape(_text(value)) for value in row))
    return table


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
