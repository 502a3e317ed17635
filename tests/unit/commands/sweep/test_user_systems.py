"""A sweep over the systems of a user's Vela configuration file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ethosu_sdk.errors import InputError
from ethosu_sdk.records import kinds
from ethosu_sdk.sweep import cells, configuration, rows
from ethosu_sdk.sweep.keys import Keys
from tests.places import ROOT

SYSTEM = "core_clock=1e8\naxi0_port=Sram\naxi1_port=Dram\nSram_clock_scale=1\nDram_clock_scale=0.5\n"
MODE = "const_mem_area=Axi1\narena_mem_area=Axi0\ncache_mem_area=Axi0\n"
INI = "".join(f"[System_Config.{name}]\n{SYSTEM}" for name in ("Big", "Bigger", "Small")) + (
    f"[Memory_Mode.Mine]\n{MODE}"
)
SWEEP = """models = ["zoo:add"]
targets = ["ethos-u55-64", "ethos-u85-256"]
system_configs = ["Big*"]
"""


@pytest.fixture
def ini(tmp_path: Path) -> Path:
    path = tmp_path / "board.ini"
    path.write_text(INI)
    return path


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP)
    return path


def test_cells_have_the_systems_of_the_file(sweep: Path, ini: Path) -> None:
    read = configuration.read(sweep, ini)
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


def test_without_the_file_its_names_do_not_exist(sweep: Path) -> None:
    with pytest.raises(InputError, match=r"there is no system configuration 'Big\*'"):
        configuration.read(sweep)


def test_another_content_is_another_compilation(sweep: Path, ini: Path, tmp_path: Path) -> None:
    def key() -> str:
        found = cells.expand(configuration.read(sweep, ini)).cells[0]
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
    known = rows.figures(kinds.COMPILE.convert(compiled), kinds.RUN.convert(run))
    assert known["clock_mhz"] == 500
    assert known["time_ms"] == pytest.approx(known["npu_cycles"] / 500e3)
    run["priced"]["compiled_for"] = False
    other = rows.figures(kinds.COMPILE.convert(compiled), kinds.RUN.convert(run))
    assert (other["npu_cycles"], other["clock_mhz"], other["time_ms"]) == (known["npu_cycles"], None, None)
