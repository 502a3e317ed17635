"""The table of memory modes against Vela's own configuration file, the SDK's targets and the firmware's settings."""

import configparser
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ethosu_sdk import protocol, resources
from ethosu_sdk.errors import BuildError
from ethosu_sdk.firmware_build import resident
from ethosu_sdk.firmware_build.memory_modes import MemoryMode, memory_mode, memory_modes
from ethosu_sdk.targets import MemoryAreas, Target, families

ethosu = pytest.importorskip("ethosu")
_KINDS = {"Axi0": "fast", "Axi1": "bulk"}


def of_vela(name: str) -> dict[str, str]:
    parser = configparser.ConfigParser()
    parser.read(Path(ethosu.__path__[0]) / "config_files" / "Arm" / "vela.ini")
    section = parser[f"Memory_Mode.{name}"]
    parent = section.get("inherit")
    return {**(parser[parent] if parent else {}), **section}


@pytest.mark.parametrize("mode", memory_modes().values(), ids=lambda mode: mode.name)
def test_a_mode_has_its_buffers_where_vela_has_them(mode: MemoryMode) -> None:
    vela = of_vela(mode.name)
    assert mode.model == _KINDS[vela["const_mem_area"]]
    assert mode.scratch == _KINDS[vela["arena_mem_area"]]
    assert mode.fast_scratch == (vela["cache_mem_area"] != vela["arena_mem_area"])
    limit = vela.get("arena_cache_size")
    assert mode.fast_scratch_bytes == (None if limit is None else int(limit))


def test_every_mode_that_a_target_may_have_is_known() -> None:
    rows = (modes for family in families().values() for modes in family.system_configs.values())
    assert {mode for modes in rows for mode in modes} == memory_modes().keys()


def test_the_firmware_has_the_settings_of_every_mode() -> None:
    text = (resources.directory("firmware") / "npu" / "settings.hpp").read_text(encoding="utf-8")
    (names,) = re.findall(r"enum class MemoryMode [^{]*\{([^}]*)\}", text)
    assert {mode.settings for mode in memory_modes().values()} == {name.strip() for name in names.split(",")}


def test_no_mode_is_that_of_a_program_without_an_npu_and_any_other_is_an_error() -> None:
    assert memory_mode(None).model == "bulk"
    with pytest.raises(BuildError, match="'sram_only'") as caught:
        memory_mode("sram_only")
    assert "Sram_Only" in caught.value.hint


@pytest.mark.parametrize("mode", memory_modes().values(), ids=lambda mode: mode.name)
def test_a_mode_of_any_name_is_told_by_where_it_has_things(mode: MemoryMode) -> None:
    vela = of_vela(mode.name)
    const, arena, cache = (int(vela[f"{kind}_mem_area"][-1]) for kind in ("const", "arena", "cache"))
    limit = vela.get("arena_cache_size")
    areas = MemoryAreas(const, arena, cache, None if limit is None else int(limit))
    assert memory_mode("Mine", areas) == replace(mode, name="Mine")


def test_a_name_of_velas_for_other_areas_is_not_believed() -> None:
    areas = MemoryAreas(constants=0, arena=0, cache=0)
    assert memory_mode("Shared_Sram", areas).settings == "sram_only"
    assert resident.mode_number(target("Shared_Sram"), areas) == protocol.PROGRAM_MODE_SRAM_ONLY


def test_the_resident_firmware_is_told_where_a_mode_has_things() -> None:
    assert resident.mode_number(None, None) == protocol.PROGRAM_MODE_BY_NAME
    mine = MemoryAreas(constants=1, arena=1, cache=0, cache_bytes=0x1000)
    assert resident.mode_number(target("Mine"), mine) == protocol.PROGRAM_MODE_DEDICATED_SRAM
    assert resident.mode_number(target("Shared_Sram"), None) == protocol.PROGRAM_MODE_SHARED_SRAM
    with pytest.raises(BuildError, match="does not know where memory mode 'Mine'"):
        resident.mode_number(target("Mine"), None)


def target(memory_mode: str) -> Target:
    return Target("ethos-u55", 128, "Board", memory_mode)


@pytest.mark.parametrize("areas", [(0, 1, 1), (0, 1, 0), (1, 0, 1), (1, 1, 1)])
def test_areas_without_settings_are_refused(areas: tuple[int, int, int]) -> None:
    with pytest.raises(BuildError, match="memory mode 'Mine' has constants at AXI") as caught:
        memory_mode("Mine", MemoryAreas(*areas))
    assert "Dedicated_Sram (1, 1, 0)" in caught.value.hint
