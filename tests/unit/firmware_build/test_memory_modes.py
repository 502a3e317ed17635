"""Memory modes against Vela's file, targets and firmware; what the resident firmware has room for."""

import re
from dataclasses import replace

import pytest

from ethosu_sdk.base import boards, resources
from ethosu_sdk.base.errors import BuildError
from ethosu_sdk.base.targets import MemoryAreas, Target, families
from ethosu_sdk.firmware_build import resident_firmware
from ethosu_sdk.firmware_build.memory_fit import MemoryMode, memory_mode, memory_modes
from ethosu_sdk.program import protocol, pte
from tests.installed import vela_ini
from tests.places import GOLDEN_PTE
from tests.tables import each

_KINDS = {"Axi0": "fast", "Axi1": "bulk"}


def of_vela(name: str) -> dict[str, str]:
    parser = vela_ini()
    section = parser[f"Memory_Mode.{name}"]
    parent = section.get("inherit")
    return {**(parser[parent] if parent else {}), **section}


@each("mode", memory_modes().values())
def test_a_mode_has_its_buffers_where_vela_has_them(mode: MemoryMode) -> None:
    vela = of_vela(mode.name)
    assert mode.model == _KINDS[vela["const_mem_area"]]
    assert mode.scratch == _KINDS[vela["arena_mem_area"]]
    assert mode.fast_scratch == (vela["cache_mem_area"] != vela["arena_mem_area"])
    limit = vela.get("arena_cache_size")
    assert mode.fast_scratch_bytes == (None if limit is None else int(limit))


def test_every_mode_of_targets_and_firmware_is_known() -> None:
    rows = (modes for family in families().values() for modes in family.system_configs.values())
    assert {mode for modes in rows for mode in modes} == memory_modes().keys()
    text = (resources.directory("firmware") / "npu" / "settings.hpp").read_text(encoding="utf-8")
    (names,) = re.findall(r"enum class MemoryMode [^{]*\{([^}]*)\}", text)
    assert {mode.settings for mode in memory_modes().values()} == {name.strip() for name in names.split(",")}


def test_no_mode_is_that_of_a_program_without_an_npu_and_any_other_is_an_error() -> None:
    assert memory_mode(None).model == "bulk"
    with pytest.raises(BuildError, match="'sram_only'") as caught:
        memory_mode("sram_only")
    assert "Sram_Only" in caught.value.hint


@each("mode", memory_modes().values())
def test_a_mode_of_any_name_is_told_by_where_it_has_things(mode: MemoryMode) -> None:
    vela = of_vela(mode.name)
    const, arena, cache = (int(vela[f"{kind}_mem_area"][-1]) for kind in ("const", "arena", "cache"))
    limit = vela.get("arena_cache_size")
    areas = MemoryAreas(const, arena, cache, None if limit is None else int(limit))
    assert memory_mode("Mine", areas) == replace(mode, name="Mine")


def test_where_a_mode_has_things_counts_and_not_its_name() -> None:
    areas = MemoryAreas(constants=0, arena=0, cache=0)
    assert memory_mode("Shared_Sram", areas).settings == "sram_only"
    assert resident_firmware.mode_number(target("Shared_Sram"), areas) == protocol.PROGRAM_MODE_SRAM_ONLY
    assert resident_firmware.mode_number(None, None) == protocol.PROGRAM_MODE_BY_NAME
    mine = MemoryAreas(constants=1, arena=1, cache=0, cache_bytes=0x1000)
    assert resident_firmware.mode_number(target("Mine"), mine) == protocol.PROGRAM_MODE_DEDICATED_SRAM
    assert resident_firmware.mode_number(target("Shared_Sram"), None) == protocol.PROGRAM_MODE_SHARED_SRAM
    with pytest.raises(BuildError, match="does not know where memory mode 'Mine'"):
        resident_firmware.mode_number(target("Mine"), None)


def target(memory_mode: str) -> Target:
    return Target("ethos-u55", 128, "Board", memory_mode)


@pytest.mark.parametrize("areas", [(0, 1, 1), (0, 1, 0), (1, 0, 1), (1, 1, 1)])
def test_areas_without_settings_are_refused(areas: tuple[int, int, int]) -> None:
    with pytest.raises(BuildError, match="memory mode 'Mine' has constants at AXI") as caught:
        memory_mode("Mine", MemoryAreas(*areas))
    assert "Dedicated_Sram (1, 1, 0)" in caught.value.hint


# --- What the resident firmware has room for, and what it must refuse before a run.

SCRATCH = 64  # of add_u55.pte, in Shared_Sram
BOARD = boards.board_named("corstone-300")


def check(
    monkeypatch: pytest.MonkeyPatch, fast_bytes: int, bulk_bytes: int, *, allow_spill: bool = False
) -> tuple[str, ...]:
    """The fit of add_u55.pte on a Corstone-300 with other memories."""
    sizes = {BOARD.fast.name: fast_bytes, BOARD.bulk.name: bulk_bytes}
    memories = tuple(replace(row, size_bytes=sizes.get(row.name, row.size_bytes)) for row in BOARD.memories)
    named = {row.name: row for row in memories}
    other = replace(BOARD, memories=memories, fast=named[BOARD.fast.name], bulk=named[BOARD.bulk.name])
    monkeypatch.setattr(boards, "board_named", lambda _name: other)
    program = pte.read(GOLDEN_PTE / "add_u55.pte")
    return resident_firmware.check_fit(program, "forward", BOARD.name, allow_spill=allow_spill)


def test_the_resident_firmware_shares_out_its_memory_and_notes_what_moved() -> None:
    pools = resident_firmware._pool_bytes(BOARD)
    assert pools["program"] == 64 << 20
    assert sum(pools.values()) < BOARD.bulk.size_bytes
    program = pte.read(GOLDEN_PTE / "add_u85_segment.pte")
    (note,) = resident_firmware.check_fit(program, "forward", BOARD.name, allow_spill=False)
    assert "Sram_Only has the model in SRAM" in note


@pytest.mark.parametrize("name", ["add_u55", "conv_u65_int8", "softmax"])
def test_small_programs_fit(name: str) -> None:
    program = pte.read(GOLDEN_PTE / f"{name}.pte")
    assert resident_firmware.check_fit(program, "forward", BOARD.name, allow_spill=False) == ()


def test_scratch_leaves_the_fast_memory_only_with_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(monkeypatch, SCRATCH, 1 << 28) == ()
    with pytest.raises(BuildError, match="scratch does not fit SRAM") as caught:
        check(monkeypatch, SCRATCH - 16, 1 << 28)
    assert "--allow-spill" in caught.value.hint
    (note,) = check(monkeypatch, SCRATCH - 16, 1 << 28, allow_spill=True)
    assert "it lies in DDR" in note


def test_a_program_larger_than_its_room_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    size = (GOLDEN_PTE / "add_u55.pte").stat().st_size
    monkeypatch.setattr(resident_firmware, "_SHARES", dict.fromkeys(resident_firmware._SHARES, 1))
    room = -(-size // 16) * 16
    monkeypatch.setattr(resident_firmware, "_PARTS", BOARD.bulk.size_bytes // room)
    assert check(monkeypatch, 1 << 21, BOARD.bulk.size_bytes) == ()
    monkeypatch.setattr(resident_firmware, "_PARTS", BOARD.bulk.size_bytes // (size - 1) + 1)
    with pytest.raises(BuildError, match=f"program of {size:,} bytes does not fit") as caught:
        check(monkeypatch, 1 << 21, BOARD.bulk.size_bytes)
    assert "without --resident" in caught.value.hint
