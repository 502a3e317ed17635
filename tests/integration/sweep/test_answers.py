"""`sweep query` and `sweep compare`: what they answer, and what they refuse."""

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from ethosu_sdk.sweep.cells import MOST_CELLS
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.integration.compare import planted_vela
from tests.integration.sweep.sweeps import NET, SCALE, by_cell, rows, sweep, write

pytestmark = [pytest.mark.torch]

WORSE = "9.9.7"
CHANGE = """
_main = main
def main(args=None):
    return _main([*args, "--max-block-dependency=0", "--optimise=Size", "--disable-buffering"])
"""


def test_a_query_is_answered_in_every_form(small: Path, tmp_path: Path) -> None:
    sql = "SELECT target, min(npu_cycles) AS least FROM cells GROUP BY target ORDER BY target"
    wanted: dict[str, int] = {}
    for row in rows(small / "out"):
        wanted[row["target"]] = min(row["npu_cycles"], wanted.get(row["target"], row["npu_cycles"]))
    done = sdk("sweep", "query", sql, small / "out", "--json", cwd=tmp_path)
    answer = json.loads(done.out)
    assert answer["columns"] == ["target", "least"]
    assert {row["target"]: row["least"] for row in answer["rows"]} == wanted
    done = sdk("sweep", "query", sql, small / "out", "--csv", cwd=tmp_path)
    found = csv.DictReader(io.StringIO(done.out))
    assert {row["target"]: int(row["least"]) for row in found} == wanted
    done = sdk("sweep", "query", sql, small / "out", cwd=tmp_path)
    lines = [line.split() for line in done.out.splitlines()]
    assert lines == [["target", "least"], *([name, f"{least:,}"] for name, least in sorted(wanted.items()))]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('FOLDER/secret.csv')",
        "SELECT * FROM read_text('FOLDER/secret.csv')",
        "SELECT * FROM 'FOLDER/secret.csv'",
        "SELECT * FROM glob('FOLDER/*')",
        "COPY cells TO 'FOLDER/made.csv'",
        "COPY (SELECT 1) TO 'FOLDER/made.csv'",
        "ATTACH 'FOLDER/made.db'",
        "EXPORT DATABASE 'FOLDER/made'",
        "INSTALL httpfs",
        "LOAD 'FOLDER/made.so'",
        "SET enable_external_access = true",
        "SELECT 1; COPY cells TO 'FOLDER/made.csv'",
        "CREATE TABLE other AS SELECT * FROM cells",
        "DELETE FROM cells",
        "SELECT * FROM loaded",
        "SELECT * FROM table",
        "SELECT",
        "",
    ],
)
def test_a_query_sees_the_cells_alone(small: Path, tmp_path: Path, sql: str) -> None:
    (tmp_path / "secret.csv").write_text("what,nobody\nmay,know\n", encoding="utf-8")
    done = sdk("sweep", "query", sql.replace("FOLDER", str(tmp_path)), small / "out", cwd=tmp_path)
    assert (done.code, "Traceback" in done.err) == (2, False), done.err
    assert "nobody" not in done.out + done.err
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


def test_a_damaged_table_is_refused(small: Path, tmp_path: Path) -> None:
    for content in (b"", b"PAR1", (small / "out" / "cells.parquet").read_bytes()[:-9]):
        (tmp_path / "cells.parquet").write_bytes(content)
        assert_clear(sdk("sweep", "query", "SELECT 1", tmp_path, cwd=tmp_path), 3, "is not a table of cells")


