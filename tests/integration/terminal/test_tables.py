"""Tables in terminals of several widths: no line is longer, no figure is cut, columns that are left out are named."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ethosu_sdk import program_options
from ethosu_sdk.console import terminal
from ethosu_sdk.console.fitting import Ranked
from ethosu_sdk.readers.advise import advise_tables
from ethosu_sdk.readers.compare import compare_tables
from ethosu_sdk.records import kinds
from ethosu_sdk.steps import build_command
from ethosu_sdk.steps.compile import compile_tables
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.debug import debug_tables
from ethosu_sdk.steps.run import run_record
from ethosu_sdk.steps.run.options import RunOptions
from ethosu_sdk.sweep import comparison
from ethosu_sdk.tables import profile_tables
from tests.integration.cli import sdk
from tests.places import GOLDEN_PTE, ROOT

EXAMPLES = ROOT / "schemas" / "examples" / "valid"
NOT_OF_RUN = ("inputs", "etrecord")  # of compile's: `run` has its own, or none
FOLDER = Path("build/model")
WIDTHS = (80, 100, 200)
LEFT_OUT = re.compile(r"left out in \d+ columns: (.+)")

Record = dict[str, Any]


def _record(name: str) -> Record:
    record = json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    assert isinstance(record, dict)
    return record


def _built() -> list[RenderableType]:
    memory = kinds.BUILD.convert(_record("build-ds_cnn")).memory
    return [
        build_command.memory_table([row.to_json() for row in memory.regions], "region"),
        build_command._pool_table(memory.pools),
    ]


# What each command shows, made from an example of its record.
SHOWN: dict[str, Callable[[], list[RenderableType]]] = {
    "profile": lambda: profile_tables.tables(_content("profile-digits_cnn"), FOLDER, None),
    "debug": lambda: debug_tables.tables(_content("debug-wrong-scale"), FOLDER, None),
    "compile": lambda: compile_tables.tables(_record("compile-digits_cnn-evaluated"), FOLDER),
    "build": _built,
    "run": lambda: [run_record.summary(_record("run-both-runtimes"), FOLDER)],
    "compare": lambda: compare_tables.tables(_content("compare-digits_cnn"), None),
    "advise": lambda: advise_tables.tables(_content(_name("advice")), FOLDER),
    "sweep compare": lambda: list(comparison.tables(_content(_name("sweep-compare")))),
}


def _content(name: str) -> Any:
    return kinds.content(_record(name))


def _name(schema: str) -> str:
    """An example of a record."""
    return next(
        path.stem
        for path in sorted(EXAMPLES.glob("*.json"))
        if _record(path.stem)["schema"].startswith(schema)
    )


def _tables(parts: list[RenderableType]) -> Iterator[Table]:
    for part in parts:
        if isinstance(part, Group):
            yield from _tables(list(part.renderables))
        elif isinstance(part, Table):
            yield part


def _printed(width: int, *parts: RenderableType) -> str:
    text = io.StringIO()
    terminal.show(terminal.Terminal(file=text, width=width), *parts)
    return text.getvalue()


def _lost(table: Table, text: str) -> list[str]:
    """The figures of `table` that `text` does not show whole, but for those of columns that it says are left out."""
    named = LEFT_OUT.search(" ".join(text.split()))
    gone = named[1] if named else ""
    figures = [
        column for column in table.columns if column.justify == "right" and str(column.header) not in gone
    ]
    cells = [
        Text.from_markup(str(cell)).plain for column in figures for cell in (column.header, *column._cells)
    ]
    words = re.sub(r"\s+", " ", text)
    return [cell for cell in cells if cell and f" {cell} " not in f" {words} "]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", SHOWN)
def test_figures_are_whole(command: str, width: int) -> None:
    parts = SHOWN[command]()
    assert max(map(len, _printed(width, *parts).splitlines())) <= width
    for table in _tables(parts):
        text = _printed(width, table)
        assert _lost(table, text) == [], text


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "words",
    [
        ("inspect", GOLDEN_PTE / "add_u85_segment.pte"),
        ("zoo",),
        ("export", GOLDEN_PTE / "add_u55.pte"),
        ("explain",),
        ("doctor",),
    ],
    ids=lambda words: words[0],
)
def test_no_figure_of_a_command_has_dots(words: tuple[str, ...], width: int, tmp_path: Path) -> None:
    done = sdk(*words, cwd=tmp_path, env={"COLUMNS": str(width), "TERM": "dumb"})
    assert done.out
    assert not re.search(r"[\d,.%]\s?…", done.out), done.out
    assert max(map(len, done.out.splitlines())) <= width


def test_columns_give_way_in_their_order() -> None:
    table = Ranked("name", drop=("second", "first"))
    for heading in ("first", "second"):
        table.add_column(heading, justify="right")
    table.add_row("a name of a layer that is long enough", "1" * 20, "2" * 20)
    assert "left out" not in _printed(80, table)
    narrow = _printed(50, table)
    assert "left out in 50 columns: second" in narrow
    assert "1" * 20 in narrow
    assert "left out in 30 columns: second, first" in " ".join(_printed(30, table).split())
    assert len(table.columns) == 3


def test_rich_alone_cuts_figures() -> None:
    """What the test of the tables finds without the fitting."""
    table = profile_tables.tables(_content("profile-digits_cnn"), FOLDER, None)[0]
    assert isinstance(table, Table)
    from rich.console import Console

    text = io.StringIO()
    Console(file=text, width=80).print(table)
    assert _lost(table, text.getvalue())


@pytest.mark.parametrize("width", [60, *WIDTHS])
def test_help_breaks_no_name(width: int, tmp_path: Path) -> None:
    """Each option of `run`, which has the longest ones, is in its help as it is written, and so are its choices."""
    done = sdk("run", "--help", cwd=tmp_path, env={"COLUMNS": str(width), "TERM": "dumb"})
    words = set(re.split(r"[\s│,]+", done.out))
    rows = [row for name, row in program_options.rows(CompileOptions).items() if name not in NOT_OF_RUN]
    rows += program_options.rows(RunOptions).values()
    options = {program_options.name_of(row) for row in rows}
    assert {"--require-full-delegation", "--memory-timing"} <= options
    assert options - words == set()
    if width >= 80:
        assert {"vela|executorch|FILE.toml", "corstone-300|corstone-320"} <= words


def test_a_row_of_operations_has_a_cell_for_each_heading() -> None:
    rows = profile_tables.merged(_content("profile-digits_cnn").operations)
    assert {row.operation.runs_on for row in rows} == {"CPU", "NPU"}
    assert {len(tuple(profile_tables.cells(row))) for row in rows} == {len(profile_tables.HEADINGS)}
