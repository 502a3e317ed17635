"""Fit on named boards: twelve programs on six boards, beside sums made here from the boards' own file."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.base import board_profiles
from ethosu_sdk.compile import pricing_system
from ethosu_sdk.firmware_build import board_fit
from ethosu_sdk.firmware_build.board_fit import NamedBoard
from ethosu_sdk.firmware_build.memory_fit import Requirements
from tests.tables import each

PACKS = Path(board_profiles.__file__).parent / "board_packs"
VELA = tomllib.loads((PACKS / "vela.toml").read_text(encoding="utf-8"))
MIB = 1 << 20
# Model, scratch, fast scratch, planned buffers, method pool; the first eight as zoo programs have them.
PROGRAMS = {
    "add": (2064, 48, 0, (96,), 800),
    "digits": (11_920, 1280, 0, (320,), 1392),
    "mobilenet": (3_677_120, 1_505_280, 0, (1_204_224, 4000), 1600),
    "large-constants": (8_482_960, 6176, 0, (25_000,), 700),
    "large-scratch": (20_272, 2_882_848, 0, (2_880_000,), 736),
    "float-images": (20_320, 2_882_848, 0, (8_640_000,), 1300),
    "cached": (3_900_000, 1_600_000, 393_216, (602_112,), 1700),
    "on-the-cpu": (960, 0, 0, (80,), 400),
    "fills-mram": (5 * MIB + MIB // 2, 1000, 0, (16,), 16),
    "one-byte-more": (5 * MIB + MIB // 2 + 1, 1000, 0, (16,), 16),
    "fills-sram": (1000, 4 * MIB - 16, 0, (), 16),
    "fills-two": (1000, 4 * MIB - 16, 0, (4 * MIB,), 16),
}
# Board, system configuration, memory mode; Axi0 is Sram in all of them.
BOARDS = {
    "corstone-300-fvp": ("Ethos_U55_High_End_Embedded", "Shared_Sram"),
    "corstone-320-fvp": ("Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram_384KB"),
    "alif-e8-hp": ("RTSS_HP_SRAM_MRAM", "Shared_Sram"),
    "alif-e7-he": ("RTSS_HE_DTCM_Only", "Sram_Only"),
    "ek-ra8p1": ("RA8P1", "Sram_Only"),
    "imx93": ("Ethos_U65_High_End", "Dedicated_Sram_384KB"),
}


def table_of(name: str) -> dict[str, Any]:
    """The board's rows in the file, those that it takes over from another too."""
    row: dict[str, Any] = tomllib.loads((PACKS / name / "board.toml").read_text(encoding="utf-8"))
    if "like" not in row:
        return row
    base = table_of(row["like"])
    memories = {**base["memories"], **row.get("memories", {})}
    return {**base, **row, "memories": memories}


def expected(name: str, program: str) -> tuple[Counter[str], dict[str, int | None]]:
    """Bytes in each memory, and the sizes of these."""
    config, mode = BOARDS[name]
    table, ports, places = table_of(name), VELA["system_configs"][config], VELA["memory_modes"][mode]
    areas = table["areas"][config]
    constants, arena, cache = (
        areas[ports[f"{places[f'{kind}_mem_area'].lower()}_port"]] for kind in ("const", "arena", "cache")
    )
    model, scratch, fast, planned, pool = PROGRAMS[program]
    used: Counter[str] = Counter()
    used[constants] += model
    used[arena] += scratch
    used[cache] += fast
    sizes = {key: row.get("size_bytes") for key, row in table["memories"].items()}
    ram = [key for key, row in table["memories"].items() if row["kind"] in ("sram", "dram")]
    order = [key for key in (arena, cache) if key in ram] or [cache]
    order += [key for key in ram if key not in order]
    for size in (sum(-(-each_size // 16) * 16 for each_size in planned), pool):
        room = (key for key in order if (limit := sizes[key]) is None or used[key] + size <= limit)
        used[next(room, order[0])] += size
    return used, sizes


def named(name: str) -> NamedBoard:
    profile = board_profiles.find_profile(name)
    found = board_fit.named_board(profile, pricing_system.system_of_board(profile, *BOARDS[name]))
    assert found is not None
    return found


@each("name", BOARDS)
def test_twelve_programs_fit_as_the_boards_file_says(name: str) -> None:
    board, fitting = named(name), 0
    for program, (model, scratch, fast, planned, pool) in PROGRAMS.items():
        needs = Requirements(model, BOARDS[name][1], scratch, planned, pool, (), fast_scratch_bytes=fast)
        used, sizes = expected(name, program)
        found: Counter[str] = Counter()
        for row in board.uses(needs):
            assert row.size_bytes == sizes[row.memory]
            found[row.memory] += row.used_bytes
        assert +found == +used, program
        over = [key for key, size in used.items() if sizes[key] is not None and size > (sizes[key] or 0)]
        refusal = board_fit.misfit(board, needs)
        assert (refusal is not None) == bool(over), program
        fitting += not over
        if refusal is not None:
            assert f"{used[over[0]]:,}" in refusal.message
            assert f"it has {sizes[over[0]]:,}" in refusal.message
            assert refusal.hint
    assert fitting > 0
    assert fitting == len(PROGRAMS) or name != "imx93"  # whose sizes are not public


def test_code_counts_and_another_system_is_offered() -> None:
    board = named("alif-e8-hp")
    model, *_ = PROGRAMS["fills-mram"]
    needs = Requirements(model, "Shared_Sram", 1000, (), 16, (), fast_scratch_bytes=0)
    assert board_fit.misfit(board, needs) is None
    refusal = board_fit.misfit(board, needs, code_bytes=1)
    assert refusal is not None
    assert "1 too many" in refusal.message
    assert "--system-config RTSS_HP_SRAM_OSPI --memory-mode Shared_Sram" in refusal.hint


def test_a_profile_without_areas_judges_nothing(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('like = "alif-e8-hp"\n[systems]\nRTSS_HP_SRAM_MRAM = ["Shared_Sram"]\n', encoding="utf-8")
    assert board_fit.named_board(board_profiles.find_profile(str(own)), None) is None
    assert board_fit.named_board(None, None) is None


@pytest.mark.parametrize(("memory", "place"), [("", "MRAM"), ("SRAM", "SRAM0"), ("DDR", "MRAM")])
def test_data_files_lie_where_they_are_asked_for(memory: str, place: str) -> None:
    needs = Requirements(
        100, "Shared_Sram", 0, (), 0, (), fast_scratch_bytes=0, data_bytes=(7, 5), data_memory=memory
    )
    (found,) = (row for row in named("alif-e8-hp").uses(needs) if row.role == "data")
    assert (found.memory, found.used_bytes) == (place, 12)