def test_a_forged_table_is_refused(small: Path, tmp_path: Path) -> None:
    """Columns of other types, none at all, more rows than cells can be, and a cell that is elsewhere."""
    whole = parquet.read_table(small / "out" / "cells.parquet")
    place = whole.column_names.index("folder")

    def at(folder: object) -> pyarrow.Table:
        return whole.set_column(place, "folder", pyarrow.array([folder] * whole.num_rows))

    forged = {
        "typed": whole.set_column(place, "folder", pyarrow.array([{"a": 1}] * whole.num_rows)),
        "less": whole.drop_columns(["folder"]),
        "more": pyarrow.concat_tables([whole] * (MOST_CELLS // whole.num_rows + 1)),
        "nul": at("cells/\0"),
        "outside": at("../../out"),
    }
    for name, table in forged.items():
        folder = tmp_path / name
        shutil.copytree(small / "out", folder)
        parquet.write_table(table, folder / "cells.parquet")
        (folder / "manifest.json").unlink()
        assert_clear(sdk("sweep", "compare", small / "out", folder, cwd=tmp_path), 3)


def test_equal_sweeps_are_equal(small: Path, tmp_path: Path) -> None:
    done = sdk_ok("sweep", "compare", small / "out", small / "out", "--json", cwd=tmp_path)
    assert json.loads(done.out)["counts"] == {"pass": 8, "fail": 0, "blocked": 0, "missing": 0, "new": 0}


def test_a_worse_compiler_and_a_missing_cell_are_found(matrix: Path, tmp_path: Path) -> None:
    """A Vela with a planted change, in the cache under a version of its own."""
    planted_vela.plant({WORSE: CHANGE})
    write(tmp_path, NET, "net.py")
    write(tmp_path, SCALE, "scale.py")
    file = write(
        tmp_path,
        f"""models = ["net.py"]
targets = ["ethos-u55-32"]
memory_modes = ["Sram_Only", "Shared_Sram"]
vela = ["{WORSE}"]
simulators = ["host"]
""",
    )
    done = sweep(file, tmp_path / "out", "-j", "1")
    assert done.code == 0, done.err
    assert {row["vela"] for row in by_cell(tmp_path / "out").values()} == {WORSE}
    words = ("sweep", "compare", matrix / "out", tmp_path / "out", "--json")
    assert_clear(sdk(*words, cwd=tmp_path), 3, "they differ in versions")
    worse = sdk(*words, "--allow", "versions", "--allow", "model", cwd=tmp_path)
    assert worse.code == 7, worse.err
    found = json.loads(worse.out)
    assert found["counts"] == {"pass": 0, "fail": 2, "blocked": 0, "missing": 20, "new": 0}
    # Its programs are larger: what is told are the bytes of both tables.
    before, after = (
        {row["memory_mode"]: row["program_bytes"] for row in rows(out) if _is_compared(row)}
        for out in (matrix / "out", tmp_path / "out")
    )
    assert all(after[mode] > before[mode] for mode in after)
    told = {row["cell"]["memory_mode"]: row["reasons"] for row in found["cells"] if row["status"] == "fail"}
    assert told.keys() == after.keys()
    for mode, reasons in told.items():
        assert f"model.bytes: {before[mode]} \N{RIGHTWARDS ARROW} {after[mode]}" in reasons


def _is_compared(row: dict[str, Any]) -> bool:
    return (row["model"], row["target"]) == ("net.py", "ethos-u55-32")


def test_an_answer_has_a_bound(small: Path, tmp_path: Path) -> None:
    done = sdk("sweep", "query", "SELECT * FROM range(100001)", small / "out", cwd=tmp_path)
    assert (done.code, done.out) == (2, ""), done.err
    assert "the answer has more than 100,000 rows" in done.err


def test_a_long_table_is_cut_for_people_alone(small: Path, tmp_path: Path) -> None:
    sql = (
        "SELECT range, sum(range) AS total, repeat('y', 600) AS y FROM range(50000) GROUP BY range ORDER BY 1"
    )
    shown = sdk("sweep", "query", sql, small / "out", cwd=tmp_path)
    assert shown.out.splitlines()[-1] == "and 46,667 more rows: --csv and --json print all"
    assert shown.out.splitlines()[1].endswith("y…")
    whole = sdk("sweep", "query", sql, small / "out", "--csv", cwd=tmp_path)
    assert list(csv.reader(io.StringIO(whole.out)))[-1] == ["49999", "49999", "y" * 600]
