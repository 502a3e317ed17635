"""`ethosu-sdk sweep query`: SQL over the cells of a sweep, by DuckDB, which can read nothing else."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Sequence
from decimal import Decimal
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
_MOST_BYTES = 64 << 20  # of an answer, as JSON
_MOST_SHOWN = 10_000  # values in a table for people
_LONGEST_SHOWN = 500  # characters of a value there
_JSON_BYTES = 8  # around a member
_BATCH_ROWS = 1000
_SCHEMA_ROWS = 100
_TIMEOUT_S = 60.0
_MOST_TABLE_BYTES = 1 << 30


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
    parent = DEFAULT_FOLDER
    found = sorted(path.parent for path in parent.glob(f"*/{store.TABLE_NAME}"))
    if len(found) != 1:
        count = "no sweeps" if not found else f"{len(found)} sweeps"
        raise UsageError(f"{parent} has {count}", "give the folder of one")
    return found[0]


def read_table(folder: Path) -> Any:
    """The table of the cells of the sweep in `folder`. InputError when there is none that can be read."""
    arrow = tools.load_extra("pyarrow", tools.SWEEP)
    parquet = tools.load_extra("pyarrow.parquet", tools.SWEEP)
    path = folder / store.TABLE_NAME
    if not path.is_file():
        raise InputError(
            f"{folder} holds no sweep: there is no {store.TABLE_NAME}", "give the folder of a sweep"
        )
    if path.stat().st_size > _MOST_TABLE_BYTES:
        raise InputError(f"{path} is too large for a table of cells")
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


def _answer(arrow: Any, sql: str) -> tuple[list[str], list[Sequence[Any]]]:
    duckdb = tools.load_extra("duckdb", tools.SWEEP)
    # No file can be read or written, by names of tables either, and no SET allows it again. A large answer would
    # otherwise go to files in the working folder.
    connection = duckdb.connect(config={"enable_external_access": False, "temp_directory": ""})
    try:
        connection.register(VIEW, arrow)
        return _selected(duckdb, connection, sql)
    finally:
        connection.close()


def _selected(duckdb: Any, connection: Any, sql: str) -> tuple[list[str], list[Sequence[Any]]]:
    """Names and values of the answer. The limit of time is for all of it: what is left is bounded by its size."""
    deadline = time.monotonic() + _TIMEOUT_S
    timer = threading.Timer(_TIMEOUT_S, connection.interrupt)
    timer.daemon = True
    try:
        statements = connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise UsageError(
                "a query must be one SELECT statement", f'"SELECT model, target, time_ms FROM {VIEW}"'
            )
        timer.start()
        reader = connection.execute(statements[0]).to_arrow_reader(_BATCH_ROWS)
        names = _unique(reader.schema.names)
        return names, _values(reader, names, deadline)
    except (duckdb.Error, OSError) as error:  # the reader's errors come as the latter
        if time.monotonic() > deadline:
            raise _too_slow() from error
        hint = f"columns: {', '.join(COLUMNS)}"
        raise UsageError(f"the query cannot be answered: {error}", hint) from error
    finally:
        timer.cancel()


def _values(reader: Any, names: Sequence[str], deadline: float) -> list[Sequence[Any]]:
    """The values of all rows. UsageError when there are too many, before they take memory or time."""
    rows: list[Sequence[Any]] = []
    size_bytes, named_bytes = 0, sum(len(name) + _JSON_BYTES for name in names)
    for batch in reader:
        size_bytes += batch.nbytes + batch.num_rows * named_bytes
        if size_bytes > _MOST_BYTES:
            raise UsageError(f"the answer has more than {_MOST_BYTES >> 20} MiB", "add a LIMIT, name columns")
        columns = [column.to_pylist(maps_as_pydicts="lossy") for column in batch.columns]
        rows += zip(*(map(_value, column) for column in columns), strict=True)
        if len(rows) > _MOST_ROWS:
            raise UsageError(f"the answer has more than {_MOST_ROWS:,} rows", "add a LIMIT")
        if time.monotonic() > deadline:
            raise _too_slow()
    return rows


def _too_slow() -> UsageError:
    return UsageError(f"the query took more than {_TIMEOUT_S:g} s")


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
    if isinstance(value, Decimal) and value == value.to_integral_value() and value.as_tuple().exponent == 0:
        return int(value)  # a sum
    if isinstance(value, list | tuple):
        return [_value(part) for part in value]
    if isinstance(value, dict):
        return {str(key): _value(part) for key, part in value.items()}
    return str(value)


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[RenderableType]:
    """The rows for people: as many of them as are read, and what gives the others."""
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
