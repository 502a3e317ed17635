"""Every command's tables at 80, 100 and 200 columns: no figure is cut or wrapped, no line is longer, columns that are
left out are named."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.analysis import debug_command, verify_command
from ethosu_sdk.base import board_profiles
from ethosu_sdk.base.terminal import Ranked, RowByRow, Terminal
from ethosu_sdk.cli.options import PANELS
from ethosu_sdk.compile import compile_command, program_options
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.firmware_build import build_command
from ethosu_sdk.records import answers, kinds, profile_words
from ethosu_sdk.records.common import Metric
from ethosu_sdk.records.printed import Check, Verification
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.reporting.advise import advise_command
from ethosu_sdk.reporting.compare import compare_command
from ethosu_sdk.run import run_record
from ethosu_sdk.run.options import RunOptions
from ethosu_sdk.sweep import cell_query, sweep_command, sweep_comparison
from tests.integration.cli import sdk
from tests.integration.sweep_page import sweeps
from tests.integration.terminal.widths import WIDTHS, of_command, printed, wrong
from tests.places import GOLDEN_KIT_LOGS, GOLDEN_LOGS, GOLDEN_PTE, ROOT
from tests.records import read

EXAMPLES = ROOT / "schemas" / "examples" / "valid"
NOT_OF_RUN = ("inputs", "etrecord")  # of compile's: `run` has its own, or none
FOLDER = Path("build/model")
SWEEP = """
models = ["zoo:ds_cnn"]
targets = ["ethos-u55-*"]
memory_modes = ["Shared_Sram", "Dedicated_Sram"]
"""

Record = dict[str, Any]
Parts = list[RenderableType]


def _built(record: Record) -> Parts:
    memory = kinds.BUILD.convert(record).memory
    return [
        build_command.memory_table([row.to_json() for row in memory.regions], "region"),
        build_command._pool_table(memory.pools),
    ]


# What a command shows of its record, by the record's schema.
SHOWN: dict[str, Callable[[Record], Parts]] = {
    "profile": lambda record: profile_words.profile_tables(kinds.content(record), FOLDER),
    "debug": lambda record: debug_command.debug_tables(kinds.content(record), FOLDER, None),
    "compile-result": lambda record: compile_command.compile_tables(record, FOLDER),
    "build-result": _built,
    "run-result": lambda record: [run_record.run_summary(kinds.RUN.convert(record), FOLDER)],
    "compare": lambda record: compare_command.compare_tables(kinds.content(record)),
    "advice": lambda record: [
        *advise_command.answer(kinds.content(record), FOLDER),
        *advise_command.advice_tables(kinds.content(record)),
    ],
    "sweep-compare": lambda record: list(sweep_comparison.comparison_tables(kinds.content(record))),
    "verify-result": lambda record: [verify_command.verify_table(kinds.content(record))],
}


def _examples() -> Iterator[Any]:
    for path in sorted(EXAMPLES.glob("*.json")):
        record = read(path)
        show = SHOWN.get(record["schema"].partition("/")[0])
        if show is not None:
            yield pytest.param(show, record, id=path.stem)


@pytest.mark.parametrize(("show", "record"), list(_examples()))
def test_figures_of_a_record_are_whole(show: Callable[[Record], Parts], record: Record) -> None:
    assert wrong(show(record)) == []


@pytest.mark.parametrize(
    "words",
    [
        *(("inspect", path, "--commands") for path in sorted(GOLDEN_PTE.glob("*.pte"))),
        *(
            ("parse-log", path)
            for path in sorted([*GOLDEN_LOGS.glob("*.log"), *GOLDEN_KIT_LOGS.glob("*.log")])
        ),
        ("export", GOLDEN_PTE / "add_u55.pte", "-o", "settings"),
        ("zoo",),
        ("boards",),
        *(("boards", name) for name in board_profiles.profile_names()),
        ("explain",),
        ("explain", "0x21"),
        ("doctor",),
        ("sweep", "run", "sweep.toml", "--dry-run"),
    ],
    ids=lambda words: "-".join(Path(word).stem for word in words[:2]),
)
def test_figures_of_a_command_are_whole(
    words: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    assert wrong(of_command(monkeypatch, *words)) == []


def test_figures_of_a_run_are_whole(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (
        ("profile", run_folder),
        ("profile", run_folder, "--rows", 2),
        ("advise", run_folder, "-o", tmp_path / "advice"),
        ("advise", tmp_path / "advice", 1),
        ("compare", run_folder, run_folder),
        ("report", run_folder, "-o", tmp_path / "report.html"),
        ("convert", run_folder, "--to", "junit", "-o", tmp_path / "junit.xml"),
    ):
        assert wrong(of_command(monkeypatch, *words)) == [], words


def test_figures_of_a_sweep_are_whole(tmp_path: Path) -> None:
    sweep = sweeps.made(sweeps.rows(models=2)[::4], tmp_path)
    names = list(sweep.rows[0])
    values = [list(row.values()) for row in sweep.rows]
    assert (
        wrong([*sweep_command._verdict_tables(sweep.verdict, sweep.rows), *cell_query._table(names, values)])
        == []
    )


def test_verify_shows_figures_whole_and_digests_short() -> None:
    record = read(EXAMPLES / "verify.json")
    content = kinds.content(record)
    assert isinstance(content, Verification)
    long = "12345678901234567.25"
    checks = [Check(name="/npu/cycles", status="differs", recorded="1234567", found=long), *content.checks]
    text = printed(80, verify_command.verify_table(structs.replace(content, checks=tuple(checks))))
    assert "1,234,567" in text
    assert long in text
    assert "0123456789abcdef " in text


def test_columns_give_way_in_their_order() -> None:
    table = Ranked("name", drop=("second", "first"))
    for heading in ("first", "second"):
        table.add_column(heading, justify="right")
    table.add_row("a name of a layer that is long enough", "1" * 20, "2" * 20)
    assert "left out" not in printed(80, table)
    narrow = printed(50, table)
    assert "left out in 50 columns: second" in narrow
    assert "1" * 20 in narrow
    assert "left out in 30 columns: second, first" in " ".join(printed(30, table).split())
    assert len(table.columns) == 3


def test_rich_alone_cuts_figures() -> None:
    """What the tests find where nothing fits the tables: Rich's own dots, and a figure in two lines."""
    example = profile_words.profile_tables(kinds.content(read(EXAMPLES / "profile-digits_cnn.json")), FOLDER)
    table = example[0]
    assert isinstance(table, Table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Terminal, "_fitted", lambda _, table, __: table)
        found = wrong([table])
        narrow = Table("", box=None, show_header=False, width=12)
        narrow.add_row("9,876,543,210,123")
        folded = wrong([narrow])
    assert any("80: lost" in line for line in found)
    assert any("lost 9,876,543,210,123" in line for line in folded)
    assert wrong(["1 operators"]) == ["plural: 1 operators"]
    assert wrong(["12,3… cycles"])[0].startswith("dots")


