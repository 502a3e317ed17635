"""A sweep over boards: a dimension of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.sweep import cells, configuration, plan as sweep_plan
from ethosu_sdk.sweep.cells import Cell
from ethosu_sdk.sweep.options import SweepOptions

SWEEP = """models = ["zoo:add"]
targets = ["ethos-u55-128", "ethos-u55-256"]
systems = ["default", "alif-e[78]-h[pe]", "slow.toml"]
"""
SLOW = 'like = "alif-e8-hp"\ntitle = "Slow"\n[cpu]\nclock_hz = 100_000_000\n'


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    (tmp_path / "slow.toml").write_text(SLOW)
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP)
    return path


def found(sweep: Path, **options: object) -> tuple[Cell, ...]:
    return cells.expand(configuration.read(sweep, **options)).cells  # type: ignore[arg-type]


def test_each_cell_is_for_its_board(sweep: Path) -> None:
    """HP has 256 MACs and HE 128 (Alif's kws_ethosu/README.rst); the other pairings are dropped."""
    known = [(cell.target.macs, cell.system, cell.target.system_config) for cell in found(sweep)]
    hp, he = "RTSS_HP_SRAM_MRAM", "RTSS_HE_SRAM_MRAM"
    assert known == [
        (128, None, "Ethos_U55_High_End_Embedded"),
        (256, None, "Ethos_U55_High_End_Embedded"),
        *((256, "alif-e7-hp", hp), (128, "alif-e7-he", he)),
        *((256, "alif-e8-hp", hp), (128, "alif-e8-he", he)),
        (256, "slow.toml", hp),
    ]
    dropped = cells.expand(configuration.read(sweep)).dropped
    assert dropped["alif-e8-hp has no ethos-u55-128"] == 1


def planned(sweep: Path) -> dict[str | None, sweep_plan.Planned]:
    read = configuration.read(sweep)
    made = sweep_plan.make(read, sweep.parent / "store", SweepOptions())
    return {row.cell.system: row for row in made.cells}


def test_a_lowering_serves_every_board_and_a_compilation_one(sweep: Path) -> None:
    rows = planned(sweep)
    assert len({row.lowering for row in rows.values()}) == 1
    assert (
        len({row.compilation for row in rows.values()})
        == len({row.key for row in rows.values()})
        == len(rows)
    )


def test_another_clock_of_a_board_is_another_result_of_its_cells_alone(sweep: Path) -> None:
    before = planned(sweep)
    (sweep.parent / "slow.toml").write_text(SLOW.replace("100_", "200_"))
    after = planned(sweep)
    assert {name for name, row in after.items() if row.key != before[name].key} == {"slow.toml"}


def test_tasks_name_the_board_from_any_folder(sweep: Path) -> None:
    read = configuration.read(sweep)
    made = sweep_plan.make(read, sweep.parent / "store", SweepOptions())
    systems = {
        row.cell.system: sweep_plan.tasks(made, row, "token", SweepOptions())["finish"]["system"]
        for row in made.cells
    }
    assert systems["slow.toml"] == str(sweep.parent / "slow.toml")
    assert (systems["alif-e8-hp"], systems[None]) == ("alif-e8-hp", None)


def test_the_option_gives_every_cell_the_board(sweep: Path) -> None:
    sweep.write_text(SWEEP.replace('systems = ["default", "alif-e[78]-h[pe]", "slow.toml"]\n', ""))
    assert {cell.system for cell in found(sweep, system="alif-e8-hp")} == {"alif-e8-hp"}


def test_an_include_may_have_a_board_and_an_exclude_a_pattern(sweep: Path) -> None:
    text = SWEEP + '[[exclude]]\nsystem = "alif-*"\n'
    text += '[[include]]\ntarget = "ethos-u85-256"\nsystem = "alif-e8-hp-u85"\n'
    sweep.write_text(text)
    assert [cell.system for cell in found(sweep)] == [None, None, "slow.toml", "alif-e8-hp-u85"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("alif-e[78]-h[pe]", "alif-e9", "there is no board profile 'alif-e9'"),
        ("slow.toml", "fast.toml", "fast.toml"),
        ('"default", ', "5, ", "systems"),
    ],
)
def test_what_is_no_board_is_refused_with_its_line(old: str, new: str, words: str, sweep: Path) -> None:
    sweep.write_text(SWEEP.replace(old, new))
    with pytest.raises(InputError) as error:
        configuration.read(sweep)
    assert words in error.value.message
    assert "sweep.toml" in error.value.message


def test_a_profile_that_is_none_is_refused(sweep: Path) -> None:
    (sweep.parent / "slow.toml").write_text('like = "alif-e8-hp"\ncpu = { clock_hz = -1 }\n')
    with pytest.raises(InputError, match=r"sweep.toml:3: .*slow.toml:2: clock_hz must be"):
        configuration.read(sweep)


def test_the_option_and_the_files_boards_exclude_each_other(sweep: Path) -> None:
    with pytest.raises(UsageError, match="both name boards"):
        configuration.read(sweep, system="alif-e8-hp")
