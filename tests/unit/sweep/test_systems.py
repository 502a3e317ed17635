"""Sweeps over boards and over the systems of a user's Vela configuration file."""

import json
from pathlib import Path

import pytest

from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.records import kinds
from ethosu_sdk.sweep import cell_rows, cells, sweep_configuration, sweep_plan
from ethosu_sdk.sweep.cells import Cell
from ethosu_sdk.sweep.options import SweepOptions
from ethosu_sdk.sweep.sweep_plan import Keys
from tests.places import ROOT

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
    return cells.expand(sweep_configuration.read_configuration(sweep, **options)).cells  # type: ignore[arg-type]


def test_each_cell_is_for_its_board(sweep: Path) -> None:
    """HP has 256 MACs and HE 128 (Alif's kws_ethosu/README.rst); the other pairings are dropped."""
    known = [(cell.target.macs, cell.system, cell.target.system_config) for cell in found(sweep)]
    hp, he = "RTSS_HP_SRAM_MRAM", "RTSS_HE_SRAM_MRAM"
    assert known == [
        (128, None, "Ethos_U55_High_End_Embedded"),
        (256, None, "Ethos_U55_High_End_Embedded"),
        *((128, "alif-e7-he", he), (256, "alif-e7-hp", hp)),
        *((128, "alif-e8-he", he), (256, "alif-e8-hp", hp)),
        (256, "slow.toml", hp),
    ]
    dropped = cells.expand(sweep_configuration.read_configuration(sweep)).dropped
    assert dropped["alif-e8-hp has no ethos-u55-128"] == 1


def planned(sweep: Path) -> dict[str | None, sweep_plan.Planned]:
    read = sweep_configuration.read_configuration(sweep)
    made = sweep_plan.make_plan(read, sweep.parent / "store", SweepOptions())
    return {row.cell.system: row for row in made.cells}


def test_what_boards_share_and_what_they_do_not(sweep: Path) -> None:
    rows = planned(sweep)
    assert len({row.lowering for row in rows.values()}) == 1
    assert (
        len({row.compilation for row in rows.values()})
        == len({row.key for row in rows.values()})
        == len(rows)
    )
    before = planned(sweep)
    (sweep.parent / "slow.toml").write_text(SLOW.replace("100_", "200_"))
    after = planned(sweep)
    assert {name for name, row in after.items() if row.key != before[name].key} == {"slow.toml"}


def test_tasks_name_the_board_from_any_folder(sweep: Path) -> None:
    read = sweep_configuration.read_configuration(sweep)
    made = sweep_plan.make_plan(read, sweep.parent / "store", SweepOptions())
    systems = {
        row.cell.system: sweep_plan.tasks_of_cell(made, row, "token", SweepOptions())["finish"]["system"]
        for row in made.cells
    }
    assert systems["slow.toml"] == str(sweep.parent / "slow.toml")
    assert (systems["alif-e8-hp"], systems[None]) == ("alif-e8-hp", None)


def test_what_gives_boards_beside_the_list(sweep: Path) -> None:
    sweep.write_text(SWEEP.replace('systems = ["default", "alif-e[78]-h[pe]", "slow.toml"]\n', ""))
    assert {cell.system for cell in found(sweep, system="alif-e8-hp")} == {"alif-e8-hp"}
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
        sweep_configuration.read_configuration(sweep)
    assert words in error.value.message
    assert "sweep.toml" in error.value.message


def test_boards_that_are_none_or_named_twice_are_refused(sweep: Path) -> None:
    (sweep.parent / "slow.toml").write_text('like = "alif-e8-hp"\ncpu = { clock_hz = -1 }\n')
    with pytest.raises(InputError, match=r"sweep.toml:3: .*slow.toml:2: clock_hz must be"):
        sweep_configuration.read_configuration(sweep)
    with pytest.raises(UsageError, match="both name boards"):
        sweep_configuration.read_configuration(sweep, system="alif-e8-hp")


# --- A ini_sweep over the systems of a user's Vela configuration file.

SYSTEM = "core_clock=1e8\naxi0_port=Sram\naxi1_port=Dram\nSram_clock_scale=1\nDram_clock_scale=0.5\n"
MODE = "const_mem_area=Axi1\narena_mem_area=Axi0\ncache_mem_area=Axi0\n"
INI = "".join(f"[System_Config.{name}]\n{SYSTEM}" for name in ("Big", "Bigger", "Small")) + (
    f"[Memory_Mode.Mine]\n{MODE}"
)
OF_INI = """models = ["zoo:add"]
targets = ["ethos-u55-64", "ethos-u85-256"]
system_configs = ["Big*"]
"""


@pytest.fixture
def ini(tmp_path: Path) -> Path:
    path = tmp_path / "board.ini"
    path.write_text(INI)
    return path


@pytest.fixture
def ini_sweep(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.toml"
    path.write_text(OF_INI)
    return path


def test_cells_have_the_systems_of_the_file_and_of_no_other(ini_sweep: Path, ini: Path) -> None:
    read = sweep_configuration.read_configuration(ini_sweep, ini)
    found = cells.expand(read).cells
    names = [(cell.target.name, cell.target.system_config, cell.target.memory_mode) for cell in found]
    assert names == [
        (target, system, "Mine")
        for target in ("ethos-u55-64", "ethos-u85-256")
        for system in ("Big", "Bigger")
    ]
    config = read.system(None).config
    assert config is not None
    assert {cell.target.vela_config for cell in found} == {config.stored_name}
    with pytest.raises(InputError, match=r"there is no system configuration 'Big\*'"):
        sweep_configuration.read_configuration(ini_sweep)


def test_another_content_is_another_compilation(ini_sweep: Path, ini: Path, tmp_path: Path) -> None:
    def key() -> str:
        found = cells.expand(sweep_configuration.read_configuration(ini_sweep, ini)).cells[0]
        return Keys(tmp_path, trust=False).compilation(found)

    first = key()
    ini.write_text(INI.replace("1e8", "2e8"))
    assert key() != first
    ini.write_text(INI)
    assert key() == first


def test_cycles_for_another_system_are_no_time() -> None:
    examples = ROOT / "schemas" / "examples" / "valid"
    compiled, run = (
        json.loads((examples / f"{kind}-ds_cnn.json").read_text(encoding="utf-8"))
        for kind in ("compile", "run")
    )
    known = cell_rows.cell_figures(kinds.COMPILE.convert(compiled), kinds.RUN.convert(run))
    assert known["clock_mhz"] == 500
    assert known["time_ms"] == pytest.approx(known["npu_cycles"] / 500e3)
    run["priced"]["compiled_for"] = False
    other = cell_rows.cell_figures(kinds.COMPILE.convert(compiled), kinds.RUN.convert(run))
    assert (other["npu_cycles"], other["clock_mhz"], other["time_ms"]) == (known["npu_cycles"], None, None)