def test_rows_that_do_not_fit_are_shown_one_by_one() -> None:
    table = RowByRow("model", "npu_cycles", box=None, pad_edge=False)
    table.add_row("zoo:ds_cnn", "145,660")
    table.add_row("zoo:digits_cnn", "19,549")
    assert printed(60, table).splitlines()[1].split() == ["zoo:ds_cnn", "145,660"]
    rows = [line.split() for line in printed(27, table).splitlines()]
    assert rows == [
        ["model", "zoo:ds_cnn"],
        ["npu_cycles", "145,660"],
        [],
        ["model", "zoo:digits_cnn"],
        ["npu_cycles", "19,549"],
    ]


@pytest.mark.parametrize("width", [60, *WIDTHS])
def test_help_breaks_no_name(width: int, tmp_path: Path) -> None:
    """Each option of `run`, which has the longest ones, is in its help as it is written, and so are its choices."""
    done = sdk("run", "--help", cwd=tmp_path, env={"COLUMNS": str(width), "TERM": "dumb"})
    words = set(re.split(r"[\s│,]+", done.out))
    rows = [
        row for name, row in program_options.option_fields(CompileOptions).items() if name not in NOT_OF_RUN
    ]
    rows += program_options.option_fields(RunOptions).values()
    options = {program_options.option_name(row) for row in rows}
    assert options <= {option for panel in PANELS.values() for option in panel}
    assert {"--require-full-delegation", "--memory-timing"} <= options
    assert options - words == set()
    if width >= 80:
        assert {"vela|board|executorch|FILE.toml", "corstone-300|corstone-320"} <= words


def test_operations_have_one_order_of_cost() -> None:
    """1,000 cycles of a CPU are fewer than 1,100 of an NPU. By time, waits and runtime count as well."""
    timed, example = (
        kinds.content(read(EXAMPLES / f"profile-{name}.json")) for name in ("add-timed", "digits_cnn")
    )
    assert isinstance(timed, Profile)
    assert isinstance(example, Profile)
    cpu, npu = (Metric(value=value, unit="cycles", source="modelled") for value in (1000, 1100))
    rows = [
        structs.replace(row, cpu_cycles=cpu) if row.runs_on == "CPU" else structs.replace(row, cycles=(npu,))
        for row in example.operations
    ]
    record = structs.replace(example, operations=tuple(rows))
    assert _dearest(structs.replace(record, time=timed.time)) == ("CPU", "ms")
    assert _dearest(structs.replace(record, time=None)) == ("NPU", "cycles")


def test_what_ends_with_the_operation_before_is_not_free() -> None:
    example = kinds.content(read(EXAMPLES / "profile-digits_cnn.json"))
    assert isinstance(example, Profile)
    none = Metric(value=0, unit="cycles", source="modelled")
    rows = [structs.replace(row, cycles=(none,)) if row.macs else row for row in example.operations]
    table = profile_words.profile_tables(structs.replace(example, operations=tuple(rows)), FOLDER)[0]
    hidden = [line for line in printed(200, table).splitlines() if " parallel " in line]
    assert len(hidden) == sum(bool(row.macs) for row in example.operations) > 0


def _dearest(record: Profile) -> tuple[str, str]:
    row = next(row for row in answers.slowest_rows(record, 99) if row.on)
    return row.on, row.cost.split()[-1]
