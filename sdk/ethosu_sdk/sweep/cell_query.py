"""`ethosu-sdk sweep query`: SQL over the cells of a sweep, by DuckDB, which can read nothing else."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from ethosu_sdk.base import filesystem, plain_text, tools
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.terminal import Reporter, RowByRow, escape
from ethosu_sdk.records import bundle, kinds, provenance, result_files, validation
from ethosu_sdk.sweep import cells, store
from ethosu_sdk.sweep.cell_rows import COLUMNS
from ethosu_sdk.sweep.sweep_plan import DEFAULT_FOLDER

VIEW = "cells"
_MOST_ROWS = 100_000
_MOST_SHOWN = 10_000  # values in a table for people
_LONGEST_SHOWN = 500  # characters of a value there
_SCHEMA_ROWS = 100


def query_cells(sql: str, folder: Path | None, as_csv: bool, reporter: Reporter) -> Record:
    """Answer the query `sql` about the sweep in `folder`; columns and rows.

    InputError for a folder without a sweep, UsageError for a query that is wrong or asks for something else.
    """
    table = read_table(queried_folder(folder))
    names, rows = _answer(table, sql)
    found = [dict(zip(names, row, strict=True)) for row in rows]
    record = {
        **provenance.opening(kinds.SWEEP_ANSWER.schema, "pass"),
        "query": sql,
        "columns": names,
        "rows": found,
    }
    # The rows are alike: some stand for all of them, which would take longer than the query.
    validation.check_record({**record, "rows": found[:_SCHEMA_ROWS]}, "the answer")
    if as_csv:
        sys.stdout.write(result_files.csv_lines(names, rows))
    elif not reporter.as_json:
        reporter.show(*_table(names, rows))
    reporter.emit(record)
    return record


def queried_folder(chosen: Path | None) -> Path:
    """The folder that was chosen, or the only one that a sweep has left here."""
    if chosen is not None:
        return chosen
    found = sorted(path.parent for path in DEFAULT_FOLDER.glob(f"*/{store.TABLE_NAME}"))
    if len(found) != 1:
        count = "no sweeps" if not found else f"{len(found)} sweeps"
        raise UsageError(f"{DEFAULT_FOLDER} has {count}", "give the folder of one")
    return found[0]


def read_table(folder: Path) -> Any:
    """The table of the cells of the sweep in `folder`. InputError when there is none that can be read."""
    arrow = tools.load_extra("pyarrow", tools.SWEEP)
    parquet = tools.load_extra("pyarrow.parquet", tools.SWEEP)
    path = folder / store.TABLE_NAME
    if not path.is_file():
        message = f"{folder} holds no sweep: there is no {store.TABLE_NAME}"
        raise InputError(message, "give the folder of a sweep")
    bundle.confirm_listed(path)
    try:
        # The file by its own bytes: its name is not for the reader to interpret.
        with filesystem.open_regular(path) as stream:
            file = parquet.ParquetFile(stream)
            if file.metadata.num_rows > cells.MOST_CELLS:
                raise InputError(f"{path} has more rows than a sweep has cells")
            return file.read(list(COLUMNS)).select(list(COLUMNS)).cast(store.table_schema())
    except KeyError as error:
        raise InputError(f"{path} lacks columns: {plain_text.line(error)}", "run the sweep again") from error
    except (OSError, ValueError, arrow.ArrowException) as error:
        raise InputError(f"{path} is not a table of cells: {plain_text.line(error)}") from error


def _answer(table: Any, sql: str) -> tuple[list[str], list[Sequence[Any]]]:
    """Names and values of the answer. No file can be read or written, by names of tables either."""
    duckdb = tools.load_extra("duckdb", tools.SWEEP)
    with duckdb.connect(config={"enable_external_access": False, "temp_directory": ""}) as connection:
        connection.register(VIEW, table)
        try:
            statements = connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                example = f'"SELECT model, target, time_ms FROM {VIEW}"'
                raise UsageError("a query must be one SELECT statement", example)
            found = connection.execute(statements[0])
            rows = found.fetchmany(_MOST_ROWS + 1)
        except duckdb.Error as error:
            hint = f"columns: {', '.join(COLUMNS)}"
            raise UsageError(f"the query cannot be answered: {error}", hint) from error
        if len(rows) > _MOST_ROWS:
            raise UsageError(f"the answer has more than {_MOST_ROWS:,} rows", "add a LIMIT")
        return _unique([row[0] for row in found.description]), [tuple(map(_value, row)) for row in rows]


def _unique(names: Sequence[str]) -> list[str]:
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


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[RenderableType]:
    shown = rows[: max(1, _MOST_SHOWN // len(names))]
    table = RowByRow(box=None, pad_edge=False)
    for index, name in enumerate(names):
        numbers = all(isinstance(row[index], int | float) or row[index] is None for row in shown)
        table.add_column(escape(plain_text.line(name)), justify="right" if numbers else "left", no_wrap=True)
    for row in shown:
        table.add_row(*(escape(plain_text.cut(_text(value), _LONGEST_SHOWN)) for value in row))
    left = len(rows) - len(shown)
    return [table, f"and {counted(left, 'more row')}: --csv and --json print all"] if left else [table]


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
